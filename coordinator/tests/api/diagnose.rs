//! Why nothing moves: causes are brought about and named. The actors and learners here are the tests' own, which also say of
//! themselves what real ones would; real ones that have something to say it about are in `tests/tests/doctor.rs`.

use tengen_proto::v1;
use tengen_proto::v1::Severity;
use tengen_proto::v1::run_service_client::RunServiceClient;

use crate::rig::{Actor, FIXED, Learner, NONE, Rig, TIC_TAC_TOE, hello, options};
use crate::steering;

/// Everything that is found now.
pub(crate) async fn findings(rig: &Rig) -> Vec<v1::Finding> {
    let mut client = RunServiceClient::new(rig.channel().await);
    let answer = client.diagnose(v1::DiagnoseRequest {}).await;
    answer.expect("a diagnosis").into_inner().findings
}

/// The finding of this cause.
pub(crate) async fn found(rig: &Rig, cause: &str) -> v1::Finding {
    let findings = findings(rig).await;
    let found = findings.iter().find(|finding| finding.cause == cause).cloned();
    let found = found.unwrap_or_else(|| panic!("no {cause} in {findings:#?}"));
    assert!(!found.sentence.is_empty() && !found.remedy.is_empty(), "{found:?}");
    assert!(!found.evidence.is_empty(), "{found:?}");
    assert!(found.evidence.iter().all(|line| !line.is_empty()), "{found:?}");
    found
}

async fn is_found(rig: &Rig, cause: &str) -> bool {
    findings(rig).await.iter().any(|finding| finding.cause == cause)
}

fn report(actor: &Actor) -> v1::ReportActorRequest {
    v1::ReportActorRequest {
        actor_id: actor.id.clone(),
        provider: "CPU".to_owned(),
        ..v1::ReportActorRequest::default()
    }
}

async fn say(learner: &mut Learner, status: v1::LearnerStatus) {
    let request = v1::ReportLearnerRequest {
        fence: learner.welcome.fence,
        status: Some(status),
        settings_revision: 0,
    };
    learner.client.report(request).await.expect("an answer");
}

#[tokio::test]
async fn an_empty_run_lacks_an_actor_and_a_learner() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let none = found(&rig, "no-actor").await;
    assert_eq!(none.severity(), Severity::Stops);
    assert!(none.sentence.contains("ever joined"), "{none:?}");
    found(&rig, "no-learner").await;
    let actor = Actor::new(&rig, "actor-1").await;
    assert!(!is_found(&rig, "no-actor").await);
    drop(actor);
    rig.stop().await;
}

#[tokio::test]
async fn the_learner_waits_for_a_window_then_for_games_then_self_play_for_it() {
    let more = "[learner]\nwindow_min_positions = 20\nbatch = 1\nsteps_behind_max = 5\nsamples_per_position = 1.0\n";
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}{more}")).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    let below = found(&rig, "window-below-minimum").await;
    assert_eq!(below.severity(), Severity::Note);
    assert!(below.evidence[0].starts_with("0 of 20 positions"), "{below:?}");

    actor.deliver(4).await;
    let slower = found(&rig, "learner-slower-than-data").await;
    assert!(slower.evidence[0].contains("near 5"), "{slower:?}");
    let positions = rig.status().await.positions;
    let waiting = v1::LearnerStatus {
        step: positions,
        activity: "waiting for games: 30 of 64 positions for the next step".to_owned(),
        ..v1::LearnerStatus::default()
    };
    say(&mut learner, waiting).await;
    let waits = found(&rig, "learner-waits-for-games").await;
    assert!(waits.evidence[0].contains("30 of 64"), "{waits:?}");
    assert!(!is_found(&rig, "learner-slower-than-data").await);
    rig.stop().await;
}

#[tokio::test]
async fn what_an_actor_says_of_itself_is_named() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let told = v1::ReportActorRequest {
        device: "auto".to_owned(),
        waiting: "a lease cannot be played: model 12ab is larger than 512 bytes".to_owned(),
        clock_unix_ms: 1_000,
        precision_fell_back: "network 12ab is not itself in int8 here".to_owned(),
        ..report(&actor)
    };
    actor.client.report(told).await.expect("an answer");
    let precision = found(&rig, "precision-fell-back").await;
    assert_eq!(precision.severity(), Severity::Note);
    assert!(precision.evidence[0].contains("network 12ab"), "{precision:?}");
    let without = found(&rig, "actor-without-model").await;
    assert!(without.evidence[0].contains("model 12ab"), "{without:?}");
    found(&rig, "no-actor-has-champion").await;
    found(&rig, "device-fell-back").await;
    let clock = found(&rig, "clock-off").await;
    assert!(clock.sentence.contains("behind"), "{clock:?}");
    let build = found(&rig, "other-build").await;
    assert!(build.sentence.contains("of build test"), "{build:?}");

    let told = v1::ReportActorRequest {
        waiting: "its spool is full".to_owned(),
        spool_bytes: 7 << 20,
        model_id: rig.model("champion").await.model_id,
        ..report(&actor)
    };
    actor.client.report(told).await.expect("an answer");
    assert!(found(&rig, "spool-full").await.evidence[0].contains("7.00 MiB"));
    for gone in [
        "actor-without-model",
        "no-actor-has-champion",
        "device-fell-back",
        "precision-fell-back",
        "clock-off",
    ] {
        assert!(!is_found(&rig, gone).await, "{gone}");
    }

    let told = v1::ReportActorRequest {
        waiting: "the rules fingerprint of tic-tac-toe is 00 in this build and 11 in the run".to_owned(),
        gives_up: true,
        ..report(&actor)
    };
    actor.client.report(told).await.expect("an answer");
    assert_eq!(found(&rig, "other-rules").await.severity(), Severity::Stops);
    found(&rig, "no-actor").await;
    let told = v1::ReportActorRequest {
        waiting: "thread selfplay-0 failed".to_owned(),
        gives_up: true,
        ..report(&actor)
    };
    actor.client.report(told).await.expect("an answer");
    found(&rig, "actor-gave-up").await;
    rig.stop().await;
}

#[tokio::test]
async fn what_the_learner_says_of_itself_is_named() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut learner = Learner::new(&rig).await;
    let told = v1::LearnerStatus {
        step: 3,
        device: "cpu".to_owned(),
        device_wanted: "auto".to_owned(),
        host: "box".to_owned(),
        build: "other".to_owned(),
        clock_unix_ms: i64::MAX,
        candidates_given_up: 2,
        parity: 0.5,
        ..v1::LearnerStatus::default()
    };
    say(&mut learner, told).await;
    for (cause, part) in [
        ("candidate-given-up", "2 candidates"),
        ("device-fell-back", "the learner on box"),
        ("clock-off", "ahead of"),
        ("other-build", "of build other"),
    ] {
        let finding = found(&rig, cause).await;
        assert!(finding.sentence.contains(part), "{finding:?}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_learner_and_an_actor_that_share_too_few_cores_are_said_to_wait_for_them() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    let usage = |lacking| {
        Some(v1::Usage {
            cpu_cores: 0.6,
            cpu_cores_available: 1,
            cpu_cores_lacking: Some(lacking),
            ..v1::Usage::default()
        })
    };
    for (lacking, is_said) in [(0.4, true), (0.0, false)] {
        let plays = v1::ReportActorRequest {
            usage: usage(0.0),
            ..report(&actor)
        };
        actor.client.report(plays).await.expect("an answer");
        let trains = v1::LearnerStatus {
            host: hello("actor-1").host,
            usage: usage(lacking),
            ..v1::LearnerStatus::default()
        };
        say(&mut learner, trains).await;
        let waiting = rig.status().await.waiting;
        assert_eq!(waiting.contains("learner_threads"), is_said, "{waiting}");
        assert_eq!(is_found(&rig, "too-few-cores").await, is_said);
        if is_said {
            let few = found(&rig, "too-few-cores").await;
            assert_eq!(few.severity(), Severity::Slows);
            assert!(waiting.contains(&few.sentence), "{waiting}");
            assert!(
                few.sentence.ends_with("the learner waits for one 40 % of the time"),
                "{few:?}"
            );
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn builds_of_another_protocol_are_named() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let old = v1::RegisterActorRequest {
        protocol_min: 0,
        protocol_max: 0,
        ..hello("actor-2")
    };
    actor.client.register(old).await.expect_err("a refusal");
    let protocol = found(&rig, "other-protocol").await;
    assert!(
        protocol.evidence[0].contains("bring the actor up to date"),
        "{protocol:?}"
    );
    assert_eq!(rig.status().await.refused_calls["PROTOCOL"], 1);
    rig.stop().await;
}

#[tokio::test]
async fn what_people_hold_is_named_and_an_ended_run_is_nothing_else() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    steering::pause(&rig, v1::Activity::SelfPlay).await;
    let paused = found(&rig, "paused").await;
    assert_eq!(
        (paused.severity(), &paused.sentence[..], &paused.remedy[..]),
        (Severity::Stops, "self-play is paused", "tengen resume self-play")
    );
    steering::resume(&rig, v1::Activity::SelfPlay).await;
    assert!(!is_found(&rig, "paused").await);

    let champion = rig.model("champion").await;
    let seen = steering::expected(&rig).await;
    steering::pin(&rig, seen).await.expect("it is pinned");
    let pinned = found(&rig, "pinned").await;
    assert!(
        pinned.evidence[0].starts_with(&hex::encode(&champion.model_id[..8])),
        "{pinned:?}"
    );

    let run = rig.status().await.run_id;
    steering::end(&rig, &run).await.expect("an end");
    let all = findings(&rig).await;
    assert!(all.len() == 1 && all[0].cause == "ended", "{all:?}");
    rig.stop().await;
}

#[tokio::test]
async fn a_suspended_actor_and_one_whose_records_are_refused_are_named() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let verdict = actor.submit_bytes(b"no record".to_vec()).await;
    assert_eq!(verdict.verdict(), v1::Verdict::Rejected);
    let rejected = found(&rig, "records-rejected").await;
    assert!(rejected.remedy.contains("suspend actor-1"), "{rejected:?}");

    let mut admin = v1::admin_service_client::AdminServiceClient::new(rig.channel().await);
    let suspend = v1::SuspendActorRequest {
        actor_id: "actor-1".to_owned(),
        reason: "a test".to_owned(),
    };
    admin.suspend_actor(suspend).await.expect("an answer");
    let suspended = found(&rig, "actor-suspended").await;
    assert_eq!(suspended.remedy, "tengen actors resume actor-1");
    rig.stop().await;
}

#[tokio::test]
async fn a_gate_with_too_few_openings_that_gets_no_games_is_named() {
    let wide = FIXED.replace("games = 4", "games = 4000");
    let toml = format!("{TIC_TAC_TOE}{wide}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(5).await;
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let few = found(&rig, "too-few-openings").await;
    assert!(few.sentence.contains("instead of 2000"), "{few:?}");
    assert!(!is_found(&rig, "gate-waits-for-pairs").await, "it was opened just now");

    // As if it had been opened an hour ago.
    let folder = rig.stop().await;
    let database = rusqlite::Connection::open(folder.path().join("tengen.db")).expect("a database");
    let sql = "UPDATE gates SET opened_ms = opened_ms - 3600000";
    assert_eq!(database.execute(sql, []).expect("an old gate"), 1);
    drop(database);
    let rig = Rig::start_in(folder, &toml).await.expect("it starts");
    let waits = found(&rig, "gate-waits-for-pairs").await;
    assert!(waits.evidence[0].starts_with("0 of "), "{waits:?}");
    rig.stop().await;
}

#[tokio::test]
async fn a_disk_without_room_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path(), TIC_TAC_TOE);
    options.config.disk.free_bytes_min = u64::MAX;
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let full = found(&rig, "disk-full").await;
    assert_eq!(full.severity(), Severity::Stops);
    assert!(full.evidence[0].contains("disk.free_bytes_min"), "{full:?}");
    rig.stop().await;
}

#[tokio::test]
async fn damaged_games_are_named() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    Actor::new(&rig, "actor-1").await.deliver(5).await;
    let folder = rig.stop().await;
    let database = rusqlite::Connection::open(folder.path().join("tengen.db")).expect("a database");
    let sql = "UPDATE games SET record = zeroblob(length(record)) WHERE sequence = 2";
    assert_eq!(database.execute(sql, []).expect("a damaged game"), 1);
    drop(database);
    let rig = Rig::start_in(folder, TIC_TAC_TOE).await.expect("it starts");
    let damaged = found(&rig, "damaged-games").await;
    assert!(damaged.sentence.starts_with("1 stored games"), "{damaged:?}");
    rig.stop().await;
}

/// Waits as long as it takes to be called silent: fifteen seconds.
#[tokio::test]
async fn an_actor_and_a_learner_that_are_not_heard_any_more_are_named() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let actor = Actor::new(&rig, "actor-1").await;
    let learner = Learner::new(&rig).await;
    drop((actor, learner));
    let mut client = RunServiceClient::new(rig.channel().await);
    let request = v1::WatchStatusRequest {
        interval_ms: 500,
        ..v1::WatchStatusRequest::default()
    };
    let mut statuses = client.watch_status(request).await.expect("a stream").into_inner();
    loop {
        let status = statuses.message().await.expect("a status").expect("an open stream");
        let learner = status.learner.expect("it was heard once");
        if !learner.alive && status.actors.iter().all(|actor| !actor.alive) {
            break;
        }
    }
    assert!(found(&rig, "actor-silent").await.evidence[0].contains("seconds ago"));
    assert_eq!(found(&rig, "learner-silent").await.severity(), Severity::Stops);
    found(&rig, "no-actor").await;
    rig.stop().await;
}
