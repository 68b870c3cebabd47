//! The file of a checkpoint: safetensors with the tensors as they are, and in its metadata the [`TrainingState`] as JSON and a
//! hash over both.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

use super::TrainingState;
use crate::parameters::read_values;

/// Version of the file's meaning; readers refuse what they do not know.
const VERSION: u32 = 1;
const STATE_KEY: &str = "tengen";
const DIGEST_KEY: &str = "blake3";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    state: TrainingState,
}

/// A tensor as it was saved.
#[derive(Debug)]
pub(super) struct SavedTensor {
    pub(super) shape: Vec<i64>,
    pub(super) values: Vec<f32>,
}

/// Tensors and a state that make no file.
pub(super) enum EncodeError {
    Tensor { name: String, source: TchError },
    NotFinite { name: String },
    Format(String),
}

/// The file of these tensors, by name, and this state.
pub(super) fn encode(named: &[(String, Tensor)], state: &TrainingState) -> Result<Vec<u8>, EncodeError> {
    let mut tensors = Vec::new();
    for (name, tensor) in named {
        let values = read_values(tensor).map_err(|source| EncodeError::Tensor {
            name: name.clone(),
            source,
        })?;
        if !values.iter().all(|value| value.is_finite()) {
            return Err(EncodeError::NotFinite { name: name.clone() });
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape: Vec<usize> = tensor.size().iter().map(|&size| size as usize).collect();
        tensors.push((name.clone(), shape, bytes));
    }
    tensors.sort();
    let format = |error: &dyn std::fmt::Display| EncodeError::Format(error.to_string());
    let header = Header {
        version: VERSION,
        state: state.clone(),
    };
    let header = serde_json::to_string(&header).map_err(|error| format(&error))?;
    let parts = tensors
        .iter()
        .map(|(name, shape, bytes)| (name.as_str(), shape.as_slice(), bytes.as_slice()));
    let digest = digest(&header, parts);
    let mut views = Vec::new();
    for (name, shape, bytes) in &tensors {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(|error| format(&error))?;
        views.push((name.as_str(), view));
    }
    let metadata = HashMap::from([(STATE_KEY.to_owned(), header), (DIGEST_KEY.to_owned(), digest)]);
    safetensors::serialize(views, &Some(metadata)).map_err(|error| format(&error))
}

/// What is in a file, or why it is none.
pub(super) fn decode(bytes: &[u8]) -> Result<(TrainingState, HashMap<String, SavedTensor>), String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let texts = metadata.metadata().as_ref().ok_or("it has no metadata")?;
    let text = |key: &str| texts.get(key).ok_or_else(|| format!("its metadata lacks {key:?}"));
    let header_text = text(STATE_KEY)?;
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut views = file.tensors();
    views.sort_by(|left, right| left.0.cmp(&right.0));
    let found = digest(
        header_text,
        views
            .iter()
            .map(|(name, view)| (name.as_str(), view.shape(), view.data())),
    );
    if &found != text(DIGEST_KEY)? {
        return Err(format!("its content has hash {found}, not the one written in it"));
    }
    let header: Header = serde_json::from_str(header_text).map_err(|error| error.to_string())?;
    if header.version != VERSION {
        return Err(format!("its version is {}, this build reads {VERSION}", header.version));
    }
    let mut tensors = HashMap::new();
    for (name, view) in views {
        if view.dtype() != Dtype::F32 {
            return Err(format!("tensor {name} is not of 32-bit floats"));
        }
        let (words, _) = view.data().as_chunks::<4>();
        let values = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
        let shape = view.shape().iter().map(|&size| size as i64).collect();
        tensors.insert(name, SavedTensor { shape, values });
    }
    Ok((header.state, tensors))
}

/// A hash over the state and every tensor's name, shape and bytes, in the order given.
fn digest<'a>(header: &str, tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(header.as_bytes());
    for (name, shape, bytes) in tensors {
        part(name.as_bytes());
        part(format!("{shape:?}").as_bytes());
        part(bytes);
    }
    hasher.finalize().to_hex().to_string()
}
