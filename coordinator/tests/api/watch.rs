//! Watching: the whole status at once, then every event once, also for a watch that comes back after a restart.

use tengen_proto::v1;
use tengen_proto::v1::run_event::Event;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tonic::{Code, Streaming};

use crate::gates::with_candidate;
use crate::rig::{Actor, FIXED, Learner, NONE, Reached, Rig, TIC_TAC_TOE};

async fn watch(rig: &Reached, resume_token: &str) -> Result<Streaming<v1::RunStatus>, tonic::Status> {
    let mut client = RunServiceClient::new(rig.channel().await);
    let request = v1::WatchStatusRequest {
        interval_ms: 100,
        resume_token: resume_token.to_owned(),
    };
    Ok(client.watch_status(request).await?.into_inner())
}

async fn next(statuses: &mut Streaming<v1::RunStatus>) -> v1::RunStatus {
    statuses.message().await.expect("a status").expect("an open stream")
}

/// Events in short: `iteration 0`, `promoted 1`, `gate 1`.
fn short(status: &v1::RunStatus) -> Vec<String> {
    let words = status
        .events
        .iter()
        .map(|event| match event.event.as_ref().expect("an event") {
            Event::IterationEnded(ended) => format!("iteration {}", ended.iteration),
            Event::GateDecided(gate) => format!("gate {}", gate.gate_id),
            Event::Promoted(promotion) => format!("promoted {}", promotion.generation),
        });
    words.collect()
}

#[tokio::test]
async fn a_watch_that_comes_back_after_a_restart_hears_what_it_missed() {
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let rig = Rig::start(&toml).await;
    let mut statuses = watch(&rig, "").await.expect("a stream");
    let first = next(&mut statuses).await;
    assert!(first.events.is_empty(), "{:?}", first.events);
    assert_eq!(first.run_id, "test");

    // Four games end an iteration; without a gate its candidate is champion at once.
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.extend(short(&next(&mut statuses).await));
    }
    assert_eq!(heard, ["iteration 0", "promoted 1"]);

    let rig = rig.restart(&toml).await;
    let mut again = watch(&rig, &first.resume_token).await.expect("a stream");
    let back = next(&mut again).await;
    assert_eq!(short(&back), ["iteration 0", "promoted 1"]);
    assert_eq!(back.generation, 1);
    // Told once.
    assert!(next(&mut again).await.events.is_empty());
    let mut now = watch(&rig, &back.resume_token).await.expect("a stream");
    assert!(next(&mut now).await.events.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn a_decided_gate_is_an_event_and_its_evidence_counts_to_its_tally() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{FIXED}")).await;
    let before = rig.status().await.resume_token;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(4).await;
    let candidate = Learner::new(&rig).await.publish(1).await.expect("a candidate");
    while rig.status().await.gate.is_some() {
        let work = actor.match_work(100.0).await;
        for index in 0..work.order.plan.games() {
            let record = actor.play_to(&work, index, Some(1));
            actor.submit(&record).await;
        }
    }
    let mut statuses = watch(&rig, &before).await.expect("a stream");
    let status = next(&mut statuses).await;
    assert_eq!(short(&status), ["iteration 0", "gate 1"]);

    let mut client = RunServiceClient::new(rig.channel().await);
    let request = v1::GetMatchRequest {
        candidate_id: candidate.model_id.clone(),
        ..v1::GetMatchRequest::default()
    };
    let evidence = client.get_match(request).await.expect("evidence").into_inner();
    let gate = evidence.gate.expect("a gate");
    assert_eq!(gate.state(), v1::GateState::Rejected);
    assert_eq!(evidence.openings.len() as u32, gate.pairs_target);
    let counted = evidence.log.iter().filter(|game| game.counts);
    let lost = counted.filter(|game| game.score == 0.0).count();
    assert!(lost as u32 >= gate.losses && gate.losses > 0, "{lost} of {gate:?}");

    let missing = v1::GetMatchRequest {
        gate_id: 9,
        ..v1::GetMatchRequest::default()
    };
    let refused = client.get_match(missing).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::NotFound);
    let unclear = client
        .get_match(v1::GetMatchRequest::default())
        .await
        .expect_err("a refusal");
    assert_eq!(unclear.code(), Code::InvalidArgument);
    rig.stop().await;
}

#[tokio::test]
async fn a_gate_forecasts_its_end_from_the_pairs_left_and_the_rate_of_its_games() {
    let (rig, mut actor, _learner) = with_candidate(FIXED).await;
    let work = actor.match_work(100.0).await;
    // Two pairs are wanted; half a pair is still to be played whole.
    for (index, games_left) in [(0, 4.0), (1, 2.0), (2, 2.0)] {
        let record = actor.play_to(&work, index, Some(0));
        assert_eq!(actor.submit(&record).await, v1::Verdict::Stored);
        let status = rig.status().await;
        let gate = status.gate.expect("a gate");
        assert_eq!(f64::from(gate.pairs_target - gate.pairs) * 2.0, games_left);
        let rate = f64::from(status.match_games_per_minute);
        assert!(rate > 0.0, "a game came just now");
        let seconds = gate.seconds_left_max.expect("a forecast");
        let games = seconds * rate / 60.0;
        assert!((games - games_left).abs() < 1e-3, "{games} games in {seconds} seconds");
    }
    rig.stop().await;
}

#[tokio::test]
async fn iterations_that_ended_are_listed_in_pages_each_from_the_end_of_the_one_before() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    let list = async |page_token: &str| {
        let mut client = RunServiceClient::new(rig.channel().await);
        let request = v1::ListIterationsRequest {
            page_size: 2,
            page_token: page_token.to_owned(),
        };
        client.list_iterations(request).await.map(tonic::Response::into_inner)
    };
    assert_eq!(list("").await.expect("a page"), v1::ListIterationsResponse::default());
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut positions = Vec::new();
    for _ in 0..3 {
        actor.deliver(4).await;
        positions.push(rig.status().await.positions);
    }
    // One more game, of an iteration that has not ended.
    actor.deliver(1).await;

    let first = list("").await.expect("a page");
    assert_eq!(first.iterations.len(), 2);
    let rest = list(&first.next_page_token).await.expect("a page");
    assert_eq!((rest.iterations.len(), rest.next_page_token.as_str()), (1, ""));
    let mut began = rig.status().await.created_unix_ms;
    let ascending = rest.iterations.iter().chain(first.iterations.iter().rev());
    for (number, (iteration, positions)) in ascending.zip(positions).enumerate() {
        let wanted = v1::Iteration {
            iteration: number as u32,
            games: 4,
            positions,
            candidate_due: true,
            began_unix_ms: began,
            ended_unix_ms: iteration.ended_unix_ms,
        };
        assert_eq!(*iteration, wanted);
        began = iteration.ended_unix_ms;
    }
    let refused = list("yesterday").await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::InvalidArgument);
    rig.stop().await;
}

#[tokio::test]
async fn a_token_that_no_message_held_is_refused() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let refused = match watch(&rig, "yesterday").await {
        Err(status) => status,
        Ok(_) => panic!("it was taken"),
    };
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("yesterday"), "{refused}");
    // One of another run begins anew.
    let mut statuses = watch(&rig, "1.1.0.0.0").await.expect("a stream");
    assert!(next(&mut statuses).await.events.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn the_status_tells_who_is_there_and_what_came() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{FIXED}")).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(5).await;
    let told = v1::ReportActorRequest {
        actor_id: "actor-1".to_owned(),
        provider: "CUDA".to_owned(),
        device: "cuda:0".to_owned(),
        precision: "fp32".to_owned(),
        games_per_minute: f32::NAN,
        usage: Some(v1::Usage {
            cpu_cores: 1.5,
            gpu_busy: Some(7.0),
            cpu_cores_lacking: Some(f32::NAN),
            ..v1::Usage::default()
        }),
        ..v1::ReportActorRequest::default()
    };
    actor.client.report(told).await.expect("an answer");
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let status = rig.status().await;
    let actor = &status.actors[0];
    assert!(actor.alive);
    assert_eq!(
        (
            &actor.provider[..],
            &actor.device[..],
            &actor.precision[..],
            actor.games_per_minute
        ),
        ("CUDA", "cuda:0", "fp32", 0.0)
    );
    let usage = actor.usage.as_ref().expect("its usage");
    assert_eq!(
        (usage.cpu_cores, usage.gpu_busy, usage.cpu_cores_lacking),
        (1.5, Some(1.0), Some(0.0))
    );
    assert_eq!(status.settings_revision, 1);
    assert_eq!((status.window_games, status.gate_pairs_wanted), (5, 2));
    assert!(status.window_oldest_unix_ms > 0 || status.uptime_ms < 6_000);
    assert!(status.positions_per_minute > 0.0 && status.window_turnover_minutes.is_some());
    assert!(status.usage.expect("the coordinator's").resident_bytes > 1 << 20);
    assert_eq!(
        status.gate.expect("a gate").seconds_left_max,
        None,
        "no match game came yet"
    );

    let bad = v1::ReportActorRequest {
        actor_id: "actor-1".to_owned(),
        model_id: vec![1, 2, 3],
        ..v1::ReportActorRequest::default()
    };
    let mut client = v1::actor_service_client::ActorServiceClient::new(rig.channel().await);
    let refused = client.report(bad).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(rig.status().await.refused_calls["BAD_FIELD"], 1);
    rig.stop().await;
}
