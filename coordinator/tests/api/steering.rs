//! Steering: every order over the wire, what it does at once, after a restart, and when somebody was quicker.

use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{Activity, GateState, ModelState};
use tengen_records::ModelId;
use tengen_selfplay::Plan;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::database::assert_sound;
use crate::gates::{play_gate, with_candidate};
use crate::rig::{Actor, FIXED, Learner, NONE, Rig, TIC_TAC_TOE};
use crate::settings;

const REASON: &str = "the test wants it";

pub(crate) async fn pause(rig: &Rig, activity: Activity) -> v1::Steering {
    let request = v1::PauseRequest {
        activity: activity.into(),
        reason: REASON.to_owned(),
    };
    rig.admin()
        .await
        .pause(request)
        .await
        .expect("it is paused")
        .into_inner()
}

pub(crate) async fn resume(rig: &Rig, activity: Activity) -> v1::Steering {
    let request = v1::ResumeRequest {
        activity: activity.into(),
        reason: String::new(),
    };
    rig.admin()
        .await
        .resume(request)
        .await
        .expect("it goes on")
        .into_inner()
}

/// What an order is based on: the run as it is now.
pub(crate) async fn expected(rig: &Rig) -> Option<v1::Expected> {
    let status = rig.status().await;
    Some(v1::Expected {
        champion_id: status.champion.expect("a champion").model_id,
        gate_id: Some(status.gate.map_or(0, |gate| gate.gate_id)),
    })
}

async fn promote(rig: &Rig, model: &v1::Model, expected: Option<v1::Expected>) -> Result<v1::Model, Status> {
    let request = v1::PromoteModelRequest {
        model_id: model.model_id.clone(),
        expected,
        reason: REASON.to_owned(),
    };
    Ok(rig.admin().await.promote_model(request).await?.into_inner())
}

async fn reject(rig: &Rig, model: &v1::Model) -> Result<v1::Model, Status> {
    let request = v1::RejectCandidateRequest {
        model_id: model.model_id.clone(),
        expected: expected(rig).await,
        reason: REASON.to_owned(),
    };
    Ok(rig.admin().await.reject_candidate(request).await?.into_inner())
}

async fn roll_back(rig: &Rig, model: &v1::Model, pin: bool) -> Result<v1::Model, Status> {
    let request = v1::RollBackRequest {
        model_id: model.model_id.clone(),
        expected: expected(rig).await,
        reason: REASON.to_owned(),
        pin,
    };
    Ok(rig.admin().await.roll_back(request).await?.into_inner())
}

pub(crate) async fn pin(rig: &Rig, expected: Option<v1::Expected>) -> Result<v1::Steering, Status> {
    let request = v1::PinChampionRequest {
        expected,
        reason: String::new(),
    };
    Ok(rig.admin().await.pin_champion(request).await?.into_inner())
}

async fn unpin(rig: &Rig, expected: Option<v1::Expected>) -> Result<v1::Steering, Status> {
    let request = v1::UnpinChampionRequest {
        reason: REASON.to_owned(),
        expected,
    };
    Ok(rig.admin().await.unpin_champion(request).await?.into_inner())
}

pub(crate) async fn end(rig: &Rig, run: &str) -> Result<v1::Steering, Status> {
    let request = v1::EndRunRequest {
        run_id: run.to_owned(),
        reason: REASON.to_owned(),
    };
    Ok(rig.admin().await.end_run(request).await?.into_inner())
}

/// A network's id as people read it.
fn name(id: &[u8]) -> String {
    ModelId::from_bytes(id).expect("an id").to_string()
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, Status>, code: Code, reason: &str) -> String {
    let status = outcome.expect_err("a refusal");
    let details = status.get_error_details();
    let given = details.error_info().map(|info| info.reason.clone()).unwrap_or_default();
    assert_eq!((status.code(), given.as_str()), (code, reason), "{status}");
    status.message().to_owned()
}

async fn gates(rig: &Rig) -> Vec<v1::Gate> {
    let mut run = RunServiceClient::new(rig.channel().await);
    let page = run.list_matches(v1::ListMatchesRequest::default()).await;
    page.expect("a page").into_inner().gates
}

#[tokio::test]
async fn each_activity_is_paused_apart_over_a_restart_and_what_is_under_way_ends() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    let under_way = actor.match_work(1.0).await;
    assert_eq!(under_way.order.plan.games(), 2, "one of two pairs");

    let steering = pause(&rig, Activity::Gating).await;
    assert_eq!(steering.paused, [i32::from(Activity::Gating)]);
    // Nobody plays the other pair, and self-play goes on.
    for _ in 0..3 {
        assert!(matches!(actor.work(100.0).await.order.plan, Plan::SelfPlay { .. }));
    }
    pause(&rig, Activity::SelfPlay).await;
    assert_eq!(actor.no_work().await, "self-play is paused");
    pause(&rig, Activity::Training).await;
    pause(&rig, Activity::Training).await;
    assert!(learner.report().await.expect("a task").training_paused);
    let waiting = rig.status().await.waiting;
    for activity in ["self-play", "training", "gating"] {
        assert!(waiting.contains(&format!("{activity} is paused")), "{waiting}");
    }

    let rig = rig.restart(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    assert_eq!(rig.status().await.steering.expect("steering").paused.len(), 3);
    assert_eq!(actor.no_work().await, "self-play is paused");
    let mut learner = Learner::new(&rig).await;
    assert!(learner.welcome.training_paused, "before its first step");
    assert!(learner.report().await.expect("a task").training_paused);
    // What was under way still counts.
    for index in 0..2 {
        let record = actor.play_to(&under_way, index, Some(0));
        assert_eq!(actor.submit(&record).await, v1::Verdict::Stored);
    }
    assert_eq!(rig.status().await.gate.expect("a gate").pairs, 1);

    resume(&rig, Activity::Gating).await;
    assert!(matches!(actor.work(100.0).await.order.plan, Plan::Match { .. }));
    resume(&rig, Activity::SelfPlay).await;
    assert!(matches!(actor.work(100.0).await.order.plan, Plan::SelfPlay { .. }));
    let steering = resume(&rig, Activity::Training).await;
    assert_eq!(steering, v1::Steering::default());

    let trail = rig.trail().await;
    let rows: Vec<_> = trail.iter().filter(|row| row.detail.starts_with("training")).collect();
    assert_eq!(rows.len(), 2, "the second pause changed nothing: {trail:?}");
    assert_eq!(
        (rows[1].action.as_str(), rows[1].old.as_str(), rows[1].new.as_str()),
        ("pause", "goes on", "paused")
    );
    assert_eq!(
        (rows[1].who.as_str(), rows[1].detail.as_str()),
        ("local", "training: the test wants it")
    );
    let bad = rig.admin().await.pause(v1::PauseRequest::default()).await;
    assert_eq!(bad.expect_err("a refusal").code(), Code::InvalidArgument);
    rig.stop().await;
}

#[tokio::test]
async fn while_gating_is_paused_candidates_wait_and_without_a_gate_nobody_is_promoted() {
    for gate in [FIXED, NONE] {
        let rig = Rig::start(&format!("{TIC_TAC_TOE}{gate}")).await;
        pause(&rig, Activity::Gating).await;
        let mut actor = Actor::new(&rig, "actor-1").await;
        let mut learner = Learner::new(&rig).await;
        actor.deliver(4).await;
        let first = learner.publish(1).await.expect("a candidate");
        actor.deliver(4).await;
        learner.publish(2).await.expect("a candidate");
        let status = rig.status().await;
        assert_eq!(
            (status.gate, status.generation, status.candidates_waiting),
            (None, 0, 1)
        );
        assert_eq!(rig.model(&name(&first.model_id)).await.state(), ModelState::Superseded);
        resume(&rig, Activity::Gating).await;
        let status = rig.status().await;
        assert_eq!(
            (status.gate.is_some(), status.generation),
            (gate == FIXED, u32::from(gate == NONE))
        );
        rig.stop().await;
    }
}

#[tokio::test]
async fn of_two_promotions_at_once_one_wins_and_the_other_hears_both_champions() {
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    let first = rig.model("latest").await;
    // With every pair in somebody's hands there is self-play to be had.
    actor.match_work(100.0).await;
    actor.deliver(4).await;
    learner.publish(2).await.expect("a candidate");
    let second = rig.model("latest").await;
    let seen = expected(&rig).await;
    let old = seen.clone().expect("expected").champion_id;
    let (one, other) = tokio::join!(promote(&rig, &first, seen.clone()), promote(&rig, &second, seen));
    let (won, lost) = match (one, other) {
        (Ok(won), lost) => (won, lost),
        (lost, Ok(won)) => (won, lost),
        neither => panic!("nobody won: {neither:?}"),
    };
    let text = assert_refused(lost, Code::Aborted, "STALE");
    for champion in [&old, &won.model_id] {
        assert!(text.contains(&name(champion)), "{text}");
    }
    assert_eq!((won.generation, won.state()), (Some(1), ModelState::Champion));
    assert_eq!(won.verdict, format!("promoted by hand (local): {REASON}"));
    assert_eq!(rig.status().await.champion.expect("a champion").model_id, won.model_id);
    assert_eq!(rig.count("SELECT count(*) FROM audit WHERE action = 'promote'"), 1);
    // Self-play names the new champion.
    let order = loop {
        let order = actor.work(0.0).await.order;
        if matches!(order.plan, Plan::SelfPlay { .. }) {
            break order;
        }
    };
    assert_eq!(order.models[0].0.to_vec(), won.model_id);
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn promoting_by_hand_closes_the_gate_and_the_candidate_in_it_meets_the_new_champion() {
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    let first = rig.model("latest").await;
    // The gate rejects it; people promote it all the same, and then the next one's gate is on.
    let work = actor.match_work(100.0).await;
    for index in 0..4 {
        let record = actor.play_to(&work, index, Some(1));
        actor.submit(&record).await;
    }
    actor.deliver(4).await;
    learner.publish(2).await.expect("a candidate");
    let second = rig.model("latest").await;
    let under_way = actor.match_work(100.0).await;
    let stale = v1::Expected {
        gate_id: Some(1),
        ..expected(&rig).await.expect("expected")
    };
    let text = assert_refused(promote(&rig, &first, Some(stale)).await, Code::Aborted, "STALE");
    assert!(text.contains("gate 1") && text.contains("gate 2"), "{text}");
    assert_eq!(
        promote(&rig, &first, None).await.expect_err("a refusal").code(),
        Code::InvalidArgument
    );

    let seen = expected(&rig).await;
    promote(&rig, &first, seen).await.expect("it is promoted");
    let list = gates(&rig).await;
    let states: Vec<GateState> = list.iter().map(v1::Gate::state).collect();
    assert_eq!(states, [GateState::Open, GateState::Void, GateState::Rejected]);
    assert_eq!(
        (&list[0].champion_id, &list[0].candidate_id),
        (&first.model_id, &second.model_id)
    );
    assert!(
        list[1].reason.starts_with("void: promoted by hand (local)"),
        "{}",
        list[1].reason
    );
    // Games of the closed gate are kept and not counted.
    let cancelled = actor
        .report(vec![under_way.order.lease.to_bytes().to_vec()], vec![])
        .await;
    assert_eq!(cancelled.len(), 1);
    let late = actor.play_to(&under_way, 0, Some(0));
    assert_eq!(actor.submit(&late).await, v1::Verdict::Stored);
    assert_eq!(rig.status().await.gate.expect("a gate").pairs, 0);

    let champion = rig.model("champion").await;
    assert_refused(
        promote(&rig, &champion, expected(&rig).await).await,
        Code::FailedPrecondition,
        "IS_CHAMPION",
    );
    let zero = rig.model("gen:0").await;
    assert_refused(
        promote(&rig, &zero, expected(&rig).await).await,
        Code::FailedPrecondition,
        "WAS_CHAMPION",
    );
    let unknown = v1::Model {
        model_id: vec![9; 32],
        ..v1::Model::default()
    };
    assert_refused(
        promote(&rig, &unknown, expected(&rig).await).await,
        Code::NotFound,
        "NO_SUCH_MODEL",
    );
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn rejecting_a_candidate_closes_its_gate_and_the_learner_goes_on() {
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    let candidate = rig.model("latest").await;
    let rejected = reject(&rig, &candidate).await.expect("it is rejected");
    assert_eq!(rejected.state(), ModelState::Rejected);
    assert_eq!(rejected.verdict, format!("rejected by hand (local): {REASON}"));
    let status = rig.status().await;
    assert_eq!((status.gate, status.generation, status.gates_decided), (None, 0, 1));
    assert_eq!(gates(&rig).await[0].state(), GateState::Void);
    let text = assert_refused(reject(&rig, &candidate).await, Code::FailedPrecondition, "NO_CANDIDATE");
    assert!(text.contains("there is none"), "{text}");
    let row = rig.trail().await.remove(0);
    assert_eq!(
        (row.action.as_str(), row.old.as_str(), row.new.as_str()),
        ("reject", "gate 1", "no candidate")
    );
    actor.deliver(4).await;
    assert_eq!(learner.report().await.expect("a task").candidate_iteration, 2);
    learner.publish(2).await.expect("the next one");
    assert_eq!(rig.status().await.gate.expect("a gate").gate_id, 2);
    rig.stop().await;
}

#[tokio::test]
async fn a_roll_back_names_an_earlier_champion_and_generations_go_on_counting() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    play_gate(&rig, &mut actor, Some(0)).await;
    actor.deliver(4).await;
    learner.publish(2).await.expect("a candidate");
    play_gate(&rig, &mut actor, Some(0)).await;
    assert_eq!(rig.status().await.generation, 2);
    actor.deliver(4).await;
    learner.publish(3).await.expect("a candidate");
    let third = rig.model("latest").await;
    assert_refused(
        roll_back(&rig, &third, false).await,
        Code::FailedPrecondition,
        "NEVER_CHAMPION",
    );

    let first = rig.model("gen:1").await;
    let back = roll_back(&rig, &first, true).await.expect("it is champion again");
    assert_eq!((back.generation, back.state()), (Some(1), ModelState::Champion));
    assert_eq!(rig.model("gen:2").await.state(), ModelState::FormerChampion);
    let status = rig.status().await;
    assert!(status.steering.expect("steering").pinned);
    assert_eq!(
        (status.generation, status.gate.map(|gate| gate.champion_id)),
        (1, Some(first.model_id.clone()))
    );
    assert_eq!(rig.count("SELECT count(*) FROM rollbacks WHERE who = 'local'"), 1);

    // It outlives a restart, and the candidate that wins is held while the champion is pinned.
    let rig = rig.restart(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    assert_eq!(rig.model("champion").await.model_id, first.model_id);
    play_gate(&rig, &mut actor, Some(0)).await;
    let held = rig.model("latest").await;
    assert_eq!((held.state(), rig.status().await.generation), (ModelState::Held, 1));
    assert!(
        held.verdict.ends_with("not promoted, because the champion is pinned"),
        "{}",
        held.verdict
    );
    let seen = expected(&rig).await;
    let unpinned = unpin(&rig, seen.clone()).await.expect("it is unpinned");
    assert!(!unpinned.pinned);
    let promoted = promote(&rig, &held, seen).await.expect("it is promoted");
    assert_eq!(promoted.generation, Some(3), "generation 2 stays the other network's");
    assert_refused(
        roll_back(&rig, &promoted, false).await,
        Code::FailedPrecondition,
        "IS_CHAMPION",
    );
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn pinning_and_unpinning_name_the_champion_they_were_based_on() {
    let (rig, mut actor, _learner) = with_candidate(FIXED).await;
    let seen = expected(&rig).await;
    play_gate(&rig, &mut actor, Some(0)).await;
    assert_refused(pin(&rig, seen.clone()).await, Code::Aborted, "STALE");
    let pinned = pin(&rig, expected(&rig).await).await;
    assert!(pinned.expect("it is pinned").pinned);
    let row = rig.trail().await.remove(0);
    assert_eq!(
        (row.action.as_str(), row.old.as_str(), row.new.as_str()),
        ("pin", "not pinned", "pinned")
    );

    let text = assert_refused(unpin(&rig, seen.clone()).await, Code::Aborted, "STALE");
    for champion in [
        &seen.expect("expected").champion_id,
        &rig.model("champion").await.model_id,
    ] {
        assert!(text.contains(&name(champion)), "{text}");
    }
    assert_eq!(
        unpin(&rig, None).await.expect_err("a refusal").code(),
        Code::InvalidArgument
    );
    assert!(
        rig.status().await.steering.expect("steering").pinned,
        "nothing has changed"
    );
    let unpinned = unpin(&rig, expected(&rig).await).await.expect("it is unpinned");
    assert!(!unpinned.pinned);
    rig.stop().await;
}

#[tokio::test]
async fn an_ended_run_hands_out_nothing_takes_no_candidate_and_stays_readable() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    let under_way = loop {
        let work = actor.work(1.0).await;
        if matches!(work.order.plan, Plan::SelfPlay { .. }) {
            break work;
        }
    };
    assert_refused(end(&rig, "another").await, Code::FailedPrecondition, "OTHER_RUN");
    let ended = end(&rig, "test").await.expect("it has ended");
    assert!(ended.ended_unix_ms > 0);
    assert_eq!(actor.no_work().await, "the run has ended");
    assert!(learner.report().await.expect("a task").ended);
    assert_eq!(gates(&rig).await[0].state(), GateState::Void);
    // A game that was under way is stored all the same.
    let late = actor.play(&under_way, 0);
    assert_eq!(actor.submit(&late).await, v1::Verdict::Stored);

    let rig = rig.restart(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    assert_eq!(actor.no_work().await, "the run has ended");
    assert!(learner.report().await.expect("a task").ended);
    assert_refused(learner.publish(2).await, Code::FailedPrecondition, "RUN_ENDED");
    assert_refused(end(&rig, "test").await, Code::FailedPrecondition, "RUN_ENDED");
    let request = v1::ResumeRequest {
        activity: Activity::SelfPlay.into(),
        reason: String::new(),
    };
    let again = rig.admin().await.resume(request).await;
    assert_refused(again, Code::FailedPrecondition, "RUN_ENDED");
    let status = rig.status().await;
    assert_eq!(status.steering.expect("steering").ended_unix_ms, ended.ended_unix_ms);
    assert_eq!(status.waiting.split(';').next(), Some("the run has ended"));
    assert_eq!(rig.listed_models().await.len(), 2);
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn every_order_has_its_row_in_the_audit_with_who_gave_it_and_what_was_before_and_after() {
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    pause(&rig, Activity::Training).await;
    resume(&rig, Activity::Training).await;
    settings::set(&rig, &[("learner.learning_rate", "0.005")]).await;
    pin(&rig, expected(&rig).await).await.expect("it is pinned");
    unpin(&rig, expected(&rig).await).await.expect("it is unpinned");
    let first = rig.model("latest").await;
    reject(&rig, &first).await.expect("it is rejected");
    actor.deliver(4).await;
    learner.publish(2).await.expect("a candidate");
    let (zero, second) = (rig.model("gen:0").await, rig.model("latest").await);
    promote(&rig, &second, expected(&rig).await)
        .await
        .expect("it is promoted");
    roll_back(&rig, &zero, false).await.expect("it is champion again");
    end(&rig, "test").await.expect("it has ended");

    let champion = |generation: u32, model: &v1::Model| format!("generation {generation} ({})", name(&model.model_id));
    let (before, after) = (champion(0, &zero), champion(1, &second));
    let wanted = [
        ("pause", "goes on", "paused"),
        ("resume", "paused", "goes on"),
        (
            "change-settings",
            "learner.learning_rate = 0.02",
            "learner.learning_rate = 0.005",
        ),
        ("pin", "not pinned", "pinned"),
        ("unpin", "pinned", "not pinned"),
        ("reject", "gate 1", "no candidate"),
        ("promote", before.as_str(), after.as_str()),
        ("roll-back", after.as_str(), before.as_str()),
        ("end-run", "goes on", "ended"),
    ];
    let trail = rig.trail().await;
    let newest = trail.iter().take(wanted.len()).rev();
    let rows: Vec<_> = newest
        .map(|row| (row.action.as_str(), row.old.as_str(), row.new.as_str()))
        .collect();
    assert_eq!(rows, wanted);
    let orders = &trail[..wanted.len()];
    assert!(orders.iter().all(|row| row.who == "local"), "{trail:#?}");
    rig.stop().await;
}
