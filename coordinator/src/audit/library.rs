//! The networks that audits evaluate with: read when a game needs them, a few kept, and those in a reduced precision
//! compared on this CPU, with what they answered where they were made and with fp32, before they are held against anybody.

use std::collections::VecDeque;
use std::sync::Arc;

use prost::Message;
use tengen_proto::v1;
use tengen_records::{ModelId, Precision};
use tengen_selfplay::ModelBytes;
use tengen_selfplay::audit::{Fidelity, InferenceError, divergence, reproduction};
use tengen_selfplay::wire::{WireError, own_probes};

use super::Miss;
use crate::files::ModelFiles;
use crate::messages;
use crate::store::variants::VariantRow;
use crate::store::{Readers, StoreError, models, variants};

/// Files kept in memory: champion and candidate, and the champion before whose last games come late, each in fp32 and in a
/// reduced precision.
const FILES_MAX: usize = 6;

/// What was found of a network in a precision.
pub(super) enum Found {
    /// What games are evaluated again with.
    Ready(Arc<ModelBytes>),
    /// The network comes in it and computes something else on this CPU: that says nothing about whoever played with it.
    Unproven,
}

/// The networks at hand.
pub(super) struct Library {
    readers: Readers,
    files: ModelFiles,
    /// The most recently used last.
    held: VecDeque<Held>,
}

struct Held {
    model: Arc<ModelBytes>,
    /// Why it proves nothing here.
    doubt: Option<Doubt>,
}

impl Held {
    fn found(&self) -> Found {
        match self.doubt {
            None => Found::Ready(Arc::clone(&self.model)),
            Some(_) => Found::Unproven,
        }
    }
}

/// Why a file in a reduced precision is held against nobody.
#[derive(Debug, thiserror::Error)]
enum Doubt {
    /// This CPU computes something else with it than the one that made it, or cannot run it.
    #[error("this CPU does not reproduce it: {0}")]
    Elsewhere(InferenceError),
    /// What it answered is not told as it should be.
    #[error(transparent)]
    Answers(#[from] WireError),
    /// It is not the network here.
    #[error("it is another network here: {0}")]
    Unfaithful(Fidelity),
    /// One of the two files does not run.
    #[error("it does not run here: {0}")]
    Fails(InferenceError),
}

impl Library {
    pub(super) fn new(readers: Readers, files: ModelFiles) -> Library {
        Library {
            readers,
            files,
            held: VecDeque::new(),
        }
    }

    /// The network in this precision. One that does not come in it is given in fp32: whoever states the precision states
    /// something false.
    pub(super) fn find(&mut self, id: ModelId, precision: Precision) -> Result<Found, Miss> {
        if let Some(found) = self.held(id, precision) {
            return Ok(found);
        }
        let variants = self.readers.with(|connection| variants::with_answers(connection, id))?;
        match variants.into_iter().find(|variant| variant.precision == precision) {
            Some(variant) => self.variant(&variant),
            None => Ok(Found::Ready(self.network(id)?)),
        }
    }

    fn held(&mut self, id: ModelId, precision: Precision) -> Option<Found> {
        let wanted = |held: &Held| held.model.id() == id && held.model.precision() == precision;
        let at = self.held.iter().position(wanted)?;
        let held = self.held.remove(at)?;
        let found = held.found();
        self.held.push_back(held);
        Some(found)
    }

    fn hold(&mut self, model: Arc<ModelBytes>, doubt: Option<Doubt>) -> Found {
        let held = Held { model, doubt };
        let found = held.found();
        self.held.push_back(held);
        if self.held.len() > FILES_MAX {
            self.held.pop_front();
        }
        found
    }

    /// What is held against nobody because it proves nothing here, and why, for people: of the files at hand the one that was
    /// used last. Empty when there is none.
    pub(super) fn withheld(&self) -> String {
        let doubted = self.held.iter().rev().find_map(|held| {
            let (model, doubt) = (&held.model, held.doubt.as_ref()?);
            Some(format!(
                "{} of network {}: {doubt}",
                model.precision(),
                model.id().short()
            ))
        });
        doubted.unwrap_or_default()
    }

    /// The network in fp32.
    fn network(&mut self, id: ModelId) -> Result<Arc<ModelBytes>, Miss> {
        if let Some(Found::Ready(model)) = self.held(id, Precision::Fp32) {
            return Ok(model);
        }
        let model = ModelBytes::new(self.read(id)?);
        if model.id() != id {
            return Err(Miss::Damaged(id));
        }
        self.hold(Arc::clone(&model), None);
        Ok(model)
    }

    /// The network in a reduced precision, compared on its probes as actors compare it.
    fn variant(&mut self, row: &VariantRow) -> Result<Found, Miss> {
        let network = self.network(row.model)?;
        let model = ModelBytes::variant(row.model, row.precision, self.read(row.file)?);
        if model.file_id() != row.file {
            return Err(Miss::Damaged(row.file));
        }
        let probes = self.probes(row.model)?;
        let (id, precision) = (row.model.short(), row.precision);
        let doubt = match examined(&network, &model, &probes, &messages::answers(row)?) {
            Ok((difference, found)) => {
                tracing::info!(model = %id, %precision, difference, %found, "a reduced precision is audited");
                None
            }
            Err(doubt) => {
                tracing::warn!(model = %id, %precision, why = %doubt, "a reduced precision is not audited");
                Some(doubt)
            }
        };
        Ok(self.hold(model, doubt))
    }

    fn read(&self, id: ModelId) -> Result<Vec<u8>, Miss> {
        self.files.read_whole(id).map_err(|error| Miss::File(id, error))
    }

    fn probes(&self, id: ModelId) -> Result<Vec<v1::Probe>, Miss> {
        let row = self.readers.with(|connection| models::get(connection, id))?;
        let encoded = row.map(|row| row.probes).unwrap_or_default();
        let model = v1::Model::decode(&encoded[..]).map_err(|error| StoreError::corrupt("probes", error))?;
        Ok(model.probes)
    }
}

/// Compares a file in a reduced precision with what it answered where it was made, and with the network in fp32: how far it is
/// from the one and from the other on this CPU.
fn examined(
    network: &ModelBytes,
    model: &ModelBytes,
    probes: &[v1::Probe],
    answers: &[v1::ProbeAnswer],
) -> Result<(f32, Fidelity), Doubt> {
    let own = own_probes(probes.iter().map(|probe| probe.planes.as_slice()), answers)?;
    let difference = reproduction(model, &own).map_err(Doubt::Elsewhere)?;
    let planes: Vec<u8> = probes.iter().flat_map(|probe| &probe.planes).copied().collect();
    let found = divergence(network, model, &planes, probes.len()).map_err(Doubt::Fails)?;
    match found.is_faithful() {
        true => Ok((difference, found)),
        false => Err(Doubt::Unfaithful(found)),
    }
}
