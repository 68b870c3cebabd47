//! Steering a run: pausing and resuming, promoting, rejecting, rolling back, pinning, ending.
//!
//! An order about the champion says which champion and which gate it was based on, as this command saw them just before
//! (or as it is told with `--expect-champion`): when somebody was quicker, the coordinator refuses it.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::{
    Activity, EndRunRequest, Expected, GetStatusRequest, Model, PauseRequest, PinChampionRequest, PromoteModelRequest,
    RejectCandidateRequest, ResumeRequest, RollBackRequest, RunStatus, Steering, UnpinChampionRequest,
};
use tengen_service::channel::Channel;

use crate::client::{CoordinatorArgs, explain};
use crate::models::{self, short_id, state_name};
use crate::token::time;

/// What can be paused.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum What {
    /// No new self-play leases; those that are out are finished
    SelfPlay,
    /// The learner holds before its next step
    Training,
    /// No gate begins and no match games are handed out
    Gating,
}

#[derive(Args, Debug)]
pub(crate) struct ActivityArgs {
    #[arg(value_name = "ACTIVITY")]
    what: What,
    #[command(flatten)]
    why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct Why {
    /// Why, for the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    /// `latest`, `gen:N`, or at least 8 hexadecimal digits of its id, as `tengen models list` shows them
    #[arg(value_name = "MODEL")]
    name: String,
    #[command(flatten)]
    expect: Expect,
    #[command(flatten)]
    why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct RollbackArgs {
    /// An earlier champion: `gen:N`, or at least 8 hexadecimal digits of its id
    #[arg(value_name = "MODEL")]
    name: String,
    /// Pin it in the same step, so that no gate takes its place
    #[arg(long)]
    pin: bool,
    #[command(flatten)]
    expect: Expect,
    #[command(flatten)]
    why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct PinArgs {
    #[command(flatten)]
    expect: Expect,
    #[command(flatten)]
    why: Why,
}

#[derive(Args, Debug)]
pub(crate) struct EndArgs {
    /// Name of the run, as `tengen status` shows it: there is no way back
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    why: Why,
}

/// What an order is based on.
#[derive(Args, Debug)]
pub(crate) struct Expect {
    /// Refuse unless this network is champion: `gen:N` or digits of its id [default: the one that is champion now]
    #[arg(long, value_name = "MODEL")]
    expect_champion: Option<String>,
}

/// The clients of one order.
struct Line {
    admin: AdminServiceClient<Channel>,
    models: ModelServiceClient<Channel>,
    status: RunStatus,
}

impl Line {
    async fn open(coordinator: &CoordinatorArgs) -> anyhow::Result<Line> {
        let admin = coordinator.admin()?;
        let run = coordinator.reach().await?;
        let status = run.runs()?.get_status(GetStatusRequest {}).await;
        Ok(Line {
            admin,
            models: run.models()?,
            status: status.map_err(|status| explain(&status))?.into_inner(),
        })
    }

    /// What there is now, or what the order is told to expect.
    async fn expected(&mut self, expect: &Expect) -> anyhow::Result<Expected> {
        let champion_id = match &expect.expect_champion {
            Some(name) => models::find(&mut self.models, name).await?.model_id,
            None => {
                let champion = self.status.champion.as_ref();
                champion.context("the coordinator names no champion")?.model_id.clone()
            }
        };
        Ok(Expected {
            champion_id,
            gate_id: Some(self.status.gate.as_ref().map_or(0, |gate| gate.gate_id)),
        })
    }
}

pub(crate) async fn pause(args: ActivityArgs) -> anyhow::Result<()> {
    let request = PauseRequest {
        activity: activity(args.what).into(),
        reason: args.why.reason,
    };
    let answer = args.why.coordinator.admin()?.pause(request).await;
    show(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn resume(args: ActivityArgs) -> anyhow::Result<()> {
    let request = ResumeRequest {
        activity: activity(args.what).into(),
        reason: args.why.reason,
    };
    let answer = args.why.coordinator.admin()?.resume(request).await;
    show(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn promote(args: ModelArgs) -> anyhow::Result<()> {
    let mut line = Line::open(&args.why.coordinator).await?;
    let request = PromoteModelRequest {
        model_id: models::find(&mut line.models, &args.name).await?.model_id,
        expected: Some(line.expected(&args.expect).await?),
        reason: args.why.reason,
    };
    let answer = line.admin.promote_model(request).await;
    show_model(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn reject(args: ModelArgs) -> anyhow::Result<()> {
    let mut line = Line::open(&args.why.coordinator).await?;
    let request = RejectCandidateRequest {
        model_id: models::find(&mut line.models, &args.name).await?.model_id,
        expected: Some(line.expected(&args.expect).await?),
        reason: args.why.reason,
    };
    let answer = line.admin.reject_candidate(request).await;
    show_model(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn rollback(args: RollbackArgs) -> anyhow::Result<()> {
    let mut line = Line::open(&args.why.coordinator).await?;
    let request = RollBackRequest {
        model_id: models::find(&mut line.models, &args.name).await?.model_id,
        expected: Some(line.expected(&args.expect).await?),
        reason: args.why.reason,
        pin: args.pin,
    };
    let answer = line.admin.roll_back(request).await;
    show_model(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn pin(args: PinArgs) -> anyhow::Result<()> {
    let mut line = Line::open(&args.why.coordinator).await?;
    let request = PinChampionRequest {
        expected: Some(line.expected(&args.expect).await?),
        reason: args.why.reason,
    };
    let answer = line.admin.pin_champion(request).await;
    show(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn unpin(args: PinArgs) -> anyhow::Result<()> {
    let mut line = Line::open(&args.why.coordinator).await?;
    let request = UnpinChampionRequest {
        expected: Some(line.expected(&args.expect).await?),
        reason: args.why.reason,
    };
    let answer = line.admin.unpin_champion(request).await;
    show(&answer.map_err(|status| explain(&status))?.into_inner());
    Ok(())
}

pub(crate) async fn end(args: EndArgs) -> anyhow::Result<()> {
    let request = EndRunRequest {
        run_id: args.run,
        reason: args.why.reason,
    };
    let answer = args.why.coordinator.admin()?.end_run(request).await;
    let steering = answer.map_err(|status| explain(&status))?.into_inner();
    if steering.ended_unix_ms == 0 {
        bail!("the coordinator did not end the run");
    }
    show(&steering);
    Ok(())
}

fn activity(what: What) -> Activity {
    match what {
        What::SelfPlay => Activity::SelfPlay,
        What::Training => Activity::Training,
        What::Gating => Activity::Gating,
    }
}

fn show(steering: &Steering) {
    println!("{}", in_words(steering));
}

fn show_model(model: &Model) {
    let generation = model
        .generation
        .map_or_else(String::new, |generation| format!(", generation {generation}"));
    println!(
        "{} of iteration {} is {}{generation}: {}",
        short_id(&model.model_id),
        model.iteration,
        state_name(model.state()),
        model.verdict
    );
}

/// How the run is steered, in a sentence.
pub(crate) fn in_words(steering: &Steering) -> String {
    if steering.ended_unix_ms > 0 {
        return format!("ended {}", time(steering.ended_unix_ms));
    }
    let paused: Vec<&str> = steering.paused().map(Activity::name).collect();
    let mut text = if paused.is_empty() {
        "nothing is paused".to_owned()
    } else {
        format!("paused: {}", paused.join(", "))
    };
    if steering.pinned {
        text.push_str("; the champion is pinned");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_is_told_in_a_sentence() {
        let mut steering = Steering::default();
        assert_eq!(in_words(&steering), "nothing is paused");
        steering.paused = vec![Activity::SelfPlay.into(), Activity::Gating.into()];
        steering.pinned = true;
        assert_eq!(in_words(&steering), "paused: self-play, gating; the champion is pinned");
        steering.ended_unix_ms = 1_700_000_000_000;
        assert_eq!(in_words(&steering), "ended 2023-11-14T22:13:20Z");
    }
}
