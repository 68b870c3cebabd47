//! What a model file says about itself: the ONNX `metadata_props`.
//!
//! The properties are text under stable keys, so that any ONNX viewer shows them and any tool reads them.

use std::collections::BTreeMap;
use std::fmt;

use tengen_games::Fingerprint;

use crate::shape::Shape;

/// Key of the metadata of a file in a reduced precision: id of the fp32 file of the same network, 64 hexadecimal digits.
pub const FP32_MODEL: &str = "fp32_model";

/// In which arithmetic a model's graph computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// 32-bit floats throughout.
    #[default]
    Fp32,
    /// 16-bit floats from the first convolution to the heads' inputs.
    Fp16,
    /// Convolutions of the tower in 8-bit integers, heads in 32-bit floats.
    Int8,
}

impl Precision {
    /// The stable name used in files and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Precision::Fp32 => "fp32",
            Precision::Fp16 => "fp16",
            Precision::Int8 => "int8",
        }
    }

    /// The precision with this stable name.
    pub fn parse(name: &str) -> Option<Precision> {
        [Precision::Fp32, Precision::Fp16, Precision::Int8]
            .into_iter()
            .find(|precision| precision.as_str() == name)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a model file says about itself. [`Metadata::of_shape`] fills the fields that follow from the shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The run it belongs to (`run`).
    pub run: String,
    /// The game's canonical id with parameters (`game`).
    pub game: String,
    /// Fingerprint of the game's rules (`rules_fingerprint`, 64 hex digits).
    pub rules_fingerprint: Fingerprint,
    /// Fingerprint of the game's planes (`feature_fingerprint`, 64 hex digits).
    pub feature_fingerprint: Fingerprint,
    /// The iteration after which it was cut; 0 for the random network (`iteration`).
    pub iteration: u32,
    /// Promotions in the run when it was cut; 0 for the random network (`generation`).
    pub generation: u32,
    /// The learner step it was cut at (`step`).
    pub step: u64,
    /// Id of the model it was trained on from (`parent`, 64 hex digits, empty for the random network).
    pub parent: Option<[u8; 32]>,
    /// Residual blocks (`blocks`).
    pub blocks: usize,
    /// Feature maps of the tower (`channels`).
    pub channels: usize,
    /// [`Shape::heads`] (`heads`).
    pub heads: String,
    /// The graph's arithmetic (`precision`).
    pub precision: Precision,
    /// When it was cut, RFC 3339 in UTC (`created`).
    pub created: String,
    /// Any other properties, for example training parameters, under keys of their own.
    pub extra: BTreeMap<String, String>,
}

/// Why properties are not a model's metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A property is not there.
    #[error("the model has no property {key}")]
    Missing {
        /// Its key.
        key: &'static str,
    },
    /// A property that does not say what its key promises.
    #[error("the model's property {key} is {value:?}, which is not {wanted}")]
    Invalid {
        /// Its key.
        key: &'static str,
        /// Its text.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A key that occurs twice, or an extra property under a key that has a field.
    #[error("the model has the property {key} twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// Metadata that speaks of another network than the one it goes with.
    #[error("the metadata says {key} {stated:?}, and the network has {actual:?}")]
    OtherShape {
        /// The property's key.
        key: &'static str,
        /// What the metadata says.
        stated: String,
        /// What the shape says.
        actual: String,
    },
    /// Text that is not a JSON object of strings.
    #[error("the metadata is not a JSON object of strings: {0}")]
    Json(String),
}

impl Metadata {
    /// Metadata with the fields that follow from `shape`, the others empty or zero.
    pub fn of_shape(shape: &Shape) -> Metadata {
        Metadata {
            run: String::new(),
            game: String::new(),
            rules_fingerprint: Fingerprint([0; 32]),
            feature_fingerprint: Fingerprint([0; 32]),
            iteration: 0,
            generation: 0,
            step: 0,
            parent: None,
            blocks: shape.blocks,
            channels: shape.channels,
            heads: shape.heads(),
            precision: Precision::default(),
            created: String::new(),
            extra: BTreeMap::new(),
        }
    }

    /// What the file of the same network in `precision` says of itself: all of this, and which fp32 file it was made from.
    pub fn in_precision(&self, precision: Precision, fp32_model: [u8; 32]) -> Metadata {
        let mut metadata = Metadata {
            precision,
            ..self.clone()
        };
        metadata.extra.insert(FP32_MODEL.to_owned(), hex::encode(fp32_model));
        metadata
    }

    /// The properties as key and text: the fields in a fixed order, then the extra ones by key.
    pub fn properties(&self) -> Vec<(String, String)> {
        let fields = [
            ("run", self.run.clone()),
            ("game", self.game.clone()),
            ("rules_fingerprint", self.rules_fingerprint.to_string()),
            ("feature_fingerprint", self.feature_fingerprint.to_string()),
            ("iteration", self.iteration.to_string()),
            ("generation", self.generation.to_string()),
            ("step", self.step.to_string()),
            ("parent", self.parent.map(hex::encode).unwrap_or_default()),
            ("blocks", self.blocks.to_string()),
            ("channels", self.channels.to_string()),
            ("heads", self.heads.clone()),
            ("precision", self.precision.to_string()),
            ("created", self.created.clone()),
        ];
        let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value));
        fields.chain(self.extra.clone()).collect()
    }

    /// The metadata that these properties are; the inverse of [`Metadata::properties`].
    pub fn from_properties(properties: impl IntoIterator<Item = (String, String)>) -> Result<Metadata, MetadataError> {
        let mut rest = Properties::default();
        for (key, value) in properties {
            if rest.0.contains_key(&key) {
                return Err(MetadataError::Twice { key });
            }
            rest.0.insert(key, value);
        }
        Ok(Metadata {
            run: rest.take("run")?,
            game: rest.take("game")?,
            rules_fingerprint: Fingerprint(rest.digest("rules_fingerprint")?),
            feature_fingerprint: Fingerprint(rest.digest("feature_fingerprint")?),
            iteration: rest.number("iteration")?,
            generation: rest.number("generation")?,
            step: rest.number("step")?,
            parent: rest.optional_digest("parent")?,
            blocks: rest.number("blocks")?,
            channels: rest.number("channels")?,
            heads: rest.take("heads")?,
            precision: rest.parsed("precision", "a known precision", Precision::parse)?,
            created: rest.take("created")?,
            extra: rest.0,
        })
    }

    /// The properties as a JSON object of strings.
    pub fn to_json(&self) -> String {
        let object = self
            .properties()
            .into_iter()
            .map(|(key, value)| (key, serde_json::Value::String(value)));
        serde_json::Value::Object(object.collect()).to_string()
    }

    /// The metadata of a JSON object of strings; the inverse of [`Metadata::to_json`].
    pub fn from_json(json: &str) -> Result<Metadata, MetadataError> {
        let properties: BTreeMap<String, String> =
            serde_json::from_str(json).map_err(|error| MetadataError::Json(error.to_string()))?;
        Metadata::from_properties(properties)
    }

    /// Checks that the metadata speaks of `shape` and that no extra property takes the key of a field.
    pub fn check(&self, shape: &Shape) -> Result<(), MetadataError> {
        let pairs = [
            ("blocks", self.blocks.to_string(), shape.blocks.to_string()),
            ("channels", self.channels.to_string(), shape.channels.to_string()),
            ("heads", self.heads.clone(), shape.heads()),
        ];
        for (key, stated, actual) in pairs {
            if stated != actual {
                return Err(MetadataError::OtherShape { key, stated, actual });
            }
        }
        Metadata::from_properties(self.properties()).map(|_| ())
    }
}

/// Properties not read yet.
#[derive(Default)]
struct Properties(BTreeMap<String, String>);

impl Properties {
    fn take(&mut self, key: &'static str) -> Result<String, MetadataError> {
        self.0.remove(key).ok_or(MetadataError::Missing { key })
    }

    fn parsed<T>(
        &mut self,
        key: &'static str,
        wanted: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, MetadataError> {
        let value = self.take(key)?;
        parse(&value).ok_or(MetadataError::Invalid { key, value, wanted })
    }

    fn number<T: std::str::FromStr>(&mut self, key: &'static str) -> Result<T, MetadataError> {
        self.parsed(key, "a whole number in range", |text| text.parse().ok())
    }

    fn digest(&mut self, key: &'static str) -> Result<[u8; 32], MetadataError> {
        self.parsed(key, "64 hexadecimal digits", digest)
    }

    fn optional_digest(&mut self, key: &'static str) -> Result<Option<[u8; 32]>, MetadataError> {
        self.parsed(key, "empty or 64 hexadecimal digits", |text| match text {
            "" => Some(None),
            text => digest(text).map(Some),
        })
    }
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}
