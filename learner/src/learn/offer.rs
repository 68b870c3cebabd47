//! Offers a network to a run: as its starting candidate, before it has one of its own.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use tch::Device;
use tengen_network::{Metadata, read_weights};
use tengen_proto::v1::RegisterLearnerRequest;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;
use tengen_service::host;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Subject;
use super::school::Graduate;
use crate::ancestry;
use crate::export::{TRAIN_POSITIONS, export};
use crate::plan::Candidate;
use crate::publish::{Place, Publication, publish};
use crate::reporter::Reporter;
use crate::setup::Setup;
use crate::trainer::Trainer;
use crate::variants::variants;
use crate::wire::reason;

/// Closes no iteration: it learned from no game of the run.
const STARTING: Candidate = Candidate {
    iteration: 0,
    positions: 0,
};

/// A run that wants a starting candidate of this game and shape.
#[derive(Debug)]
pub(super) struct Offer {
    channel: Channel,
    run_id: String,
}

impl Offer {
    /// Asks the coordinator what it trains. `None`: stopped before it answered.
    pub(super) async fn prepare(
        url: &str,
        credentials: &Credentials,
        subject: &Subject,
        stop: &CancellationToken,
    ) -> Result<Option<Offer>> {
        let channel = channel::connect(url, credentials)?;
        let Some(newest) = ancestry::newest(channel.clone(), stop).await? else {
            return Ok(None);
        };
        ensure!(
            newest.iteration == 0,
            "run {} has a candidate of its own already (iteration {}): a starting candidate belongs to a new run",
            newest.run_id,
            newest.iteration
        );
        let theirs = Metadata::from_json(&newest.metadata_json).context("the run's newest network")?;
        let ours = subject.metadata(&newest.run_id, []);
        for (what, theirs, ours) in [
            ("game", theirs.game.clone(), ours.game),
            (
                "rules fingerprint",
                theirs.rules_fingerprint.to_string(),
                ours.rules_fingerprint.to_string(),
            ),
            (
                "feature fingerprint",
                theirs.feature_fingerprint.to_string(),
                ours.feature_fingerprint.to_string(),
            ),
        ] {
            ensure!(
                theirs == ours,
                "run {} has {what} {theirs}, --run says {ours}",
                newest.run_id
            );
        }
        theirs
            .check(&subject.shape)
            .with_context(|| format!("--run describes another network than run {} has", newest.run_id))?;
        let run_id = newest.run_id;
        Ok(Some(Offer { channel, run_id }))
    }

    /// Makes the network's files, then takes the learner's place for as long as the publication lasts. A learner that had it
    /// starts again and finds a newer network than its own, from which it goes on.
    pub(super) async fn make(
        self,
        subject: &Subject,
        path: &Path,
        graduate: Graduate,
        threads: usize,
        stop: &CancellationToken,
    ) -> Result<()> {
        let step = graduate.step;
        let publication = publication(subject, path, graduate, &self.run_id, threads)?;
        let request = RegisterLearnerRequest {
            build: tengen_service::BUILD.to_owned(),
            device: String::new(),
            step,
            host: host::name(),
        };
        let mut reporter = Reporter::new(self.channel.clone(), request, stop.clone());
        let Some(registration) = reporter.register().await? else {
            return Ok(());
        };
        let setup = Setup::from_registration(&registration)?;
        let (id, run_id) = (publication.model_id, setup.identity.run_id);
        ensure!(
            run_id == self.run_id,
            "the coordinator serves run {run_id} now, no longer {}",
            self.run_id
        );
        // Nobody reports, so the place never changes: what is refused under it is refused for good.
        let (_, mut place) = watch::channel(Place {
            fence: registration.fence,
            reports_accepted: 0,
        });
        let mut client = ModelServiceClient::new(self.channel);
        let published = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            published = publish(&mut client, &publication, &mut place) => published,
        };
        published.map_err(|status| {
            anyhow!(
                "the coordinator refused the network: {}; it stays in {}",
                reason(&status),
                path.display()
            )
        })?;
        println!(
            "run {run_id} has it as starting candidate {} (step {step}): its gate decides whether it becomes champion",
            id.short()
        );
        Ok(())
    }
}

/// The kept network as a file of the run, proved once more in ONNX Runtime, and in the precisions that the run file names.
fn publication(
    subject: &Subject,
    path: &Path,
    graduate: Graduate,
    run_id: &str,
    threads: usize,
) -> Result<Publication> {
    let file = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let weights = read_weights(&file).with_context(|| path.display().to_string())?;
    let mut trainer = Trainer::new(&subject.shape, &weights, subject.config.training.clone(), Device::Cpu)?;
    trainer.begin_at(graduate.step);
    // Every game of the run is still to be learned from.
    let extra = graduate.extra.into_iter().chain([(TRAIN_POSITIONS, "0".to_owned())]);
    let metadata = subject.metadata(run_id, extra);
    let export = export(&trainer, graduate.losses, metadata, &graduate.positions, threads)?;
    let planes = &graduate.positions.batch.planes;
    let variants = variants(&subject.shape, &export, planes, &subject.config.export, threads);
    Ok(Publication::new(STARTING, run_id, graduate.step, export, variants))
}
