//! The networks that audits evaluate with: read when a game needs them, a few kept, and those in a reduced precision
//! compared with fp32 on this CPU before they are held against anybody.

use std::collections::VecDeque;
use std::sync::Arc;

use prost::Message;
use tengen_proto::v1;
use tengen_records::{ModelId, Precision};
use tengen_selfplay::ModelBytes;
use tengen_selfplay::audit::divergence;

use super::Miss;
use crate::files::ModelFiles;
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
    is_proven: bool,
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
        let variants = self.readers.with(|connection| variants::of(connection, id))?;
        match variants.into_iter().find(|variant| variant.precision == precision) {
            Some(variant) => self.variant(&variant),
            None => Ok(Found::Ready(self.network(id)?)),
        }
    }

    fn held(&mut self, id: ModelId, precision: Precision) -> Option<Found> {
        let wanted = |held: &Held| held.model.id() == id && held.model.precision() == precision;
        let at = self.held.iter().position(wanted)?;
        let held = self.held.remove(at)?;
        let found = match held.is_proven {
            true => Found::Ready(Arc::clone(&held.model)),
            false => Found::Unproven,
        };
        self.held.push_back(held);
        Some(found)
    }

    fn hold(&mut self, model: &Arc<ModelBytes>, is_proven: bool) {
        self.held.push_back(Held {
            model: Arc::clone(model),
            is_proven,
        });
        if self.held.len() > FILES_MAX {
            self.held.pop_front();
        }
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
        self.hold(&model, true);
        Ok(model)
    }

    /// The network in a reduced precision, compared with fp32 on its probes as actors compare it.
    fn variant(&mut self, row: &VariantRow) -> Result<Found, Miss> {
        let network = self.network(row.model)?;
        let model = ModelBytes::variant(row.model, row.precision, self.read(row.file)?);
        if model.file_id() != row.file {
            return Err(Miss::Damaged(row.file));
        }
        let probes = self.probes(row.model)?;
        let planes: Vec<u8> = probes.iter().flat_map(|probe| &probe.planes).copied().collect();
        let (id, precision) = (row.model.short(), row.precision);
        let is_proven = match divergence(&network, &model, &planes, probes.len()) {
            Ok(found) if found.is_faithful() => {
                tracing::info!(model = %id, %precision, %found, "a reduced precision is audited");
                true
            }
            Ok(found) => {
                tracing::warn!(model = %id, %precision, %found, "a reduced precision is not audited: it is not faithful here");
                false
            }
            Err(error) => {
                tracing::warn!(model = %id, %precision, %error, "a reduced precision is not audited: it does not run here");
                false
            }
        };
        self.hold(&model, is_proven);
        Ok(match is_proven {
            true => Found::Ready(model),
            false => Found::Unproven,
        })
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
