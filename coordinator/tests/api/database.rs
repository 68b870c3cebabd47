//! The database at rest: migrated, damaged, checked, copied and made smaller, by the commands people use.

use std::collections::BTreeSet;
use std::path::Path;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rusqlite::Connection;
use rusqlite::types::Value;
use tengen_coordinator::store::{FILE_NAME, VERSION, backup_path, open_writer};
use tengen_faults::{Proof, scaled};
use tengen_proto::v1;

use crate::gates::{play_gate, with_candidate};
use crate::rig::{Actor, FIXED, Learner, NONE, Rig, TIC_TAC_TOE};
use crate::window::{catch_up, mirror, records};

/// A database as version 1 left it: rows of every table that matters, made by that build.
const VERSION_1: &str = include_str!("../golden/version_1.sql");

/// Runs `tengen-coordinator db ...`; whether it succeeded, and what it said.
pub(crate) async fn db(arguments: &[&str], data: &Path) -> (bool, String) {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_tengen-coordinator"))
        .arg("db")
        .args(arguments)
        .arg("--data")
        .arg(data)
        .output()
        .await
        .expect("the program starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Checks a folder in which nothing may be wrong.
pub(crate) async fn assert_sound(data: &Path) {
    let (sound, text) = db(&["check"], data).await;
    assert!(sound, "{text}");
}

fn open(data: &Path) -> Connection {
    Connection::open(data.join(FILE_NAME)).expect("a database")
}

/// Every row of a table, as far as its first `columns` columns go.
fn rows(connection: &Connection, table: &str, columns: usize) -> Vec<Vec<Value>> {
    let sql = format!("SELECT * FROM {table} ORDER BY 1, 2");
    let mut statement = connection.prepare(&sql).expect("a table");
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
    rows.expect("rows").collect::<Result<_, _>>().expect("rows")
}

fn tables(connection: &Connection) -> Vec<(String, usize)> {
    let sql = "SELECT name, (SELECT count(*) FROM pragma_table_info(name)) FROM sqlite_schema \
               WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).expect("the schema");
    let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    tables.expect("tables").collect::<Result<_, _>>().expect("tables")
}

#[test]
fn a_database_of_version_1_is_migrated_with_every_row_and_a_copy_of_it_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = open(folder.path());
    old.execute_batch(VERSION_1).expect("the golden database");
    let before: Vec<_> = tables(&old)
        .into_iter()
        .map(|(table, columns)| (rows(&old, &table, columns), table, columns))
        .collect();
    for table in [
        "games",
        "game_ids",
        "leases",
        "models",
        "gates",
        "gate_log",
        "promotions",
        "progress",
        "settings",
    ] {
        let held = before.iter().find(|(_, name, _)| name == table);
        assert!(held.is_some_and(|(rows, _, _)| !rows.is_empty()), "{table} is empty");
    }
    drop(old);

    let migrated = open_writer(folder.path()).expect("it is migrated");
    let version = |connection: &Connection| -> u32 {
        let found = connection.pragma_query_value(None, "user_version", |row| row.get(0));
        found.expect("a version")
    };
    assert_eq!(version(&migrated), VERSION);
    let copy = Connection::open(backup_path(folder.path(), 1)).expect("a copy");
    assert_eq!(version(&copy), 1);
    for (rows_before, table, columns) in &before {
        assert_eq!(&rows(&migrated, table, *columns), rows_before, "{table}");
        assert_eq!(&rows(&copy, table, *columns), rows_before, "{table} of the copy");
    }
    let count = |sql: &str| -> u64 { migrated.query_row(sql, [], |row| row.get(0)).expect("a number") };
    assert_eq!(
        count("SELECT sum(wins + draws + losses) FROM pairings"),
        count("SELECT count(*) FROM gate_log"),
        "the games of gates are rated"
    );
    let sql = "SELECT record, hash FROM games JOIN game_ids USING (lease, game_index)";
    let mut statement = migrated.prepare(sql).expect("games");
    let games = statement.query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?)));
    for game in games.expect("games") {
        let (record, hash) = game.expect("a game");
        assert_eq!(blake3::hash(&record).as_bytes()[..], hash);
        tengen_records::decode(&record).expect("a record of version 1 is still read");
    }
}

/// Flips one bit of the record of each of these games.
fn flip_bits(data: &Path, sequences: &BTreeSet<u64>, rng: &mut Xoshiro256PlusPlus) {
    let mut database = open(data);
    let database = database.transaction().expect("a transaction");
    for sequence in sequences {
        let sql = "SELECT record FROM games WHERE sequence = ?1";
        let mut record: Vec<u8> = database.query_row(sql, [sequence], |row| row.get(0)).expect("a game");
        let bit = rng.random_range(0..record.len() * 8);
        record[bit / 8] ^= 1 << (bit % 8);
        let sql = "UPDATE games SET record = ?2 WHERE sequence = ?1";
        database.execute(sql, (sequence, record)).expect("it is damaged");
    }
    database.commit().expect("they are damaged");
}

#[tokio::test]
async fn a_flipped_bit_in_any_record_is_found_and_named_and_the_game_is_never_served() {
    let proof = Proof::begin("stored-records-flipped");
    let flips = scaled(400, 10_000);
    // A game in six is left whole.
    let games = flips as u64 * 6 / 5;
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut delivered = Vec::new();
    while (delivered.len() as u64) < games {
        delivered.extend(actor.deliver(4).await);
    }
    let positions = rig.status().await.positions;
    let folder = rig.stop().await;

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut sequences: Vec<u64> = (2..games).collect();
    sequences.shuffle(&mut rng);
    // The oldest and the newest game are among them.
    let damaged: BTreeSet<u64> = sequences.into_iter().take(flips - 2).chain([1, games]).collect();
    flip_bits(folder.path(), &damaged, &mut rng);
    let (sound, text) = db(&["check"], folder.path()).await;
    assert!(!sound && text.contains(&format!("{flips} faults")), "{text}");
    assert_named(&text, &damaged);

    let rig = Rig::start_in(folder, &toml).await.expect("it starts");
    let status = rig.status().await;
    assert_eq!(
        (status.damaged_games, status.games, status.positions),
        (flips as u64, games, positions)
    );
    let (_, games) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    let good = delivered
        .iter()
        .zip(1..)
        .filter(|(record, sequence)| !damaged.contains(sequence) && has_positions(record));
    let good: Vec<Vec<u8>> = good.map(|(record, _)| record.clone()).collect();
    assert!(
        records(&games) == good,
        "{} games are served of {}",
        games.len(),
        good.len()
    );
    // What is counted stays counted, also for mirrors.
    let more = Actor::new(&rig, "actor-2").await.deliver(1).await;
    let (_, games) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    let newest = games.last().expect("a game");
    assert_eq!(
        (&newest.record, newest.positions_total),
        (&more[0], rig.status().await.positions)
    );
    rig.stop().await;
    proof
        .count("flips", flips)
        .count("whole_games_served", good.len())
        .proved();
}

/// Whether a mirror gets this game: one without trainable positions is stored and counted, and not of the window.
fn has_positions(record: &[u8]) -> bool {
    tengen_records::decode(record).expect("an honest record").positions() > 0
}

/// The check names the first thousand of the damaged games and no other.
fn assert_named(text: &str, damaged: &BTreeSet<u64>) {
    let sequence = |line: &str| {
        line.split("the record of game ")
            .nth(1)?
            .split(' ')
            .next()?
            .parse()
            .ok()
    };
    let named: Vec<u64> = text.lines().filter_map(sequence).collect();
    let first: Vec<u64> = damaged.iter().copied().take(1_000).collect();
    assert_eq!(named, first, "{text}");
}

#[tokio::test]
async fn a_full_window_reaches_further_back_past_damaged_games() {
    let toml = format!("{TIC_TAC_TOE}{NONE}[replay]\ncapacity_positions = 12\n");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..4 {
        actor.deliver(4).await;
    }
    let full = rig.status().await.window_positions;
    assert_eq!(full, 12);
    let folder = rig.stop().await;
    flip_bits(
        folder.path(),
        &(13..=16).collect(),
        &mut Xoshiro256PlusPlus::seed_from_u64(6),
    );
    let rig = Rig::start_in(folder, &toml).await.expect("it starts");
    assert_eq!(rig.status().await.window_positions, 12);
    rig.stop().await;
}

#[tokio::test]
async fn a_check_names_every_kind_of_fault_with_its_row() {
    let (rig, mut actor, _learner) = with_candidate(FIXED).await;
    play_gate(&rig, &mut actor, Some(0)).await;
    let candidate = rig.model("champion").await;
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
    let lease: String = open(folder.path())
        .query_row(
            "SELECT lower(hex(lease)) FROM leases WHERE stored > 0 LIMIT 1",
            [],
            |row| row.get(0),
        )
        .expect("a lease");
    let named_lease = format!("table leases: lease {lease}");
    let faults: [(&str, &str); 10] = [
        (
            "UPDATE progress SET self_play_games = 77",
            "progress.self_play_games is 77",
        ),
        ("UPDATE progress SET positions = positions + 1", "progress.positions is"),
        ("UPDATE progress SET generation = 0", "table progress: the champion is"),
        ("UPDATE leases SET stored = stored + 1 WHERE stored > 0", &named_lease),
        (
            "UPDATE games SET positions_total = 0 WHERE sequence = 2",
            "in game 2: 0 after",
        ),
        ("DELETE FROM game_ids WHERE sequence = 3", "no id for game 3"),
        ("UPDATE gates SET wins = wins - 1", "table gates: gate 1 says"),
        (
            "DELETE FROM gate_log WHERE sequence = 6",
            "rows of gate_log, with the games of rating matches, is 3",
        ),
        ("UPDATE pairings SET wins = wins + 1", "games of pairings is 5"),
        (
            "UPDATE models SET settings_revision = 9 WHERE number = 2",
            "table models: row 2 names a row of settings",
        ),
    ];
    for (spoil, expected) in faults {
        let copy = tempfile::tempdir().expect("a folder");
        crate::rig::copy_folder(folder.path(), copy.path());
        let database = open(copy.path());
        database.pragma_update(None, "foreign_keys", false).expect("a pragma");
        let changed = database.execute(spoil, []).expect("it is spoilt");
        assert!(changed > 0, "{spoil} changed nothing");
        drop(database);
        let (sound, text) = db(&["check"], copy.path()).await;
        assert!(!sound && text.contains(expected), "{spoil}: {expected:?} in\n{text}");
        assert!(text.contains("what to do: "), "{text}");
    }
    // A network with one bit flipped, then none at all.
    let models = folder.path().join("models");
    let file = models.join(format!("{}.onnx", hex(&candidate.model_id)));
    let mut bytes = std::fs::read(&file).expect("a file");
    bytes[100] ^= 1;
    tengen_service::files::write_atomic(&file, &bytes).expect("it is written");
    let (sound, text) = db(&["check"], folder.path()).await;
    assert!(
        !sound && text.contains("of network 2 does not hold the bytes its name says"),
        "{text}"
    );
    std::fs::remove_file(&file).expect("it is removed");
    let (sound, text) = db(&["check"], folder.path()).await;
    assert!(!sound && text.contains("of network 2 cannot be read"), "{text}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_not_stumbled_over() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    let folder = rig.stop().await;
    let path = folder.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).expect("a database");
    // Whole pages beyond the schema's first.
    bytes[4_096 * 3..4_096 * 12].fill(0x5A);
    tengen_service::files::write_atomic(&path, &bytes).expect("it is damaged");
    let (sound, text) = db(&["check"], folder.path()).await;
    assert!(!sound && text.contains("restore the last good backup"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_running_coordinator_is_of_one_moment_and_starts_by_itself() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..5 {
        actor.deliver(4).await;
    }
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let parent = tempfile::tempdir().expect("a folder");
    let target = parent.path().join("deep/backup");
    let arguments = ["backup", target.to_str().expect("a path")];
    let playing = async {
        for _ in 0..10 {
            actor.deliver(2).await;
        }
    };
    let (made, ()) = tokio::join!(db(&arguments, rig.folder.path()), playing);
    assert!(made.0, "{}", made.1);
    let (again, text) = db(&arguments, rig.folder.path()).await;
    assert!(!again && text.contains("is there already"), "{text}");
    let entries = |folder: &Path| std::fs::read_dir(folder).expect("a folder").count();
    // One backup, of one database file and its networks.
    assert_eq!((entries(&parent.path().join("deep")), entries(&target)), (1, 2));
    let games = rig.status().await.games;
    let (epoch, _) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    rig.stop().await;

    assert_sound(&target).await;
    let restored = tempfile::tempdir().expect("a folder");
    crate::rig::copy_folder(&target, restored.path());
    let rig = Rig::start_in(restored, &toml).await.expect("the backup starts");
    let status = rig.status().await;
    assert!((20..=games).contains(&status.games), "{} games", status.games);
    // Mirrors of the original must not take its games for theirs.
    let (restored_epoch, window) = catch_up(&mut mirror(&rig, epoch, 1_000_000).await).await;
    assert!(
        restored_epoch > epoch && window.len() as u64 == status.games,
        "{restored_epoch}"
    );
    assert_eq!(
        rig.count("SELECT count(*) FROM audit WHERE action = 'restore-backup'"),
        1
    );
    assert_eq!(
        rig.models()
            .await
            .list_models(v1::ListModelsRequest::default())
            .await
            .expect("models")
            .into_inner()
            .models
            .len(),
        2
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_damaged_record_stops_a_backup_unless_it_is_wanted_all_the_same() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    let folder = rig.stop().await;
    flip_bits(folder.path(), &[2].into(), &mut Xoshiro256PlusPlus::seed_from_u64(7));
    let parent = tempfile::tempdir().expect("a folder");
    let target = parent.path().join("backup");
    let to = target.to_str().expect("a path");
    let (made, text) = db(&["backup", to], folder.path()).await;
    assert!(
        !made && text.contains("game 2 (") && text.contains("--even-if-damaged"),
        "{text}"
    );
    assert_eq!(std::fs::read_dir(parent.path()).expect("a folder").count(), 0);
    let (made, text) = db(&["backup", to, "--even-if-damaged"], folder.path()).await;
    assert!(made && target.join(FILE_NAME).exists(), "{text}");
}

#[tokio::test]
async fn compacting_gives_space_back_and_never_beside_a_coordinator() {
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let rig = Rig::start(&toml).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    let (done, text) = db(&["compact"], rig.folder.path()).await;
    assert!(!done && text.contains("is in use by process"), "{text}");
    let folder = rig.stop().await;
    let database = open(folder.path());
    let filler = "INSERT INTO audit (at_ms, who, action, detail) VALUES (0, 'test', 'test', ?1)";
    database.execute(filler, ["x".repeat(8 << 20)]).expect("a row");
    database
        .execute("DELETE FROM audit WHERE who = 'test'", [])
        .expect("no row");
    drop(database);
    let bytes = || std::fs::metadata(folder.path().join(FILE_NAME)).expect("a file").len();
    assert!(bytes() > 8 << 20);
    let (done, text) = db(&["compact"], folder.path()).await;
    assert!(done && text.contains("before"), "{text}");
    assert!(bytes() < 1 << 20, "{} bytes", bytes());
    assert_sound(folder.path()).await;
    let rig = Rig::start_in(folder, &toml).await.expect("it starts");
    assert_eq!(rig.status().await.games, 4);
    let row = rig.trail().await.remove(0);
    assert_eq!((row.action.as_str(), row.who.as_str()), ("compact", "local"));
    assert!(row.old.ends_with(" bytes") && row.old != row.new, "{row:?}");
    rig.stop().await;
}
