//! Networks in int8: how far the answers of one file are apart, and how surely games of another are found.
//!
//! What differs between processors is seen here by what ONNX Runtime makes of the graph: without its fused nodes the same file
//! adds products of floats, and rounds now and then to the other side.

use std::ops::{Range, RangeInclusive};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_inference::{Device, Optimisations, Session, SessionOptions};
use tengen_network::{ActivationRange, ActivationRanges, Metadata, Weights, random_weights, write_onnx_int8};
use tengen_records::{Precision, Record};
use tengen_selfplay::ModelBytes;
use tengen_selfplay::audit::{TOLERANCE_REDUCED, TOLERANCE_REDUCED_OTHER};

use super::{Network, Outcome, TRIES, honest, line, play, restated, worst};

/// What games are caught at, in parts of the tolerance that holds on a CPU; the first is the one for other devices.
const PARTS: [f32; 6] = [TOLERANCE_REDUCED_OTHER / TOLERANCE_REDUCED, 2.0, 1.0, 0.5, 0.25, 0.1];
/// What the activations of a random network do not leave.
const RANDOM_MAX: f32 = 6.0;

/// Prints the tables of the newest network that comes in int8, and of its elders in the order of their steps.
pub(super) fn tables(trained: &[Network], positions: usize) -> Outcome<()> {
    let in_int8 = |network: &Network| {
        let mut reduced = network.reduced();
        reduced.find(|reduced| reduced.model.precision() == Precision::Int8)
    };
    let networks: Vec<Network> = trained.iter().filter_map(in_int8).collect();
    let Some(newest) = networks.last() else {
        println!("\nno network of the folder comes in int8");
        return Ok(());
    };
    println!(
        "\n| honest in int8 | positions | median | 99.9 % | greatest | at or beyond {TOLERANCE_REDUCED:.0e} \
         |\n|-|-|-|-|-|-|"
    );
    honest(newest, positions)?;
    spread(newest, positions)?;

    let caught = PARTS.map(|part| format!("caught at {:.1e}", part * TOLERANCE_REDUCED));
    println!(
        "\n| wrong in int8 | audited games | {} | median of the worst difference |\n|-|-|-|-|-|-|-|-|-|",
        caught.join(" | ")
    );
    wrong(newest)?;
    for pair in networks.windows(2) {
        let games = play(&pair[1], 100, 64, 64, 5)?;
        let what = format!("{} instead of {}", pair[0].name, pair[1].name);
        row(&what, &[(&pair[1], &pair[0])], &games, 0.0)?;
    }
    Ok(())
}

/// The same file, run otherwise than audits run it.
fn spread(network: &Network, positions: usize) -> Outcome<()> {
    for (intra_threads, batch_max, optimisations) in [
        (1, 1, Optimisations::All),
        (1, 8, Optimisations::All),
        (1, 64, Optimisations::All),
        (2, 64, Optimisations::All),
        (4, 64, Optimisations::All),
        (1, 1, Optimisations::Extended),
        (1, 1, Optimisations::Basic),
        (1, 1, Optimisations::None),
        (1, 64, Optimisations::None),
    ] {
        let options = SessionOptions {
            device: Device::Cpu,
            intra_threads,
            batch_max,
        };
        let mut session = Session::load_with(network.model.bytes(), &options, optimisations)?;
        let mut found = restated(network, &mut session, positions)?;
        let how = format!("{intra_threads} threads, batches up to {batch_max}, optimisations: {optimisations:?}");
        line(network, &how, &mut found);
    }
    Ok(())
}

/// Games of `named` that were really played by other networks in int8, or by broken hardware.
fn wrong(named: &Network) -> Outcome<()> {
    let games = play(named, 50, 50, 64, 4)?;
    let few = &games[..10];
    let (mut rng, name) = (Xoshiro256PlusPlus::seed_from_u64(6), &named.name);
    let whole = named.with("in fp32", named.weights.clone())?;
    row(&format!("{name}: the same in fp32"), &[(named, &whole)], &games, 0.0)?;
    let within = ActivationRanges::within(&named.shape, RANDOM_MAX);
    let random = with(named, random_weights(&named.shape, 77), &within)?;
    row(&format!("{name}: a random network"), &[(named, &random)], &games, 0.0)?;
    let ranges = ranges(named)?;
    for length in [0.2, 0.02, 0.002, 0.0002] {
        let step = |_| with(named, named.step(length, &mut rng)?.weights, &ranges);
        let stepped: Vec<Network> = (0..TRIES).map(step).collect::<Outcome<_>>()?;
        row(
            &format!("{name}: a step of length {length}"),
            &against(named, &stepped),
            few,
            0.0,
        )?;
    }
    for (what, bits) in [("sign", 7..=7), ("upper", 4..=6), ("lower", 0..=3)] {
        let flip = |_| flipped(named, bits.clone(), &mut rng);
        let flipped: Vec<Network> = (0..2 * TRIES).map(flip).collect::<Outcome<_>>()?;
        let what = format!("{name}: a flipped {what} bit of a weight's byte");
        row(&what, &against(named, &flipped), few, 0.0)?;
    }
    for noise in [0.3, 0.1, 0.03, 0.01] {
        row(
            &format!("{name}: logits off by up to {noise}"),
            &[(named, named)],
            &games,
            noise,
        )?;
    }
    Ok(())
}

fn against<'a>(named: &'a Network, others: &'a [Network]) -> Vec<(&'a Network, &'a Network)> {
    others.iter().map(|other| (named, other)).collect()
}

/// What audits find of such games at each of the tolerances, as a row.
fn row(what: &str, pairs: &[(&Network, &Network)], games: &[Record], noise: f32) -> Outcome<()> {
    let worst = worst(pairs, games, noise)?;
    let caught = PARTS.map(|part| format!("{:.1} %", worst.caught(part * TOLERANCE_REDUCED)));
    println!(
        "| {what} | {} | {} | {:.1e} |",
        worst.games(),
        caught.join(" | "),
        worst.median()
    );
    Ok(())
}

/// Other weights in int8 under the name of this network, values between their layers in these ranges.
fn with(named: &Network, weights: Weights, ranges: &ActivationRanges) -> Outcome<Network> {
    let id = named.model.id();
    let metadata = Metadata::of_shape(&named.shape).in_precision(tengen_network::Precision::Int8, id.to_bytes());
    let file = write_onnx_int8(&named.shape, &weights, ranges, &metadata)?;
    Ok(Network {
        weights,
        model: ModelBytes::variant(id, Precision::Int8, file),
        ..named.clone()
    })
}

/// With one bit of one weight of the tower flipped in the file, the bit drawn from a range.
fn flipped(named: &Network, bits: RangeInclusive<u32>, rng: &mut Xoshiro256PlusPlus) -> Outcome<Network> {
    let mut file = named.model.bytes().to_vec();
    let mut places = Vec::new();
    for layer in named.shape.layers().iter().filter(|layer| layer.in_tower()) {
        places.extend(constant(&file, &layer.weight_name())?);
    }
    let place = places[rng.random_range(0..places.len())];
    file[place] ^= 1u8 << rng.random_range(bits);
    Ok(Network {
        model: ModelBytes::variant(named.model.id(), Precision::Int8, file),
        ..named.clone()
    })
}

/// The ranges that the file's bytes between two layers cover.
fn ranges(network: &Network) -> Outcome<ActivationRanges> {
    let file = network.model.bytes();
    let mut ranges = ActivationRanges::new();
    for activation in network.shape.activations() {
        let scale = constant(file, &format!("{activation}.scale"))?;
        let scale = f32::from_le_bytes(file[scale].try_into()?);
        let zero = constant(file, &format!("{activation}.zero"))?;
        let zero = f32::from(file[zero.start]);
        let range = ActivationRange {
            min: -zero * scale,
            max: (255.0 - zero) * scale,
        };
        ranges.include(activation, range);
    }
    Ok(ranges)
}

/// Where the elements of a constant lie in a file.
fn constant(file: &[u8], name: &str) -> Outcome<Range<usize>> {
    let found = after(file, name).filter(|found| found.end <= file.len() && !found.is_empty());
    found.ok_or_else(|| format!("the file has no constant {name}").into())
}

/// The elements follow the name, as field 9 of the format follows field 8, each after its length.
fn after(file: &[u8], name: &str) -> Option<Range<usize>> {
    let head: [&[u8]; 3] = [&[0x42, u8::try_from(name.len()).ok()?], name.as_bytes(), &[0x4A]];
    let head = head.concat();
    let mut at = file.windows(head.len()).position(|bytes| bytes == head)? + head.len();
    let (mut len, mut shift) = (0usize, 0u32);
    loop {
        let byte = *file.get(at)?;
        len |= usize::from(byte & 0x7F).checked_shl(shift)?;
        (at, shift) = (at + 1, shift + 7);
        if byte < 0x80 {
            return Some(at..at + len);
        }
    }
}
