//! Records: stored once, refused with their reason, never lost.

use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_records::{LeaseId, Record, RunId, encode};
use tonic::Code;
use tonic_types::StatusExt;

use crate::rig::{Actor, NONE, Rig, TIC_TAC_TOE, hello};

#[tokio::test]
async fn a_game_is_stored_once_and_its_id_is_never_taken_twice() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(0.0).await;
    let record = actor.play(&work, 0);
    assert_eq!(actor.submit(&record).await, Verdict::Stored);
    assert_eq!(actor.submit(&record).await, Verdict::Duplicate);
    let other = (0..)
        .map(|_| actor.play(&work, 0))
        .find(|other| encode(other) != encode(&record))
        .expect("another");
    assert_eq!(actor.submit(&other).await, Verdict::Conflict);
    let status = rig.status().await;
    assert_eq!((status.games, status.positions), (1, u64::from(record.positions())));
    assert_eq!(rig.count("SELECT count(*) FROM conflicts"), 1);
    rig.stop().await;
}

/// Every way to spoil a record, with the reason it must be refused for.
fn spoilt(good: &Record) -> Vec<(&'static str, Vec<u8>)> {
    let edit = |change: &dyn Fn(&mut Record)| {
        let mut record = good.clone();
        change(&mut record);
        encode(&record)
    };
    let position = good.plies.iter().position(|ply| ply.is_position()).expect("a position");
    let search = |record: &mut Record, change: &dyn Fn(&mut tengen_records::SearchBlock)| {
        change(record.plies[position].search.as_mut().expect("a search"));
    };
    vec![
        ("decode", b"no record at all".to_vec()),
        (
            "illegal-action",
            edit(&|record| record.plies[1].action = record.plies[0].action),
        ),
        (
            "wrong-seat",
            edit(&|record| record.plies[0].seat = record.plies[0].seat.other()),
        ),
        (
            "wrong-result",
            edit(&|record| {
                record.outcome.winner = match record.outcome.winner {
                    Some(seat) => Some(seat.other()),
                    None => Some(tengen_games::Seat::FIRST),
                };
            }),
        ),
        (
            "unfinished",
            edit(&|record| record.plies.truncate(record.plies.len() - 1)),
        ),
        (
            "policy-sum",
            edit(&|record| search(record, &|search| search.policy_target[0].1 *= 0.5)),
        ),
        (
            "policy-not-finite",
            edit(&|record| search(record, &|search| search.policy_target[0].1 = f32::NAN)),
        ),
        (
            "wdl",
            edit(&|record| search(record, &|search| search.root_wdl = [0.9, 0.9, 0.9])),
        ),
        ("wrong-rules", edit(&|record| record.rules_fingerprint.0[0] ^= 1)),
        ("wrong-model", edit(&|record| record.models[0].0[0] ^= 1)),
        ("wrong-seed", edit(&|record| record.seed ^= 1)),
        ("wrong-revision", edit(&|record| record.settings_revision += 1)),
        ("index-out-of-lease", edit(&|record| record.id.index = u32::MAX)),
        ("unknown-lease", edit(&|record| record.id.lease = LeaseId(1))),
        (
            "wrong-run",
            edit(&|record| {
                record.id.lease = LeaseId(1);
                record.run_id = RunId::new("other").expect("a run id");
            }),
        ),
    ]
}

#[tokio::test]
async fn a_spoilt_record_is_refused_with_its_reason_and_the_stream_goes_on() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(0.0).await;
    let good = loop {
        let record = actor.play(&work, 0);
        // The edits need a position to spoil, and a first search with more than one action.
        let position = record
            .plies
            .iter()
            .find(|ply| ply.is_position())
            .and_then(|ply| ply.search.clone());
        if position.is_some_and(|search| search.policy_target[0].1 > 0.01) {
            break record;
        }
    };
    let spoilt = spoilt(&good);
    for (code, bytes) in &spoilt {
        let answer = actor.submit_bytes(bytes.clone()).await;
        assert_eq!(
            (answer.verdict(), answer.reason_code.as_str()),
            (Verdict::Rejected, *code),
            "{}",
            answer.detail
        );
    }
    assert_eq!(actor.submit(&good).await, Verdict::Stored);
    let status = rig.status().await;
    assert_eq!(status.rejected.values().sum::<u64>(), spoilt.len() as u64);
    assert_eq!(status.rejected["illegal-action"], 1);
    assert_eq!(status.actors[0].strikes, spoilt.len() as u32);
    assert_eq!(rig.count("SELECT count(*) FROM quarantine"), spoilt.len() as u64);
    rig.stop().await;
}

#[tokio::test]
async fn what_was_acknowledged_is_there_exactly_once_after_a_power_cut() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(10.0).await;
    let games = work.order.plan.games();
    let mut sent = Vec::new();
    // Many at once, so that commits hold several of them.
    for index in 0..games {
        let record = encode(&actor.play(&work, index));
        actor.send(record.clone()).await;
        sent.push(record);
    }
    let mut acknowledged = Vec::new();
    while acknowledged.len() < games as usize / 2 {
        let answer = actor.verdict().await;
        assert_eq!(answer.verdict(), Verdict::Stored);
        acknowledged.push(answer.game_index);
    }
    let after_cut = rig.power_cut();
    rig.stop().await;

    let rig = Rig::start_in(after_cut, &format!("{TIC_TAC_TOE}{NONE}"))
        .await
        .expect("it starts again");
    let mut actor = Actor::new(&rig, "actor-1").await;
    for (index, record) in sent.into_iter().enumerate() {
        let verdict = actor.submit_bytes(record).await.verdict();
        if acknowledged.contains(&(index as u32)) {
            assert_eq!(verdict, Verdict::Duplicate, "game {index} was acknowledged");
        }
        assert!(matches!(verdict, Verdict::Stored | Verdict::Duplicate));
    }
    let status = rig.status().await;
    assert_eq!(status.games, u64::from(games));
    assert_eq!(status.iteration * 4 + status.iteration_games, games);
    assert_eq!(
        rig.count("SELECT count(DISTINCT game_index) FROM games"),
        u64::from(games)
    );
    rig.stop().await;
}

#[tokio::test]
async fn an_overrun_self_play_lease_and_a_returned_one_are_welcome() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut work = actor.work(0.0).await;
    work.expected.work = tengen_records::Work::SelfPlay {
        index_end: 1_000,
        random_plies_max: 2,
    };
    let beyond = actor.play(&work, work.order.plan.games() + 5);
    assert_eq!(actor.submit(&beyond).await, Verdict::Stored);
    actor.report(vec![], vec![work.order.lease.to_bytes().to_vec()]).await;
    assert_eq!(rig.count("SELECT count(*) FROM leases WHERE state = 'returned'"), 1);
    let late = actor.play(&work, 0);
    assert_eq!(actor.submit(&late).await, Verdict::Stored);
    assert_eq!(rig.status().await.games, 2);
    rig.stop().await;
}

#[tokio::test]
async fn strangers_and_other_protocols_are_told_why() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;

    let future = v1::RegisterActorRequest {
        protocol_min: 7,
        protocol_max: 9,
        ..hello("actor-2")
    };
    let refused = actor.client.register(future).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let needed = format!(
        "serves protocols {} to {}",
        tengen_proto::PROTOCOL_MIN,
        tengen_proto::PROTOCOL
    );
    for part in [
        "speaks 7 to 9",
        needed.as_str(),
        tengen_service::BUILD,
        "bring the coordinator up to date",
    ] {
        assert!(refused.message().contains(part), "{part}: {refused}");
    }
    assert_eq!(
        refused
            .get_error_details()
            .error_info()
            .map(|info| info.reason.as_str()),
        Some("PROTOCOL")
    );

    let nameless = actor
        .client
        .register(hello("no spaces please"))
        .await
        .expect_err("a refusal");
    assert_eq!(nameless.code(), Code::InvalidArgument);

    let ask = v1::GetWorkRequest {
        actor_id: "stranger".to_owned(),
        ..v1::GetWorkRequest::default()
    };
    let unknown = actor.client.get_work(ask).await.expect_err("a refusal");
    assert_eq!(
        unknown
            .get_error_details()
            .error_info()
            .map(|info| info.reason.as_str()),
        Some("NOT_REGISTERED")
    );

    let work = actor.work(0.0).await;
    let record = encode(&actor.play(&work, 0));
    actor.id = "stranger".to_owned();
    actor.send(record).await;
    assert_eq!(actor.stream_error().await.code(), Code::FailedPrecondition);
    rig.stop().await;
}

#[tokio::test]
async fn a_commit_that_fails_acknowledges_nothing_and_loses_nothing() {
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(10.0).await;
    let records: Vec<_> = (0..6).map(|index| encode(&actor.play(&work, index))).collect();
    assert_eq!(actor.submit_bytes(records[0].clone()).await.verdict(), Verdict::Stored);
    // A disk that is full at the fourth game of the iteration, where the iteration's row is written too.
    let database = rusqlite::Connection::open(rig.path("tengen.db")).expect("a database");
    let fail = "CREATE TRIGGER full BEFORE INSERT ON iterations BEGIN SELECT RAISE(ABORT, 'disk full'); END";
    database.execute_batch(fail).expect("a trigger");
    for record in &records[1..3] {
        assert_eq!(actor.submit_bytes(record.clone()).await.verdict(), Verdict::Stored);
    }
    for record in &records[3..] {
        assert_eq!(actor.submit_bytes(record.clone()).await.verdict(), Verdict::Retry);
    }
    let status = rig.status().await;
    assert_eq!((status.games, status.iteration, status.iteration_games), (3, 0, 3));
    database.execute_batch("DROP TRIGGER full").expect("no trigger");
    for record in &records[3..] {
        assert_eq!(actor.submit_bytes(record.clone()).await.verdict(), Verdict::Stored);
    }
    let status = rig.status().await;
    assert_eq!((status.games, status.iteration, status.iteration_games), (6, 1, 2));
    assert_eq!(rig.count("SELECT count(*) FROM games"), 6);
    rig.stop().await;
}

#[tokio::test]
async fn an_actor_that_sends_nothing_but_rubbish_is_suspended() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..500 {
        assert_eq!(
            actor.submit_bytes(b"rubbish".to_vec()).await.verdict(),
            Verdict::Rejected
        );
    }
    actor.send(b"rubbish".to_vec()).await;
    assert_eq!(actor.stream_error().await.code(), Code::PermissionDenied);
    let again = actor.client.register(hello("actor-1")).await.expect_err("a refusal");
    assert!(again.message().contains("500 of its records were refused"), "{again}");
    assert_eq!(
        rig.count("SELECT count(*) FROM audit WHERE action = 'suspend-actor'"),
        1
    );
    Actor::new(&rig, "actor-2").await.deliver(1).await;
    rig.stop().await;
}
