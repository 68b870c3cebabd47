//! Candidates: promoted at once, or after a match.

use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::{Precision, ReasonCode, Record, encode};
use tengen_selfplay::Plan;

use crate::rig::{Actor, FIXED, Learner, NONE, Rig, TIC_TAC_TOE, options};

/// A run whose first iteration is played and whose first candidate is published.
pub(crate) async fn with_candidate(gate: &str) -> (Rig, Actor, Learner) {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{gate}")).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    let idle = learner.report().await.expect("a task");
    assert_eq!((idle.iteration, idle.candidate_iteration), (0, 0));
    actor.deliver(4).await;
    let task = learner.report().await.expect("a task");
    assert_eq!(
        (task.iteration, task.candidate_iteration, task.published_iteration),
        (1, 1, 0)
    );
    assert_eq!(task.candidate_positions, rig.status().await.positions);
    learner.publish(1).await.expect("a candidate");
    let task = learner.report().await.expect("a task");
    assert_eq!((task.candidate_iteration, task.published_iteration), (0, 1));
    (rig, actor, learner)
}

/// Plays match leases until one more gate is decided; the winning model of each game is `winner`.
pub(crate) async fn play_gate(rig: &Rig, actor: &mut Actor, winner: Option<usize>) {
    let decided = rig.status().await.gates_decided;
    while rig.status().await.gates_decided == decided {
        let work = actor.match_work(100.0).await;
        for index in 0..work.order.plan.games() {
            let record = actor.play_to(&work, index, winner);
            assert_eq!(actor.submit(&record).await, Verdict::Stored);
        }
    }
}

#[tokio::test]
async fn without_a_gate_every_candidate_is_promoted_at_once() {
    let (rig, mut actor, _learner) = with_candidate(NONE).await;
    let status = rig.status().await;
    assert_eq!((status.generation, status.gates_decided), (1, 0));
    let champion = rig.model("champion").await;
    assert_eq!((champion.generation, champion.iteration), (Some(1), 1));
    assert_eq!(champion.state(), v1::ModelState::Champion);
    assert_eq!(champion.probes.len(), 1);
    assert!(champion.run_toml.contains("tic-tac-toe"));
    assert_eq!(rig.model("gen:0").await.state(), v1::ModelState::FormerChampion);
    // Self-play goes on with the new champion.
    assert_eq!(actor.work(0.0).await.order.models[0].0.to_vec(), champion.model_id);
    rig.stop().await;
}

#[tokio::test]
async fn a_candidate_that_wins_its_match_is_promoted() {
    let (rig, mut actor, _learner) = with_candidate(FIXED).await;
    let mut champions = rig
        .models()
        .await
        .watch_champion(v1::WatchChampionRequest {})
        .await
        .expect("a stream")
        .into_inner();
    assert_eq!(
        champions.message().await.expect("a model").expect("a model").generation,
        Some(0)
    );
    assert_eq!(rig.model("latest").await.state(), v1::ModelState::Gating);

    let work = actor.match_work(100.0).await;
    let Plan::Match { games } = &work.order.plan else {
        panic!("a match")
    };
    assert_eq!(games.len(), 4);
    for pair in games.chunks(2) {
        assert_eq!((pair[0].pair, &pair[0].opening), (pair[1].pair, &pair[1].opening));
        assert_eq!((pair[0].seat0_model, pair[1].seat0_model), (0, 1));
        assert!(!pair[0].opening.is_empty());
    }
    assert_ne!(games[0].opening, games[2].opening);
    let search = work.order.settings;
    assert_eq!(
        (search.noise_fraction, search.temperature, search.simulations),
        (0.0, 0.0, 8)
    );
    for index in 0..2 {
        let record = actor.play_to(&work, index, Some(0));
        assert_eq!(actor.submit(&record).await, Verdict::Stored);
    }
    assert_eq!(rig.status().await.gate.expect("a gate").pairs, 1);
    for (index, winner) in [(2, Some(0)), (3, None)] {
        let record = actor.play_to(&work, index, winner);
        assert_eq!(actor.submit(&record).await, Verdict::Stored);
    }
    let status = rig.status().await;
    assert_eq!((status.generation, status.gates_decided, status.gate), (1, 1, None));
    let champion = champions.message().await.expect("a model").expect("a model");
    assert_eq!(champion.generation, Some(1));
    assert!(
        champion.verdict.starts_with("promoted: 3 wins, 1 draws and 0 losses"),
        "{}",
        champion.verdict
    );

    let mut run = RunServiceClient::new(rig.channel().await);
    let matches = run
        .list_matches(v1::ListMatchesRequest::default())
        .await
        .expect("a list")
        .into_inner()
        .gates;
    assert_eq!(matches.len(), 1);
    assert_eq!(
        (matches[0].wins, matches[0].draws, matches[0].state()),
        (3, 1, v1::GateState::Promoted)
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_candidate_that_fails_leaves_the_champion_and_the_next_one_has_its_turn() {
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    // While the gate is open self-play goes on, and newer candidates take each other's place.
    for iteration in [2, 3] {
        let mut second = Actor::new(&rig, "actor-2").await;
        let mut played = 0;
        while played < 4 {
            let work = second.work(1.0).await;
            if let Plan::SelfPlay { games, .. } = work.order.plan {
                for index in 0..games.min(4 - played) {
                    let record = second.play(&work, index);
                    assert_eq!(second.submit(&record).await, Verdict::Stored);
                    played += 1;
                }
            }
        }
        let held: Vec<_> = second_leases(&rig);
        second.report(vec![], held).await;
        learner.publish(iteration).await.expect("a candidate");
    }
    assert_eq!(rig.status().await.candidates_waiting, 1);
    assert_eq!(rig.count("SELECT count(*) FROM models WHERE state = 'superseded'"), 1);

    play_gate(&rig, &mut actor, Some(1)).await;
    let status = rig.status().await;
    assert_eq!(
        (status.generation, status.gates_decided, status.candidates_waiting),
        (0, 1, 0)
    );
    assert_eq!(status.gate.expect("the next gate").iteration, 3);
    assert_eq!(
        rig.count("SELECT count(*) FROM models WHERE state = 'rejected' AND iteration = 1"),
        1
    );
    play_gate(&rig, &mut actor, Some(0)).await;
    assert_eq!(rig.model("champion").await.iteration, 3);
    rig.stop().await;
}

/// Match leases that the second actor took along the way, to be handed back.
fn second_leases(rig: &Rig) -> Vec<Vec<u8>> {
    let database = rusqlite::Connection::open(rig.path("tengen.db")).expect("a database");
    let sql = "SELECT lease FROM leases WHERE actor = 'actor-2' AND state = 'active'";
    let mut statement = database.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("leases")
}

#[tokio::test]
async fn a_returned_match_lease_is_handed_on_and_its_late_games_do_not_count() {
    let (rig, mut actor, _learner) = with_candidate(FIXED).await;
    let first = actor.match_work(100.0).await;
    let record = actor.play_to(&first, 0, Some(0));
    assert_eq!(actor.submit(&record).await, Verdict::Stored);
    let id = first.order.lease.to_bytes().to_vec();
    assert!(actor.report(vec![id.clone()], vec![]).await.is_empty());
    actor.report(vec![], vec![id.clone()]).await;
    // The actor is told to drop what it handed back, should it still be at it.
    assert_eq!(actor.report(vec![id.clone()], vec![]).await, [id]);
    for index in 1..4 {
        let late = actor.play_to(&first, index, Some(0));
        assert_eq!(actor.submit(&late).await, Verdict::Stored);
    }
    let status = rig.status().await;
    assert_eq!((status.match_games, status.gate.expect("still open").pairs), (4, 0));
    assert_eq!(rig.count("SELECT count(*) FROM gate_log WHERE standing = 'late'"), 3);

    play_gate(&rig, &mut actor, Some(1)).await;
    let status = rig.status().await;
    assert_eq!((status.generation, status.gates_decided), (0, 1));
    rig.stop().await;
}

/// The game with all searches of each of the two models in one precision.
fn played_in(record: &Record, of_models: [Precision; 2]) -> Record {
    let mut record = record.clone();
    for ply in &mut record.plies {
        if let Some(search) = &mut ply.search {
            search.precision = of_models[ply.model.index()];
        }
    }
    record
}

#[tokio::test]
async fn a_game_whose_sides_play_in_different_precisions_is_refused_and_does_not_count() {
    let (rig, mut actor, _learner) = with_candidate(FIXED).await;
    let work = actor.match_work(100.0).await;
    let first = actor.play_to(&work, 0, Some(0));
    assert_eq!(actor.submit(&first).await, Verdict::Stored);
    // A game in which both sides have searched.
    let second = (0..100).map(|_| actor.play_to(&work, 1, Some(0))).find(|record| {
        let searched = |model: usize| {
            let mut plies = record.plies.iter();
            plies.any(|ply| ply.model.index() == model && ply.search.is_some())
        };
        searched(0) && searched(1)
    });
    let second = second.expect("nine in ten plies are searched");
    for mixed in [
        [Precision::Fp32, Precision::Int8],
        [Precision::Int8, Precision::Fp32],
        [Precision::Fp16, Precision::Int8],
    ] {
        let answer = actor.submit_bytes(encode(&played_in(&second, mixed))).await;
        assert_eq!(
            (answer.verdict(), answer.reason_code.as_str()),
            (Verdict::Rejected, ReasonCode::MixedPrecisions.as_str()),
            "{mixed:?}: {}",
            answer.detail
        );
    }
    let status = rig.status().await;
    assert_eq!((status.match_games, status.gate.expect("a gate").pairs), (1, 0));
    // In one precision it does, whichever its pair's other game was in.
    let second = played_in(&second, [Precision::Int8; 2]);
    assert_eq!(actor.submit(&second).await, Verdict::Stored);
    assert_eq!(rig.status().await.gate.expect("a gate").pairs, 1);
    rig.stop().await;
}

#[tokio::test]
async fn a_lapsed_lease_is_handed_on_and_its_late_games_are_kept() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path(), &toml);
    // Whoever asks next finds every earlier lease lapsed.
    options.leases.lapse_ms = 0;
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(0.0).await;
    for index in 0..4 {
        let late = actor.play(&work, index);
        assert_eq!(actor.submit(&late).await, Verdict::Stored);
    }
    assert_eq!(rig.count("SELECT count(*) FROM leases WHERE state = 'lapsed'"), 1);
    assert_eq!(rig.status().await.iteration, 1);
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let first = actor.match_work(100.0).await;
    let second = actor.match_work(100.0).await;
    assert_eq!(first.order.plan, second.order.plan);
    let late = actor.play(&first, 0);
    assert_eq!(actor.submit(&late).await, Verdict::Stored);
    assert_eq!(rig.count("SELECT count(*) FROM gate_log WHERE standing = 'late'"), 1);
    rig.stop().await;
}

#[tokio::test]
async fn match_work_does_not_wait_for_self_play_that_was_handed_out_before() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut other = Actor::new(&rig, "actor-2").await;
    let early = actor.work(100.0).await;
    let others = other.work(100.0).await;
    let (early_id, others_id) = [&early, &others]
        .map(|work| work.order.lease.to_bytes().to_vec())
        .into();
    let wishes = actor.report_for_wishes(vec![early_id.clone()], vec![]).await;
    assert!(wishes.wanted_back_lease_ids.is_empty(), "no match waits");

    actor.deliver(4).await;
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    assert!(rig.status().await.gate.is_some());
    // A restart forgets neither.
    let rig = rig.restart(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut other = Actor::new(&rig, "actor-2").await;
    for (actor, lease) in [(&mut actor, &early_id), (&mut other, &others_id)] {
        let wishes = actor.report_for_wishes(vec![lease.clone()], vec![]).await;
        assert_eq!(
            wishes.wanted_back_lease_ids,
            std::slice::from_ref(lease),
            "each is asked for its own"
        );
    }
    let wishes = actor.report_for_wishes(vec![], vec![early_id.clone()]).await;
    assert!(wishes.wanted_back_lease_ids.is_empty(), "it is back");

    // Half of the pairs for each of two actors; the other one's lease is wanted as long as its half waits.
    let mine = actor.work(100.0).await;
    assert!(matches!(mine.order.plan, Plan::Match { .. }));
    let wishes = other.report_for_wishes(vec![others_id.clone()], vec![]).await;
    assert_eq!(wishes.wanted_back_lease_ids, std::slice::from_ref(&others_id));
    let theirs = other.work(100.0).await;
    assert!(matches!(theirs.order.plan, Plan::Match { .. }));
    let wishes = other.report_for_wishes(vec![others_id], vec![]).await;
    assert!(wishes.wanted_back_lease_ids.is_empty(), "every pair has somebody");

    // Games of a lease that went back are as welcome as ever.
    let late = actor.play(&early, 0);
    assert_eq!(actor.submit(&late).await, Verdict::Stored);
    assert_eq!(rig.status().await.games, 5);
    rig.stop().await;
}
