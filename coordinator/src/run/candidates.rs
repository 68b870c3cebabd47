//! The learner and its networks: publications and promotions.

use rusqlite::Connection;
use tengen_control::{Activity, Candidate, Event};
use tengen_proto::v1;
use tengen_records::ModelId;

use super::owner::{Now, Outbox};
use super::request::{Fenced, LearnerTask, PublishRefused};
use super::state::{State, control_model};
use super::status::{LearnerLive, clock_offset_ms};
use crate::messages;
use crate::store::models::ModelRow;
use crate::store::variants::{self, VariantRow};
use crate::store::{StoreError, models};

impl State {
    /// Gives the learner's place to a new learner.
    pub(super) fn register_learner(&mut self, status: v1::LearnerStatus, now: Now) -> u64 {
        self.progress_mut().fence += 1;
        let fence = self.progress().fence;
        tracing::info!(fence, device = status.device, step = status.step, "learner registered");
        self.live_learner = Some(LearnerLive {
            heard_ms: now.ms,
            status,
        });
        fence
    }

    /// Takes the learner's report and says what is due.
    pub(super) fn report_learner(
        &mut self,
        fence: u64,
        status: v1::LearnerStatus,
        now: Now,
    ) -> Result<LearnerTask, Fenced> {
        self.check_fence(fence)?;
        let clock_offset_ms = clock_offset_ms(status.clock_unix_ms, now);
        self.live_learner = Some(LearnerLive {
            heard_ms: now.ms,
            status: v1::LearnerStatus {
                clock_offset_ms,
                ..status
            },
        });
        let due = self.control.due();
        Ok(LearnerTask {
            iteration: self.control.iteration(),
            candidate_iteration: due.map_or(0, |due| due.iteration),
            candidate_positions: due.map_or(0, |due| due.positions),
            published_iteration: self.control.published_iteration(),
            training_paused: self.control.steering().paused.contains(&Activity::Training),
            ended: self.control.steering().ended,
        })
    }

    fn check_fence(&self, given: u64) -> Result<(), Fenced> {
        let newest = self.progress().fence;
        if given == newest {
            Ok(())
        } else {
            Err(Fenced { given, newest })
        }
    }

    /// Takes a network whose files are durable. Publishing the same network again changes nothing.
    pub(super) fn publish(
        &mut self,
        connection: &Connection,
        fence: u64,
        model: ModelRow,
        reduced: &[VariantRow],
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<ModelRow, PublishRefused>, StoreError> {
        if let Err(fenced) = self.check_fence(fence) {
            return Ok(Err(fenced.into()));
        }
        if let Some(known) = models::get(connection, model.id)? {
            return Ok(Ok(known));
        }
        if self.control.steering().ended {
            return Ok(Err(PublishRefused::Ended));
        }
        if !self.control.wants_candidate(model.iteration) {
            let (ended, published) = (self.control.iteration(), self.control.published_iteration());
            return Ok(Err(PublishRefused::Iteration {
                iteration: model.iteration,
                ended,
                published,
            }));
        }
        if let Some(parent) = model.parent
            && models::get(connection, parent)?.is_none()
        {
            return Ok(Err(PublishRefused::Parent(parent.to_string())));
        }
        models::insert(connection, &model)?;
        for variant in reduced {
            variants::insert(connection, variant)?;
        }
        let precisions: Vec<&str> = reduced.iter().map(|variant| variant.precision.as_str()).collect();
        let (iteration, step) = (model.iteration, model.step);
        tracing::info!(model = %model.id.short(), iteration, step, also_in = ?precisions, "candidate published");
        let candidate = Candidate {
            model: control_model(model.id),
            iteration: model.iteration,
        };
        self.step(connection, Event::CandidatePublished(candidate), now, out)?;
        let stored = models::get(connection, model.id)?;
        stored
            .map(Ok)
            .ok_or_else(|| StoreError::corrupt("model", "it was just stored and is not there"))
    }

    /// Changes the champion, if it is the one the decision was about.
    #[expect(clippy::too_many_arguments, reason = "the fields of one effect")]
    pub(super) fn promote(
        &mut self,
        connection: &Connection,
        model: tengen_control::ModelId,
        generation: u32,
        previous: tengen_control::ModelId,
        reason: &str,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        let (model, previous) = (ModelId(model.0), ModelId(previous.0));
        if !models::promote(connection, model, generation, previous, reason, now.unix_ms)? {
            return Err(StoreError::corrupt(
                "champion",
                format!("it is not {previous} when {model} is promoted"),
            ));
        }
        out.new_champion = Some(self.champion_message(connection)?);
        tracing::info!(model = %model.short(), generation, reason, "promoted");
        Ok(())
    }

    /// The champion for those who watch it.
    pub(super) fn champion_message(&mut self, connection: &Connection) -> Result<v1::Model, StoreError> {
        let row = models::champion(connection)?.ok_or_else(|| StoreError::corrupt("champion", "there is none"))?;
        let message = messages::model(connection, self.facts.id.as_str(), &row)?;
        self.champion = row;
        Ok(message)
    }
}
