//! The networks whose games are audited, and the ones that are really played with instead.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::AnyGame;
use tengen_network::{
    Config, Metadata, Precision, Shape, Weights, random_weights, read_metadata, read_weights, write_onnx,
};
use tengen_records::ModelId;
use tengen_selfplay::ModelBytes;
use tengen_selfplay::model::identity;

use crate::Outcome;

/// A network with its parts.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) name: String,
    pub(crate) game: AnyGame,
    pub(crate) shape: Shape,
    pub(crate) weights: Weights,
    pub(crate) model: Arc<ModelBytes>,
    /// Its files in reduced precisions.
    pub(crate) variants: Vec<Arc<ModelBytes>>,
}

impl Network {
    pub(crate) fn new(game: &str, blocks: usize, channels: usize, seed: u64) -> Outcome<Network> {
        let game = AnyGame::parse(game)?;
        let config = Config {
            blocks,
            channels,
            ..Config::default()
        };
        let shape = Shape::new(game.spec(), &config)?;
        let weights = random_weights(&shape, seed);
        Network::of(
            format!("{} {blocks}x{channels}, random", game.spec().id),
            game,
            shape,
            weights,
        )
    }

    pub(crate) fn of(name: String, game: AnyGame, shape: Shape, weights: Weights) -> Outcome<Network> {
        let model = ModelBytes::new(write_onnx(&shape, &weights, &Metadata::of_shape(&shape))?);
        Ok(Network {
            name,
            game,
            shape,
            weights,
            model,
            variants: Vec::new(),
        })
    }

    /// The same as it plays in each reduced precision.
    pub(crate) fn reduced(&self) -> impl Iterator<Item = Network> + '_ {
        self.variants.iter().map(|variant| Network {
            name: format!("{}, {}", self.name, variant.precision()),
            model: Arc::clone(variant),
            ..self.clone()
        })
    }

    /// The same with other weights.
    pub(crate) fn with(&self, what: &str, weights: Weights) -> Outcome<Network> {
        Network::of(
            format!("{}, {what}", self.name),
            self.game.clone(),
            self.shape.clone(),
            weights,
        )
    }

    /// Another random one of its shape.
    pub(crate) fn another(&self, seed: u64) -> Outcome<Network> {
        self.with("another", random_weights(&self.shape, seed))
    }

    /// With outputs scaled up, so that it is as sure of itself as a trained one.
    pub(crate) fn lively(&self, scale: f32) -> Network {
        let mut weights = self.weights.clone();
        for layer in self.shape.layers() {
            let weight = weights.get_mut(&layer.weight_name()).expect("every layer has a weight");
            if layer.name.starts_with("policy") || layer.name == "value.out" {
                weight.data_mut().iter_mut().for_each(|value| *value *= scale);
            }
        }
        self.with(&format!("outputs x{scale}"), weights)
            .expect("the same shape")
    }

    /// Moved by a random step of this Euclidean length.
    pub(crate) fn step(&self, length: f64, rng: &mut Xoshiro256PlusPlus) -> Outcome<Network> {
        let mut weights = self.weights.clone();
        let names: Vec<String> = weights.iter().map(|(name, _)| name.to_owned()).collect();
        let count: usize = weights.iter().map(|(_, tensor)| tensor.data().len()).sum();
        // Uniform in (-w, w) has the variance w^2 / 3.
        let width = (length * (3.0 / count as f64).sqrt()) as f32;
        for name in &names {
            let data = weights.get_mut(name).expect("a listed tensor").data_mut();
            data.iter_mut()
                .for_each(|value| *value += rng.random_range(-width..width));
        }
        self.with(&format!("a step of {length}"), weights)
    }

    /// With one bit of one weight flipped, the bit drawn from a range.
    pub(crate) fn flipped(&self, bits: RangeInclusive<u32>, rng: &mut Xoshiro256PlusPlus) -> Outcome<Network> {
        let mut weights = self.weights.clone();
        let sizes: Vec<(String, usize)> = weights
            .iter()
            .filter(|(name, _)| name.ends_with(".weight"))
            .map(|(name, tensor)| (name.to_owned(), tensor.data().len()))
            .collect();
        let mut place = rng.random_range(0..sizes.iter().map(|(_, len)| len).sum());
        for (name, len) in sizes {
            if place < len {
                let value = &mut weights.get_mut(&name).expect("a listed tensor").data_mut()[place];
                *value = f32::from_bits(value.to_bits() ^ (1 << rng.random_range(bits)));
                break;
            }
            place -= len;
        }
        self.with("a flipped bit", weights)
    }
}

/// The networks of a run in the order of their iterations.
pub(crate) fn trained(folder: &Path) -> Outcome<Vec<Network>> {
    let (mut networks, mut variants) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let bytes = std::fs::read(entry?.path())?;
        let metadata = read_metadata(&bytes)?;
        if metadata.precision != Precision::Fp32 {
            let named = identity(&metadata, ModelId([0; 32])).ok_or("a file that names no network")?;
            variants.push(ModelBytes::variant(named.0, named.1, bytes));
            continue;
        }
        let weights = read_weights(&bytes)?;
        let game = AnyGame::parse(&metadata.game)?;
        let rows = |name: &str| weights.get(name).map_or(0, |tensor| tensor.shape()[0]);
        let config = Config {
            blocks: metadata.blocks,
            channels: metadata.channels,
            value_channels: rows("value.conv.weight"),
            value_hidden: rows("value.hidden.weight"),
        };
        let shape = Shape::new(game.spec(), &config)?;
        let name = format!("{} trained {} steps", metadata.game, metadata.step);
        let id = ModelId(tengen_network::model_id(&bytes));
        networks.push((metadata.step, id, Network::of(name, game, shape, weights)?));
    }
    for (_, id, network) in &mut networks {
        let of_network = variants.iter().filter(|variant| variant.id() == *id);
        network.variants = of_network.cloned().collect();
    }
    networks.sort_by_key(|(step, ..)| *step);
    Ok(networks.into_iter().map(|(.., network)| network).collect())
}
