//! A power cut at any moment loses nothing that was acknowledged: no verdict comes before the fsync it rests on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use tengen_records::{LeaseId, RecordId, encode};
use tengen_service::testing::power_cut::{Names, Trace, recorder};
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof};
use tengen_system_tests::ledger::Ledger;

/// Games sent, a few at a time, so that there are many commits.
const GAMES: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_game_is_on_the_disk_after_a_power_cut_at_any_moment() {
    let proof = Proof::begin("coordinator-power-cut");
    let folder = tempfile::tempdir().unwrap();
    let run = faults::write_run(folder.path());
    let (root, trace) = (folder.path().join("root"), folder.path().join("trace"));
    std::fs::create_dir(&root).unwrap();
    // The coordinator makes its own data folder, which must be there after the cut as well.
    let data = root.join("data");
    let coordinator = Coordinator::start_under(&recorder(&trace), &run, &data, &[]).await;
    let mut ledger = Ledger::register(coordinator.channel(), 7).await;
    while ledger.acknowledged.len() < GAMES {
        let records: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
        for few in records.chunks(3) {
            assert_eq!(ledger.submit(few).await.len(), few.len());
        }
    }
    coordinator.drain().await;

    let trace = Trace::read(&trace, &root);
    let cuts = faults::scaled(250, 2_500).min(trace.len());
    let after = (0..=cuts).map(|cut| cut * trace.len() / cuts);
    let mut checked = 0;
    trace.cuts(after, |disk, before| {
        let into = tempfile::tempdir().unwrap();
        disk.lay_out(&root, into.path(), Names::Synced);
        let promised = ledger.acknowledged_at.iter().take_while(|(at, _)| *at < before);
        let kept = games_in(&into.path().join("data"));
        for (_, id) in promised {
            assert_eq!(
                kept.get(id),
                ledger.acknowledged.get(id),
                "{id} was acknowledged and is lost"
            );
            checked += 1;
        }
    });
    assert!(checked > cuts * GAMES / 4, "the cuts came too early to say anything");
    let proof = proof
        .count("cuts", cuts)
        .count("calls", trace.len())
        .count("fsyncs", trace.syncs());
    proof.count("promises_kept", checked).proved();
}

/// The games of a database as it recovers.
fn games_in(data: &Path) -> BTreeMap<RecordId, Vec<u8>> {
    let path = data.join("tengen.db");
    if !path.exists() {
        return BTreeMap::new();
    }
    let database = Connection::open(path).unwrap();
    let sound: String = database.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'games'";
    if database.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap() == 0 {
        return BTreeMap::new();
    }
    let mut rows = database.prepare("SELECT lease, game_index, record FROM games").unwrap();
    let games = rows.query_map([], |row| {
        let id = RecordId {
            lease: LeaseId(u128::from_be_bytes(row.get(0)?)),
            index: row.get(1)?,
        };
        Ok((id, row.get(2)?))
    });
    games.unwrap().map(Result::unwrap).collect()
}
