//! What decides a gate beside a fixed score: a sequential test, several in a row, a pool; and what happens when openings
//! run out or candidates queue.

use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_selfplay::Plan;

use crate::gates::{play_gate, with_candidate};
use crate::rig::{Actor, Learner, Rig, TIC_TAC_TOE};

const SPRT: &str = "[gate]\nkind = \"sprt\"\ngate_share = 1.0\n[gate.sprt]\nunit = \"score\"\nlower = 0.4\nupper = 0.9\n\
                    alpha = 0.2\nbeta = 0.2\ngames_max = 20\n";

async fn matches(rig: &Rig) -> Vec<v1::Gate> {
    let mut run = RunServiceClient::new(rig.channel().await);
    let listed = run.list_matches(v1::ListMatchesRequest::default()).await;
    listed.expect("a list").into_inner().gates
}

/// Plays one pair of the gate, in a lease of its own.
async fn play_pair(actor: &mut Actor, winner: usize) {
    let work = actor.match_work(1.0).await;
    assert_eq!(work.order.plan.games(), 2);
    for index in 0..2 {
        let record = actor.play_to(&work, index, Some(winner));
        assert_eq!(actor.submit(&record).await, Verdict::Stored);
    }
}

/// Plays random games until one more gate is decided.
async fn play_randomly(rig: &Rig, actor: &mut Actor) {
    let decided = rig.status().await.gates_decided;
    while rig.status().await.gates_decided == decided {
        let work = actor.match_work(20.0).await;
        for index in 0..work.order.plan.games() {
            let record = actor.play(&work, index);
            assert_eq!(actor.submit(&record).await, Verdict::Stored);
        }
    }
}

#[tokio::test]
async fn a_sequential_gate_ends_early_tells_its_evidence_and_survives_a_restart() {
    let (rig, mut actor, _learner) = with_candidate(SPRT).await;
    play_pair(&mut actor, 0).await;
    let before = rig.status().await.gate.expect("a gate");
    assert_eq!((before.pairs, before.pairs_target), (1, 10));
    assert_eq!(before.pairs_by_half_points, [0, 0, 0, 0, 1]);
    assert!(before.llr.expect("it goes by one") > 0.0 && before.llr_upper > 1.38 && before.llr_lower < -1.38);
    assert!(
        before.rule.contains("sprt of 0.9 to 0.4 points a game"),
        "{}",
        before.rule
    );

    let rig = rig.restart(&format!("{TIC_TAC_TOE}{SPRT}")).await;
    let after = rig.status().await.gate.expect("a gate");
    assert_eq!(
        (after.pairs, after.llr),
        (before.pairs, before.llr),
        "counted again from its log"
    );
    let mut actor = Actor::new(&rig, "actor-1").await;
    play_gate(&rig, &mut actor, Some(0)).await;
    let gate = matches(&rig).await.remove(0);
    assert_eq!(gate.state(), v1::GateState::Promoted);
    assert!(
        gate.pairs < 10 && gate.llr.expect("it is stored") >= gate.llr_upper,
        "{gate:?}"
    );
    assert!(
        gate.elo > 0.0 && gate.elo_low < gate.elo && gate.elo < gate.elo_high,
        "{gate:?}"
    );
    assert!(
        gate.reason.contains("the log-likelihood ratio") && gate.reason.contains("reached 1.39"),
        "{}",
        gate.reason
    );
    assert_eq!(
        rig.count("SELECT count(*) FROM gates WHERE llr > 1.38 AND elo_low < elo AND pair_scores LIKE '[0,%'"),
        1
    );
    rig.stop().await;
}

#[tokio::test]
async fn several_candidates_in_a_row_must_pass_and_the_last_is_promoted() {
    let gate =
        "[gate]\nkind = \"fixed\"\ngames = 2\nthreshold = 0.6\nstrict = true\nconsecutive = 2\ngate_share = 1.0\n";
    let (rig, mut actor, mut learner) = with_candidate(gate).await;
    let mut states = Vec::new();
    // Passes, fails, passes, and with a restart in between passes again.
    for (iteration, winner) in [(1, 0), (2, 1), (3, 0)] {
        if iteration > 1 {
            actor.deliver(4).await;
            learner.publish(iteration).await.expect("a candidate");
        }
        play_gate(&rig, &mut actor, Some(winner)).await;
        let gate = matches(&rig).await.remove(0);
        states.push((gate.state(), gate.streak, gate.streak_needed));
    }
    use v1::GateState::{Passed, Rejected};
    assert_eq!(states, [(Passed, 1, 2), (Rejected, 0, 2), (Passed, 1, 2)]);
    assert_eq!(rig.status().await.generation, 0);
    assert_eq!(rig.count("SELECT count(*) FROM models WHERE state = 'superseded'"), 2);

    let rig = rig.restart(&format!("{TIC_TAC_TOE}{gate}")).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    actor.deliver(4).await;
    learner.publish(4).await.expect("a candidate");
    play_gate(&rig, &mut actor, Some(0)).await;
    let champion = rig.model("champion").await;
    assert_eq!((champion.iteration, champion.generation), (4, Some(1)));
    assert!(
        champion.verdict.starts_with("promoted as number 2 of 2 in a row"),
        "{}",
        champion.verdict
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_candidate_that_loses_to_an_earlier_champion_is_rejected() {
    let gate = "[gate]\nkind = \"fixed\"\ngames = 2\nthreshold = 0.6\ngate_share = 1.0\n[gate.pool]\nchampions = 3\ngames = 4\n";
    let (rig, mut actor, mut learner) = with_candidate(gate).await;
    play_gate(&rig, &mut actor, Some(0)).await;
    actor.deliver(4).await;
    learner.publish(2).await.expect("a candidate");
    play_gate(&rig, &mut actor, Some(0)).await;
    let first = rig.model("gen:1").await;
    assert_eq!(rig.status().await.generation, 2);
    // Neither had an earlier champion to meet: the random network is none.
    assert!(matches(&rig).await.iter().all(|gate| gate.pool.is_empty()));

    actor.deliver(4).await;
    learner.publish(3).await.expect("a candidate");
    play_pair(&mut actor, 0).await;
    let status = rig.status().await;
    assert_eq!(status.generation, 2, "the pool is still to come");
    let pool = status.gate.expect("it is open").pool;
    assert_eq!((pool.len(), pool[0].pairs, pool[0].pairs_target), (1, 0, 2));
    assert_eq!(pool[0].opponent_id, first.model_id);
    let work = actor.match_work(100.0).await;
    assert_eq!(
        work.order.models[1].0.to_vec(),
        first.model_id,
        "the earlier champion is the opponent"
    );
    let Plan::Match { games } = &work.order.plan else {
        panic!("a match")
    };
    assert!(games.iter().all(|game| !game.opening.is_empty()));
    for index in 0..4 {
        let record = actor.play_to(&work, index, Some(1));
        if rig.status().await.gate.is_some() {
            assert_eq!(actor.submit(&record).await, Verdict::Stored);
        }
    }
    let gate = matches(&rig).await.remove(0);
    assert_eq!((gate.state(), gate.score), (v1::GateState::Rejected, 1.0));
    assert_eq!(gate.pool[0].state(), v1::GateState::Rejected);
    assert!(
        gate.reason.contains("earlier champion:") && gate.reason.contains("lost"),
        "{}",
        gate.reason
    );
    assert_eq!(rig.status().await.generation, 2);
    rig.stop().await;
}

#[tokio::test]
async fn a_match_without_enough_openings_is_shortened_or_samples_moves_and_says_which() {
    let gate =
        |more: &str| format!("[gate]\nkind = \"fixed\"\ngames = 2000\nthreshold = 0.9\ngate_share = 1.0\n{more}");
    let (rig, mut actor, _learner) = with_candidate(&gate("")).await;
    let short = rig.status().await.gate.expect("a gate");
    assert!(short.pairs_target < 1_000 && short.openings_repeated == 0, "{short:?}");
    play_randomly(&rig, &mut actor).await;
    let reason = matches(&rig).await.remove(0).reason;
    assert!(reason.contains("shortened from 1000 pairs"), "{reason}");
    rig.stop().await;

    let (rig, mut actor, _learner) = with_candidate(&gate("exhausted_openings = \"sample\"\n")).await;
    let long = rig.status().await.gate.expect("a gate");
    assert_eq!(
        (long.pairs_target, long.openings_repeated),
        (1_000, 1_000 - short.pairs_target)
    );
    let mut sampled = 0;
    while sampled == 0 {
        let work = actor.match_work(100.0).await;
        let Plan::Match { games } = &work.order.plan else {
            panic!("a match")
        };
        for game in games {
            assert_eq!(game.sampled_plies > 0, game.pair >= short.pairs_target, "{game:?}");
            sampled += u32::from(game.sampled_plies > 0);
        }
    }
    play_randomly(&rig, &mut actor).await;
    let reason = matches(&rig).await.remove(0).reason;
    assert!(
        reason.contains("repeat them with their first moves sampled"),
        "{reason}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn candidates_that_wait_have_their_gates_in_the_order_they_came() {
    let gate = "[gate]\nkind = \"fixed\"\ngames = 2\nthreshold = 0.6\ngate_share = 1.0\nqueue = \"wait\"\n";
    let toml = format!("{TIC_TAC_TOE}{gate}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    for _ in 0..3 {
        actor.deliver(4).await;
    }
    for iteration in 1..=3 {
        learner.publish(iteration).await.expect("a candidate");
    }
    assert_eq!(rig.status().await.candidates_waiting, 2);
    let rig = rig.restart(&toml).await;
    assert_eq!(rig.status().await.candidates_waiting, 2);
    let mut actor = Actor::new(&rig, "actor-1").await;
    for iteration in 1..=3 {
        assert_eq!(rig.status().await.gate.expect("a gate").iteration, iteration);
        play_gate(&rig, &mut actor, Some(1)).await;
    }
    assert_eq!(rig.count("SELECT count(*) FROM models WHERE state = 'rejected'"), 3);

    // With the other policy at the next start, only the newest of those that wait is kept.
    for _ in 0..3 {
        actor.deliver(4).await;
    }
    let mut learner = Learner::new(&rig).await;
    for iteration in 4..=6 {
        learner.publish(iteration).await.expect("a candidate");
    }
    let rig = rig.restart(&toml.replace("wait", "replace")).await;
    // Whoever registers is answered after what the start brought has been stored.
    Actor::new(&rig, "actor-2").await;
    assert_eq!(rig.status().await.candidates_waiting, 1);
    assert_eq!(
        rig.count("SELECT count(*) FROM models WHERE state = 'superseded' AND iteration = 5"),
        1
    );
    rig.stop().await;
}
