//! A network as the players hold it: its file's bytes, and what they are: which network, in which precision.

use std::fmt;
use std::sync::Arc;

use tengen_network::Metadata;
use tengen_records::{ModelId, Precision};

/// Property in which a file in a reduced precision names the network it was made from.
const FP32_MODEL: &str = "fp32_model";

/// A network's file in memory. Shared between threads; an evaluator keeps a session only as long as somebody holds the
/// model.
///
/// A network may be held in several precisions at once: they share their [`ModelBytes::id`], which records name, and each
/// has a [`ModelBytes::file_id`] of its own, by which answers and sessions are told apart.
pub struct ModelBytes {
    id: ModelId,
    precision: Precision,
    file_id: ModelId,
    bytes: Vec<u8>,
}

impl ModelBytes {
    /// The network in fp32 whose file is `bytes`; its id is computed here and nowhere taken on trust.
    pub fn new(bytes: Vec<u8>) -> Arc<ModelBytes> {
        let file_id = ModelId(tengen_network::model_id(&bytes));
        Arc::new(ModelBytes {
            id: file_id,
            precision: Precision::Fp32,
            file_id,
            bytes,
        })
    }

    /// The network `id` in another precision, whose file is `bytes`. That the file is this network's is for the caller to
    /// have found out: [`check_variant`] says what it says of itself, and
    /// [`compare_precisions`](tengen_inference::compare_precisions) what it computes.
    pub fn variant(id: ModelId, precision: Precision, bytes: Vec<u8>) -> Arc<ModelBytes> {
        Arc::new(ModelBytes {
            id,
            precision,
            file_id: ModelId(tengen_network::model_id(&bytes)),
            bytes,
        })
    }

    /// The network: hash of its file in fp32.
    pub fn id(&self) -> ModelId {
        self.id
    }

    /// What this file computes in.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Hash of this file.
    pub fn file_id(&self) -> ModelId {
        self.file_id
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for ModelBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelBytes")
            .field("id", &self.id)
            .field("precision", &self.precision)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// A file that does not say that it is the network in the precision it is offered in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file says {what} {stated:?}, where {wanted:?} is wanted")]
pub struct VariantError {
    /// Which property.
    pub what: &'static str,
    /// What the file says; empty when it says nothing.
    pub stated: String,
    /// What it should say.
    pub wanted: String,
}

/// Refuses a file, by what it says of itself, unless it is the network `id`, whose file in fp32 says `network`, in
/// `precision`.
pub fn check_variant(
    file: &Metadata,
    precision: Precision,
    id: ModelId,
    network: &Metadata,
) -> Result<(), VariantError> {
    let of = |metadata: &Metadata| {
        [
            ("run", metadata.run.clone()),
            ("game", metadata.game.clone()),
            ("rules fingerprint", metadata.rules_fingerprint.to_string()),
            ("feature fingerprint", metadata.feature_fingerprint.to_string()),
            ("iteration", metadata.iteration.to_string()),
            ("step", metadata.step.to_string()),
            ("blocks", metadata.blocks.to_string()),
            ("channels", metadata.channels.to_string()),
            ("heads", metadata.heads.clone()),
        ]
    };
    let own = [
        ("precision", file.precision.to_string(), precision.to_string()),
        (FP32_MODEL, property(file, FP32_MODEL), id.to_string()),
    ];
    let shared = of(file).into_iter().zip(of(network));
    let pairs = shared.map(|((what, stated), (_, wanted))| (what, stated, wanted));
    match own
        .into_iter()
        .chain(pairs)
        .find(|(_, stated, wanted)| stated != wanted)
    {
        Some((what, stated, wanted)) => Err(VariantError { what, stated, wanted }),
        None => Ok(()),
    }
}

/// The precision that a file says it computes in, and the network that it is: another than its own file's hash only where
/// it names the one it was made from. `None` for a precision that no record can name.
pub fn identity(metadata: &Metadata, file_id: ModelId) -> Option<(ModelId, Precision)> {
    let precision = Precision::parse(metadata.precision.as_str())?;
    let id = match precision {
        Precision::Fp32 => file_id,
        Precision::Fp16 | Precision::Int8 => property(metadata, FP32_MODEL).parse().ok()?,
    };
    Some((id, precision))
}

/// The text of a property; empty when there is none.
fn property(metadata: &Metadata, key: &str) -> String {
    let found = metadata.properties().into_iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tengen_games::AnyGame;
    use tengen_network::{Config, Shape};

    use super::*;

    const NETWORK: ModelId = ModelId([7; 32]);

    /// What a network's file and its file in int8 say.
    fn metadata() -> (Metadata, Metadata) {
        let game = AnyGame::parse("tic-tac-toe").expect("a game");
        let shape = Shape::new(game.spec(), &Config::default()).expect("a shape");
        let network = Metadata {
            run: "a-run".to_owned(),
            game: game.spec().id.clone(),
            iteration: 3,
            step: 700,
            ..Metadata::of_shape(&shape)
        };
        let variant = Metadata {
            precision: tengen_network::Precision::Int8,
            extra: [(FP32_MODEL.to_owned(), NETWORK.to_string())].into(),
            ..network.clone()
        };
        (network, variant)
    }

    #[test]
    fn a_variant_has_its_networks_id_and_its_own_files() {
        let (whole, reduced) = (
            ModelBytes::new(vec![1]),
            ModelBytes::variant(NETWORK, Precision::Int8, vec![1]),
        );
        assert_eq!((whole.id(), whole.precision()), (whole.file_id(), Precision::Fp32));
        assert_eq!((reduced.id(), reduced.precision()), (NETWORK, Precision::Int8));
        assert_eq!(reduced.file_id(), whole.file_id(), "the hash of the same bytes");
    }

    #[test]
    fn a_file_of_another_network_precision_or_position_in_the_run_is_refused_by_what_it_says() {
        let (network, variant) = metadata();
        let check = |file: &Metadata| check_variant(file, Precision::Int8, NETWORK, &network);
        assert_eq!(check(&variant), Ok(()));
        assert_eq!(identity(&variant, ModelId([9; 32])), Some((NETWORK, Precision::Int8)));
        assert_eq!(
            identity(&network, ModelId([9; 32])),
            Some((ModelId([9; 32]), Precision::Fp32))
        );
        let refused = |change: fn(&mut Metadata)| {
            let mut other = variant.clone();
            change(&mut other);
            check(&other).expect_err("a refusal").what
        };
        assert_eq!(
            refused(|file| file.precision = tengen_network::Precision::Fp16),
            "precision"
        );
        assert_eq!(refused(|file| file.extra.clear()), FP32_MODEL);
        assert_eq!(
            refused(|file| {
                file.extra.insert(FP32_MODEL.to_owned(), "08".repeat(32));
            }),
            FP32_MODEL
        );
        assert_eq!(refused(|file| file.iteration = 4), "iteration");
        assert_eq!(refused(|file| file.channels += 1), "channels");
        assert_eq!(check(&network).expect_err("a refusal").what, "precision");
    }
}
