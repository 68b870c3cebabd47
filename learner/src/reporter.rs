//! The learner's place with the coordinator: takes it, reports every second, and gives way to a learner that came later.

use std::sync::Arc;
use std::time::Duration;

use tengen_proto::v1::learner_service_client::LearnerServiceClient;
use tengen_proto::v1::{
    LearnerStatus, RegisterLearnerRequest, RegisterLearnerResponse, ReportLearnerRequest, ReportLearnerResponse,
};
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tengen_service::host;
use tengen_service::run_config::RunConfig;
use tengen_service::usage::UsageMeter;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Status};

use crate::config::LearnerConfig;
use crate::plan::{Candidate, Inputs};
use crate::publish::Place;
use crate::setup::SetupError;
use crate::signals::Signals;
use crate::wire::{Refusal, reason, refusal};

/// Time between reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// A coordinator that does not answer within this is away.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The learner has no place with this coordinator.
#[derive(Debug, thiserror::Error)]
pub enum ReporterError {
    /// The coordinator will not have this learner.
    #[error("the coordinator refused this learner: {0}")]
    Refused(String),
    /// Another learner took the place.
    #[error("another learner took this one's place ({0}); only one learner trains a run")]
    Fenced(String),
    /// After a restart the coordinator serves something else.
    #[error("the coordinator now serves run {now:?}, this learner trains {before:?}")]
    OtherRun {
        /// The run it served.
        before: String,
        /// The run it serves.
        now: String,
    },
}

/// Whether the coordinator was heard at the last try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contact {
    Steady,
    Lost,
}

/// What a failed report asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// The coordinator is away: report again later.
    Retry,
    /// It knows no learner at all: take the place again.
    Register,
    /// Another learner has the place: end.
    End,
}

/// The coordinator keeps the fence in its database, so a restart of it changes nothing: a refused fence means that
/// somebody registered after us. Only one that says `NOT_FOUND` or `UNAUTHENTICATED` has forgotten us.
fn react(status: &Status) -> Reaction {
    match (refusal(status), status.code()) {
        (Refusal::Transient, _) => Reaction::Retry,
        (Refusal::Final, Code::NotFound | Code::Unauthenticated) => Reaction::Register,
        (Refusal::Final, _) => Reaction::End,
    }
}

/// Keeps the learner's place.
#[derive(Debug)]
pub struct Reporter {
    client: LearnerServiceClient<Channel>,
    request: RegisterLearnerRequest,
    /// Revision of the settings that training goes by; 0 before the first registration.
    revision: u32,
    stop: CancellationToken,
}

impl Reporter {
    /// A reporter that registers with `request`, until `stop` is cancelled.
    pub fn new(channel: Channel, request: RegisterLearnerRequest, stop: CancellationToken) -> Reporter {
        Reporter {
            client: LearnerServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX),
            request,
            revision: 0,
            stop,
        }
    }

    /// Takes the learner's place, however long the coordinator is away. `None`: stopped before it was there.
    pub async fn register(&mut self) -> Result<Option<RegisterLearnerResponse>, ReporterError> {
        let mut backoff = Backoff::default();
        loop {
            let call = self.client.register(with_deadline(self.request.clone()));
            let answer = tokio::select! {
                () = self.stop.cancelled() => return Ok(None),
                answer = call => answer,
            };
            match answer {
                Ok(registration) => {
                    let registration = registration.into_inner();
                    if self.revision == 0 {
                        self.revision = registration.settings_revision;
                    }
                    return Ok(Some(registration));
                }
                Err(status) if refusal(&status) == Refusal::Final => {
                    return Err(ReporterError::Refused(reason(&status)));
                }
                Err(status) => tracing::warn!(reason = reason(&status), "failed to register, trying again"),
            }
            if !backoff.wait(&self.stop).await {
                return Ok(None);
            }
        }
    }

    /// Reports the status every second and passes on what is due, until stopped or fenced, or until the run has ended.
    /// `run_id` is the run of the first registration, `usage` measures this process.
    pub async fn run(
        mut self,
        run_id: &str,
        place: &watch::Sender<Place>,
        signals: &Arc<Signals>,
        usage: &UsageMeter,
    ) -> Result<(), ReporterError> {
        let mut contact = Contact::Steady;
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                _ = ticks.tick() => {}
            }
            let fence = place.borrow().fence;
            let report = ReportLearnerRequest {
                fence,
                status: Some(LearnerStatus {
                    usage: Some(usage.usage()),
                    clock_unix_ms: host::unix_ms(),
                    ..signals.status()
                }),
                settings_revision: self.revision,
            };
            self.request.step = report.status.as_ref().map_or(0, |status| status.step);
            let answer = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                answer = self.client.report(with_deadline(report)) => answer,
            };
            match answer {
                Ok(answer) => {
                    contact = Contact::Steady;
                    let answer = answer.into_inner();
                    if answer.ended {
                        tracing::info!("the run has ended: training ends with a last checkpoint");
                        return Ok(());
                    }
                    self.follow_settings(&answer, signals);
                    signals.update(|inputs| due(inputs, &answer));
                    place.send_modify(|place| place.reports_accepted += 1);
                }
                Err(status) => match react(&status) {
                    Reaction::Retry => {
                        if contact == Contact::Steady {
                            tracing::warn!(reason = reason(&status), "lost the coordinator; training goes on");
                        }
                        contact = Contact::Lost;
                    }
                    Reaction::End => return Err(ReporterError::Fenced(reason(&status))),
                    Reaction::Register => {
                        let Some(registration) = self.register().await? else {
                            return Ok(());
                        };
                        contact = Contact::Steady;
                        take(run_id, &registration, place)?;
                    }
                },
            }
        }
    }
}

impl Reporter {
    /// Passes on settings that were changed. Some that make no sense to this build are said once and left alone.
    fn follow_settings(&mut self, answer: &ReportLearnerResponse, signals: &Signals) {
        if answer.run_toml.is_empty() {
            return;
        }
        self.revision = answer.settings_revision;
        match learner_config(&answer.run_toml) {
            Ok(config) => signals.offer_settings(config),
            Err(error) => tracing::error!(revision = self.revision, %error, "changed settings cannot be followed"),
        }
    }
}

fn learner_config(run_toml: &str) -> Result<LearnerConfig, SetupError> {
    let run = RunConfig::from_toml(run_toml)?;
    Ok(LearnerConfig::from_sections(&run.learner, &run.export)?)
}

/// Uses the new fence from now on.
fn take(
    run_id: &str,
    registration: &RegisterLearnerResponse,
    place: &watch::Sender<Place>,
) -> Result<(), ReporterError> {
    if registration.run_id != run_id {
        return Err(ReporterError::OtherRun {
            before: run_id.to_owned(),
            now: registration.run_id.clone(),
        });
    }
    tracing::info!(fence = registration.fence, "registered again");
    place.send_modify(|place| place.fence = registration.fence);
    Ok(())
}

fn due(inputs: &mut Inputs, answer: &ReportLearnerResponse) {
    inputs.due = (answer.candidate_iteration > 0).then_some(Candidate {
        iteration: answer.candidate_iteration,
        positions: answer.candidate_positions,
    });
    inputs.published_iteration = inputs.published_iteration.max(answer.published_iteration);
    inputs.paused = answer.training_paused;
}

fn with_deadline<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_DEADLINE);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_fence_is_told_from_a_coordinator_that_is_away_or_forgot() {
        assert_eq!(
            react(&Status::failed_precondition("fence 3 is not the newest")),
            Reaction::End
        );
        assert_eq!(react(&Status::not_found("no learner")), Reaction::Register);
        assert_eq!(react(&Status::unavailable("gone")), Reaction::Retry);
    }

    #[test]
    fn what_is_due_reaches_the_planner_and_what_was_published_stays_so() {
        let mut inputs = Inputs {
            published_iteration: 3,
            ..Inputs::default()
        };
        let answer = ReportLearnerResponse {
            iteration: 5,
            candidate_iteration: 4,
            candidate_positions: 900,
            published_iteration: 2,
            training_paused: true,
            ..ReportLearnerResponse::default()
        };
        due(&mut inputs, &answer);
        assert_eq!(
            inputs.due,
            Some(Candidate {
                iteration: 4,
                positions: 900
            })
        );
        assert_eq!(inputs.published_iteration, 3);
        assert!(inputs.paused);
        due(&mut inputs, &ReportLearnerResponse::default());
        assert_eq!(inputs.due, None);
    }

    #[test]
    fn a_coordinator_of_another_run_is_not_followed() {
        let (place, _watcher) = watch::channel(Place {
            fence: 1,
            reports_accepted: 0,
        });
        let registration = RegisterLearnerResponse {
            run_id: "b".to_owned(),
            fence: 2,
            ..Default::default()
        };
        let error = take("a", &registration, &place).unwrap_err();
        assert!(matches!(error, ReporterError::OtherRun { .. }), "{error}");
        assert_eq!(place.borrow().fence, 1);
        take("b", &registration, &place).unwrap();
        assert_eq!(place.borrow().fence, 2);
    }
}
