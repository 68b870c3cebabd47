//! Reading a model file: its metadata, and its weights for tools that compute without ONNX Runtime.
//!
//! Any bytes are safe to read: what is not a model is an error.

use prost::Message;

use super::SCALE_NAME;
use super::proto::tensor_proto::{DataLocation, DataType};
use super::proto::{ModelProto, TensorProto};
use crate::metadata::{FP32_MODEL, Metadata, MetadataError, Precision};
use crate::weights::{Tensor, Weights, WeightsError};

/// Why bytes are not a readable model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// Not a protobuf message of ONNX.
    #[error("the bytes are not an ONNX model: {0}")]
    Decode(String),
    /// A model without a graph.
    #[error("the ONNX model has no graph")]
    NoGraph,
    /// A file in another precision than 32-bit floats.
    #[error(
        "the file holds the network in {precision}: weights are read from its fp32 file, whose id is the property \
         {FP32_MODEL}"
    )]
    Precision {
        /// The precision.
        precision: Precision,
    },
    /// An initialiser that is not plain 32-bit floats in the file.
    #[error("the tensor {name} is not stored as 32-bit floats in the file")]
    NotFloat {
        /// Its name.
        name: String,
    },
    /// An initialiser with a negative dimension.
    #[error("the tensor {name} has the dimensions {dims:?}")]
    Dims {
        /// Its name.
        name: String,
        /// The dimensions.
        dims: Vec<i64>,
    },
    /// An initialiser whose bytes do not fill its shape.
    #[error("the tensor {name}: {source}")]
    Length {
        /// Its name.
        name: String,
        /// What is wrong.
        source: WeightsError,
    },
    /// Properties that are not a model's metadata.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// The metadata of the model file `model`.
pub fn read_metadata(model: &[u8]) -> Result<Metadata, ReadError> {
    let properties = decode(model)?.metadata_props;
    let pairs = properties
        .into_iter()
        .map(|entry| (entry.key.unwrap_or_default(), entry.value.unwrap_or_default()));
    Ok(Metadata::from_properties(pairs)?)
}

/// The weights of the model file `model`, which must be one in fp32: in any other precision they are no longer what was
/// trained. Whether they are those of a shape is for [`Weights::check`] to say.
pub fn read_weights(model: &[u8]) -> Result<Weights, ReadError> {
    let model = decode(model)?;
    if let Some(precision) = reduced_precision(&model) {
        return Err(ReadError::Precision { precision });
    }
    let graph = model.graph.ok_or(ReadError::NoGraph)?;
    let mut weights = Weights::new();
    for initializer in graph.initializer {
        let name = initializer.name.clone().unwrap_or_default();
        if name != SCALE_NAME {
            let tensor = tensor(&name, initializer)?;
            weights.insert(name, tensor);
        }
    }
    Ok(weights)
}

fn decode(model: &[u8]) -> Result<ModelProto, ReadError> {
    ModelProto::decode(model).map_err(|error| ReadError::Decode(error.to_string()))
}

/// The precision that the properties name, where it is not fp32. Files of other origin need not have any.
fn reduced_precision(model: &ModelProto) -> Option<Precision> {
    let mut properties = model.metadata_props.iter();
    let stated = properties.find(|entry| entry.key.as_deref() == Some("precision"))?;
    Precision::parse(stated.value.as_deref()?).filter(|precision| *precision != Precision::Fp32)
}

fn tensor(name: &str, initializer: TensorProto) -> Result<Tensor, ReadError> {
    let not_float = || ReadError::NotFloat { name: name.to_owned() };
    let external = initializer.data_location == Some(DataLocation::External as i32);
    if initializer.data_type != Some(DataType::Float as i32) || external {
        return Err(not_float());
    }
    let raw = initializer.raw_data.ok_or_else(not_float)?;
    let (values, rest) = raw.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(not_float());
    }
    let shape: Result<Vec<usize>, _> = initializer.dims.iter().map(|dim| usize::try_from(*dim)).collect();
    let shape = shape.map_err(|_| ReadError::Dims {
        name: name.to_owned(),
        dims: initializer.dims,
    })?;
    let data = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Tensor::new(shape, data).map_err(|source| ReadError::Length {
        name: name.to_owned(),
        source,
    })
}
