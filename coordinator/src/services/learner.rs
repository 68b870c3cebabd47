//! `LearnerService`: the learner's place, its progress, what is due.

use tengen_proto::v1;
use tengen_proto::v1::learner_service_server::LearnerService;
use tonic::{Request, Response, Status};

use super::Shared;
use super::actor::{clipped, finite, text, usage};
use crate::run::request::{self, LearnerTask};
use crate::window::RunWindow;

/// The service.
#[derive(Debug)]
pub(crate) struct LearnerApi(pub(crate) Shared);

#[tonic::async_trait]
impl LearnerService for LearnerApi {
    async fn register(
        &self,
        request: Request<v1::RegisterLearnerRequest>,
    ) -> Result<Response<v1::RegisterLearnerResponse>, Status> {
        let v1::RegisterLearnerRequest {
            build,
            device,
            step,
            host,
        } = request.into_inner();
        let status = Box::new(v1::LearnerStatus {
            step,
            device: text("device", device)?,
            build: text("build", build)?,
            host: text("host", host)?,
            ..v1::LearnerStatus::default()
        });
        let fence = self
            .0
            .run
            .ask(|reply| request::Request::RegisterLearner { status, reply })
            .await?;
        let facts = self.0.run.facts();
        let steering = self.0.run.status().borrow().steering.clone().unwrap_or_default();
        Ok(Response::new(v1::RegisterLearnerResponse {
            run_id: facts.id.to_string(),
            game: facts.game.spec().id.clone(),
            rules_fingerprint: facts.rules_fingerprint.0.to_vec(),
            feature_fingerprint: facts.feature_fingerprint.0.to_vec(),
            fence,
            run_toml: facts.toml.clone(),
            seed: facts.config.run.seed,
            window_store: match self.0.run.window() {
                RunWindow::Memory(_) => String::new(),
                RunWindow::Redis(feed) => feed.server().to_owned(),
            },
            settings_revision: facts.settings_revision,
            training_paused: steering.paused().any(|paused| paused == v1::Activity::Training),
        }))
    }

    async fn report(
        &self,
        request: Request<v1::ReportLearnerRequest>,
    ) -> Result<Response<v1::ReportLearnerResponse>, Status> {
        let v1::ReportLearnerRequest {
            fence,
            status,
            settings_revision: followed,
        } = request.into_inner();
        let status = checked(status.unwrap_or_default())?;
        let task = self
            .0
            .run
            .ask(|reply| request::Request::ReportLearner { fence, status, reply })
            .await??;
        let facts = self.0.run.facts();
        let LearnerTask {
            iteration,
            candidate_iteration,
            candidate_positions,
            published_iteration,
            training_paused,
            ended,
        } = task;
        Ok(Response::new(v1::ReportLearnerResponse {
            iteration,
            candidate_iteration,
            candidate_positions,
            published_iteration,
            training_paused,
            ended,
            settings_revision: facts.settings_revision,
            // A learner that does not say which revision it follows is one that cannot.
            run_toml: if followed == 0 || followed == facts.settings_revision {
                String::new()
            } else {
                facts.toml.clone()
            },
        }))
    }
}

/// A status whose texts are short and whose rates and usage are of numbers.
fn checked(status: v1::LearnerStatus) -> Result<v1::LearnerStatus, Status> {
    Ok(v1::LearnerStatus {
        device: text("status.device", status.device)?,
        device_wanted: text("status.device_wanted", status.device_wanted)?,
        activity: clipped(status.activity),
        host: text("status.host", status.host)?,
        build: text("status.build", status.build)?,
        usage: status.usage.map(usage),
        policy_loss: finite(status.policy_loss),
        value_loss: finite(status.value_loss),
        learning_rate: finite(status.learning_rate),
        steps_per_second: finite(status.steps_per_second),
        waited_for_batches: finite(status.waited_for_batches).min(1.0),
        ema_decay: finite(status.ema_decay).min(1.0),
        illegal_mass: status.illegal_mass.map(finite),
        ..status
    })
}
