//! Settings that change while the run goes on.

use tengen_coordinator::{Coordinator, LiveKeys, Options};
use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_selfplay::Plan;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::gates::with_candidate;
use crate::rig::{Actor, FIXED, Learner, NONE, Rig, TIC_TAC_TOE, options};
use crate::window::{catch_up, mirror};

fn request(assignments: &[(&str, &str)]) -> v1::ChangeSettingsRequest {
    let assignments = assignments.iter().map(|(key, value)| v1::SettingAssignment {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    v1::ChangeSettingsRequest {
        assignments: assignments.collect(),
        reason: "the test wants it".to_owned(),
        ..v1::ChangeSettingsRequest::default()
    }
}

async fn change(rig: &Rig, request: v1::ChangeSettingsRequest) -> Result<v1::ChangeSettingsResponse, Status> {
    Ok(rig.admin().await.change_settings(request).await?.into_inner())
}

pub(crate) async fn set(rig: &Rig, assignments: &[(&str, &str)]) -> v1::ChangeSettingsResponse {
    change(rig, request(assignments)).await.expect("they are changed")
}

async fn settings(rig: &Rig) -> v1::Settings {
    let mut client = RunServiceClient::new(rig.channel().await);
    let answer = client.get_settings(v1::GetSettingsRequest {}).await;
    answer.expect("settings").into_inner()
}

#[tokio::test]
async fn a_change_is_one_revision_that_the_next_lease_and_the_learner_go_by() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    let before = actor.work(0.0).await;
    assert_eq!(
        (before.order.settings.simulations, before.order.settings_revision),
        (8, 1)
    );

    let answer = set(
        &rig,
        &[
            ("schedule.0.simulations", "16"),
            ("search.noise_fraction", "0.1"),
            ("search.random_symmetry", "true"),
            ("selfplay.random_plies_max", "1"),
            ("learner.learning_rate", "0.005"),
        ],
    )
    .await;
    assert_eq!((answer.revision, answer.changes.len()), (2, 5));
    let rate = answer
        .changes
        .iter()
        .find(|change| change.key == "learner.learning_rate");
    assert_eq!(
        rate.map(|rate| (rate.old.as_str(), rate.new.as_str())),
        Some(("0.02", "0.005"))
    );

    let after = actor.work(0.0).await;
    assert_eq!(
        (after.order.settings.simulations, after.order.settings_revision),
        (16, 2)
    );
    assert_eq!(after.order.settings.noise_fraction, 0.1);
    let symmetries = [&before, &after].map(|work| work.order.settings.random_symmetry);
    assert_eq!(symmetries, [false, true]);
    assert!(matches!(
        after.order.plan,
        Plan::SelfPlay {
            random_plies_max: 1,
            ..
        }
    ));
    // Games of leases from before are as welcome as ever.
    for work in [&before, &after] {
        let record = actor.play(work, 0);
        assert_eq!(record.settings_revision, work.order.settings_revision);
        assert_eq!(actor.submit(&record).await, v1::Verdict::Stored);
    }

    let report = |followed| v1::ReportLearnerRequest {
        fence: learner.welcome.fence,
        status: None,
        settings_revision: followed,
    };
    let (old, new, none) = (report(1), report(2), report(0));
    let told = learner.client.report(old).await.expect("a task").into_inner();
    assert_eq!(told.settings_revision, 2);
    assert!(told.run_toml.contains("learning_rate = 0.005"), "{}", told.run_toml);
    for followed in [new, none] {
        let told = learner.client.report(followed).await.expect("a task").into_inner();
        assert_eq!(told.run_toml, "");
    }
    let welcome = Learner::new(&rig).await.welcome;
    assert!(welcome.run_toml.contains("learning_rate = 0.005"));

    let row = rig.trail().await.remove(0);
    assert_eq!((row.action.as_str(), row.who.as_str()), ("change-settings", "local"));
    assert_eq!(row.detail, "revision 2: the test wants it");
    assert!(row.old.contains("learner.learning_rate = 0.02") && row.new.contains("learner.learning_rate = 0.005"));
    assert!(row.old.contains("search.random_symmetry = false") && row.new.contains("search.random_symmetry = true"));
    rig.stop().await;
}

#[tokio::test]
async fn a_change_that_makes_no_sense_or_comes_too_late_changes_nothing() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    for (key, value, code, part) in [
        (
            "network.channels",
            "8",
            Code::FailedPrecondition,
            "network.channels is fixed",
        ),
        (
            "run.game",
            "connect-four",
            Code::FailedPrecondition,
            "run.game is fixed",
        ),
        (
            "actor.games",
            "8",
            Code::FailedPrecondition,
            "actor.games is read when processes start",
        ),
        ("gate.threshold", "1.5", Code::InvalidArgument, "gate.threshold"),
        ("gate.treshold", "0.5", Code::InvalidArgument, "treshold"),
        (
            "learner.learning_rate",
            "-1",
            Code::InvalidArgument,
            "learner.learning_rate",
        ),
        ("schedule.0.games", "0", Code::InvalidArgument, "schedule.games = 0"),
    ] {
        let refused = change(&rig, request(&[("gate.games", "6"), (key, value)])).await;
        let refused = refused.expect_err("a refusal");
        assert!(
            refused.code() == code && refused.message().contains(part),
            "{key}: {refused}"
        );
    }
    let stale = v1::ChangeSettingsRequest {
        expected_revision: 7,
        ..request(&[("gate.games", "6")])
    };
    let refused = change(&rig, stale).await.expect_err("a refusal");
    assert!(
        refused.code() == Code::Aborted && refused.message().contains("revision 7"),
        "{refused}"
    );
    let compare = v1::ChangeSettingsRequest {
        validate_only: true,
        ..request(&[("gate.games", "6")])
    };
    let compared = change(&rig, compare).await.expect("a comparison");
    assert_eq!((compared.revision, compared.changes.len()), (1, 1));
    let same = set(&rig, &[("gate.games", "200")]).await;
    assert_eq!((same.revision, same.changes.len()), (1, 0));
    assert_eq!(settings(&rig).await.revision, 1);
    assert_eq!(
        rig.count("SELECT count(*) FROM audit WHERE action = 'change-settings'"),
        0
    );

    // Of two that saw the same revision one wins.
    let based = |games: &str| v1::ChangeSettingsRequest {
        expected_revision: 1,
        ..request(&[("gate.games", games)])
    };
    let (one, other) = tokio::join!(change(&rig, based("10")), change(&rig, based("20")));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    rig.stop().await;
}

#[tokio::test]
async fn another_window_size_begins_an_epoch_from_the_stored_games() {
    let toml = format!("{TIC_TAC_TOE}{NONE}[replay]\ncapacity_positions = 10\n");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(6).await;
    let (epoch, small) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    set(&rig, &[("replay.capacity_positions", "1000")]).await;
    let status = rig.status().await;
    assert_eq!(
        (status.window_capacity, status.window_positions),
        (1_000, status.positions)
    );
    let (next, all) = catch_up(&mut mirror(&rig, epoch, 1_000_000).await).await;
    assert!(
        next > epoch && small.len() < 6 && all.len() == 6,
        "{} of {}",
        small.len(),
        all.len()
    );
    actor.deliver(2).await;
    assert_eq!(rig.status().await.window_positions, rig.status().await.positions);
    set(&rig, &[("replay.capacity_positions", "10")]).await;
    let status = rig.status().await;
    assert_eq!((status.window_capacity, status.window_positions), (10, 10));
    rig.stop().await;
}

#[tokio::test]
async fn a_shorter_iteration_ends_at_once_and_a_gate_in_progress_keeps_its_length() {
    let (rig, mut actor, mut learner) = with_candidate(FIXED).await;
    // With every pair in somebody's hands there is self-play to be had.
    let pairs = actor.match_work(100.0).await;
    actor.deliver(3).await;
    set(&rig, &[("schedule.0.games", "2"), ("gate.games", "2")]).await;
    let status = rig.status().await;
    assert_eq!((status.iteration, status.iteration_games), (2, 1));
    assert_eq!(status.gate.expect("a gate").pairs_target, 2);
    assert_eq!(learner.report().await.expect("a task").candidate_iteration, 2);
    for index in 0..4 {
        let record = actor.play_to(&pairs, index, Some(0));
        assert_eq!(actor.submit(&record).await, v1::Verdict::Stored);
    }
    learner.publish(2).await.expect("a candidate");
    assert_eq!(rig.status().await.gate.expect("a gate").pairs_target, 1);
    rig.stop().await;
}

#[tokio::test]
async fn a_key_changed_live_wins_over_the_file_until_it_is_applied() {
    let file = format!("{TIC_TAC_TOE}{NONE}[learner]\nlearning_rate = 0.01\nbatch = 64\n");
    let rig = Rig::start(&file).await;
    set(&rig, &[("learner.learning_rate", "0.001"), ("learner.batch", "128")]).await;
    assert_eq!(
        settings(&rig).await.live_keys,
        ["learner.batch", "learner.learning_rate"]
    );
    // A start with the same file, then with one that changed one of the keys, and another.
    let rig = rig.restart(&file).await;
    assert_eq!(settings(&rig).await.revision, 2, "nothing is new");
    let edited = file
        .replace("0.01", "0.03")
        .replace("batch = 64", "batch = 128\nmomentum = 0.8");
    let rig = rig.restart(&edited).await;
    let now = settings(&rig).await;
    assert_eq!(now.revision, 3);
    assert!(
        now.run_toml.contains("learning_rate = 0.001") && now.run_toml.contains("momentum = 0.8"),
        "{}",
        now.run_toml
    );
    assert_eq!(
        now.live_keys,
        ["learner.learning_rate"],
        "the file has caught up with the other"
    );

    let folder = rig.stop().await;
    let applied = Options {
        live_keys: LiveKeys::GiveWay,
        ..options(folder.path(), &edited)
    };
    let rig = Rig::start_with(folder, applied).await.expect("it starts");
    let now = settings(&rig).await;
    assert!(now.run_toml.contains("learning_rate = 0.03"), "{}", now.run_toml);
    assert_eq!((now.revision, now.live_keys.len()), (4, 0));
    let rig = rig.restart(&edited).await;
    assert_eq!(settings(&rig).await.revision, 4);

    let mut client = RunServiceClient::new(rig.channel().await);
    let page = |page_token: String| v1::ListSettingsRequest {
        page_size: 3,
        page_token,
    };
    let first = client
        .list_settings(page(String::new()))
        .await
        .expect("a page")
        .into_inner();
    let rows: Vec<_> = first
        .settings
        .iter()
        .map(|row| (row.revision, row.changes.len(), row.who.as_str()))
        .collect();
    assert_eq!(rows, [(4, 1, "coordinator"), (3, 1, "coordinator"), (2, 2, "local")]);
    let last = client
        .list_settings(page(first.next_page_token))
        .await
        .expect("a page")
        .into_inner();
    assert_eq!((last.settings.len(), last.settings[0].changes.len()), (1, 0));
    assert_eq!(last.next_page_token, "");
    rig.stop().await;
}

#[tokio::test]
async fn a_file_that_does_not_go_with_a_live_key_is_no_start_and_says_so() {
    let file = format!("{TIC_TAC_TOE}[gate]\nthreshold = 0.5\n");
    let rig = Rig::start(&file).await;
    set(&rig, &[("gate.threshold", "1.0")]).await;
    let folder = rig.stop().await;
    let strict = options(folder.path(), &format!("{file}strict = true\n"));
    let refused = Coordinator::start(strict, CancellationToken::new()).await;
    let refused = refused.expect_err("a refusal").to_string();
    assert!(
        refused.contains("gate.strict") && refused.contains("--apply"),
        "{refused}"
    );
}
