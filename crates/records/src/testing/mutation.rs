//! Ways to spoil the bytes of a record: as bytes, as protobuf fields, and as values of the wire types.

use prost::Message;
use rand::{Rng, RngExt};
use tengen_proto::v1;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mutation {
    /// One to four bits are flipped.
    BitFlips,
    /// Bytes are put in, taken out, or overwritten.
    Bytes,
    /// The end is missing.
    Truncation,
    /// A varint of ten bytes, the longest there is, stands somewhere.
    HugeVarint,
    /// A whole field, at any depth, is left out, doubled, or moved; or one of another record is put in.
    Fields,
    /// A number is not finite, negative, or breaks a sum.
    Floats,
    /// An integer is at or beyond a border.
    Integers,
    /// A list is far too long, empty, or out of order.
    Counts,
}

impl Mutation {
    /// Every kind.
    pub const ALL: [Mutation; 8] = [
        Mutation::BitFlips,
        Mutation::Bytes,
        Mutation::Truncation,
        Mutation::HugeVarint,
        Mutation::Fields,
        Mutation::Floats,
        Mutation::Integers,
        Mutation::Counts,
    ];

    /// Spoils an encoded record; `donor` is another one.
    pub fn apply<R: Rng>(self, honest: &[u8], donor: &[u8], rng: &mut R) -> Vec<u8> {
        let mut bytes = honest.to_vec();
        match self {
            Mutation::BitFlips => {
                for _ in 0..rng.random_range(1..=4) {
                    let place = rng.random_range(0..bytes.len());
                    bytes[place] ^= 1 << rng.random_range(0..8);
                }
            }
            Mutation::Bytes => {
                let place = rng.random_range(0..bytes.len());
                let end = (place + rng.random_range(0..4)).min(bytes.len());
                let new: Vec<u8> = (0..rng.random_range(0..6)).map(|_| rng.random()).collect();
                bytes.splice(place..end, new);
            }
            Mutation::Truncation => bytes.truncate(rng.random_range(0..bytes.len())),
            Mutation::HugeVarint => {
                let place = rng.random_range(0..bytes.len());
                let end = (place + rng.random_range(0..3)).min(bytes.len());
                let last = [0x00, 0x01, 0x7f][rng.random_range(0..3)];
                bytes.splice(place..end, std::iter::repeat_n(0xff, 9).chain([last]));
            }
            Mutation::Fields => fields(&mut bytes, donor, rng),
            Mutation::Floats => return edited(honest, |wire| float(wire, rng)),
            Mutation::Integers => return edited(honest, |wire| integer(wire, rng)),
            Mutation::Counts => return edited(honest, |wire| count(wire, rng)),
        }
        bytes
    }
}

fn edited(honest: &[u8], edit: impl FnOnce(&mut v1::GameRecord)) -> Vec<u8> {
    let mut wire = v1::GameRecord::decode(honest).expect("an honest record decodes");
    edit(&mut wire);
    wire.encode_to_vec()
}

/// The fields of the message that lies in `range`, keys included, and where the value of each begins.
fn fields_of(bytes: &[u8], range: std::ops::Range<usize>) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    let mut at = range.start;
    let varint = |at: &mut usize| {
        let mut rest = bytes.get(*at..range.end)?;
        let before = rest.len();
        let value = prost::decode_length_delimiter(&mut rest).ok()?;
        *at += before - rest.len();
        Some(value)
    };
    while at < range.end {
        let start = at;
        let Some(key) = varint(&mut at) else { return found };
        let value = at;
        let end = match key & 7 {
            0 => varint(&mut at).map(|_| at),
            1 => Some(at + 8),
            2 => varint(&mut at).map(|len| at + len),
            5 => Some(at + 4),
            _ => None,
        };
        let Some(end) = end.filter(|&end| end <= range.end) else {
            return found;
        };
        // What begins the inside of a message comes after its length.
        found.push((start, if key & 7 == 2 { at } else { value }, end));
        at = end;
    }
    found
}

/// Some field at some depth, as the range of its bytes.
fn some_field<R: Rng>(bytes: &[u8], rng: &mut R) -> std::ops::Range<usize> {
    let mut inside = 0..bytes.len();
    let mut field = inside.clone();
    loop {
        let fields = fields_of(bytes, inside);
        if fields.is_empty() {
            return field;
        }
        let (start, value, end) = fields[rng.random_range(0..fields.len())];
        field = start..end;
        inside = value..end;
        if rng.random_bool(0.3) {
            return field;
        }
    }
}

/// Lengths of the messages around a changed field are left as they are: also that must be survived.
fn fields<R: Rng>(bytes: &mut Vec<u8>, donor: &[u8], rng: &mut R) {
    let field = some_field(bytes, rng);
    let text = bytes[field.clone()].to_vec();
    match rng.random_range(0..5) {
        0 => drop(bytes.drain(field)),
        1 => drop(bytes.splice(field.end..field.end, text)),
        2 => {
            let other = some_field(bytes, rng).start;
            bytes.splice(other..other, text);
        }
        3 => {
            let gift = donor[some_field(donor, rng)].to_vec();
            bytes.splice(field, gift);
        }
        _ => {
            let top = fields_of(donor, 0..donor.len());
            let (start, _, end) = top[rng.random_range(0..top.len())];
            bytes.extend_from_slice(&donor[start..end]);
        }
    }
}

fn float<R: Rng>(wire: &mut v1::GameRecord, rng: &mut R) {
    let Some(search) = some_search(wire, rng) else { return };
    let mut places: Vec<&mut f32> = Vec::new();
    let lists = rng.random_bool(0.7);
    if lists {
        places.extend(&mut search.policy_target_probabilities);
        places.extend(&mut search.net_policy_top_probabilities);
        let entries = search.policy_target.iter_mut().chain(&mut search.net_policy_top);
        places.extend(entries.map(|entry| &mut entry.probability));
        places.extend(search.root_wdl.iter_mut().chain(&mut search.net_wdl));
    } else {
        places.extend([&mut search.weight, &mut search.prior_kl, &mut search.temperature]);
    }
    if places.is_empty() {
        return;
    }
    let place = rng.random_range(0..places.len());
    let old = *places[place];
    let values = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -0.0,
        -1e-9,
        -0.5,
        1.0005,
        1.5,
        17.0,
        -old,
        old * 0.5,
        old * 1.0005,
        old + 0.0005,
        old + 0.002,
        f32::from_bits(rng.random()),
    ];
    *places[place] = values[rng.random_range(0..values.len())];
}

fn some_search<'a, R: Rng>(wire: &'a mut v1::GameRecord, rng: &mut R) -> Option<&'a mut v1::SearchBlock> {
    let mut searches: Vec<_> = wire.plies.iter_mut().filter_map(|ply| ply.search.as_mut()).collect();
    if searches.is_empty() {
        return None;
    }
    let index = rng.random_range(0..searches.len());
    Some(searches.swap_remove(index))
}

fn integer<R: Rng>(wire: &mut v1::GameRecord, rng: &mut R) {
    let borders = [0, 1, 2, 3, 8, 255, 256, 65_535, 65_536, 1 << 31, u32::MAX];
    let border = borders[rng.random_range(0..borders.len())];
    let step = rng.random_range(0..3);
    let change = move |value: &mut u32| {
        *value = match step {
            0 => border,
            1 => value.wrapping_add(1),
            _ => value.wrapping_sub(1),
        }
    };
    match rng.random_range(0..4) {
        0 => heading_integer(wire, change, rng),
        1 => {
            let count = wire.plies.len().max(1);
            if let Some(ply) = wire.plies.get_mut(rng.random_range(0..count)) {
                let places = [&mut ply.seat, &mut ply.action, &mut ply.model];
                change(places[rng.random_range(0..3)]);
            }
        }
        _ => {
            let Some(search) = some_search(wire, rng) else { return };
            let mut places = vec![
                &mut search.visits_total,
                &mut search.visits_reused,
                &mut search.symmetry,
            ];
            if rng.random_bool(0.7) {
                places.extend(&mut search.policy_target_actions);
                places.extend(&mut search.visit_actions);
                places.extend(&mut search.visit_counts);
                places.extend(&mut search.net_policy_top_actions);
                places.extend(search.policy_target.iter_mut().map(|entry| &mut entry.action));
                places.extend(search.net_policy_top.iter_mut().map(|entry| &mut entry.action));
                let visits = search.visits.iter_mut();
                places.extend(visits.flat_map(|entry| [&mut entry.action, &mut entry.visits]));
            }
            let place = rng.random_range(0..places.len());
            change(places[place]);
        }
    }
}

fn heading_integer<R: Rng>(wire: &mut v1::GameRecord, change: impl Fn(&mut u32), rng: &mut R) {
    let place = rng.random_range(0..12);
    match place {
        0 => change(&mut wire.schema_version),
        1 => change(&mut wire.game_index),
        2 => change(&mut wire.settings_revision),
        3 => change(&mut wire.duration_ms),
        4 => change(&mut wire.match_pair),
        5 => wire.seat_models.iter_mut().take(2).for_each(change),
        6 => wire.opening.iter_mut().take(1).for_each(change),
        7 => wire.kind = rng.random_range(-1..5),
        8 => wire.created_unix_ms = [i64::MIN, -1, 0, i64::MAX][rng.random_range(0..4)],
        9 => wire.seed = rng.random(),
        10 => {
            if let Some(result) = &mut wire.result {
                result.winner = [None, Some(0), Some(1), Some(2), Some(u32::MAX)][rng.random_range(0..5)];
            }
        }
        _ => {
            let seat = [None, Some(0), Some(1), Some(2)][rng.random_range(0..4)];
            let roles = wire.roles.get_or_insert_default();
            match rng.random_range(0..3) {
                0 => roles.opener = seat,
                1 => roles.chooser = seat,
                _ => roles.first_colour = seat,
            }
        }
    }
}

fn count<R: Rng>(wire: &mut v1::GameRecord, rng: &mut R) {
    let plies = wire.plies.len();
    let (one, other) = (rng.random_range(0..plies.max(1)), rng.random_range(0..plies.max(1)));
    match rng.random_range(0..15) {
        0 => drop(wire.plies.drain(one..)),
        1 if plies > 0 => drop(wire.plies.remove(one)),
        2 if plies > 0 => wire.plies.insert(other, wire.plies[one].clone()),
        3 if plies > 0 => wire.plies.swap(one, other),
        4 => wire.plies.resize(rng.random_range(1..20_000), v1::Ply::default()),
        5 => wire.opening = vec![0; rng.random_range(0..20_000)],
        6 => wire.model_ids = vec![vec![7; 32]; rng.random_range(0..300)],
        7 => wire.lease_id.resize(rng.random_range(0..40), 1),
        8 => wire.run_id = "x".repeat(rng.random_range(0..300)),
        9 => wire.rules_fingerprint.truncate(rng.random_range(0..32)),
        10 => wire.result = None,
        11 => {
            let player = |kind| v1::Player {
                kind,
                model: rng.random_range(0..3),
                simulations: rng.random_range(0..5),
                name: "x".repeat(rng.random_range(0..60)),
            };
            wire.players = (0..4).map(player).collect();
            wire.players.truncate(rng.random_range(0..5));
        }
        _ => {
            let Some(search) = some_search(wire, rng) else { return };
            list(search, rng);
        }
    }
}

/// Changes a list, both columns alike; now and then one alone. A record of schema version 1 gets columns that it must not
/// have.
fn list<R: Rng>(search: &mut v1::SearchBlock, rng: &mut R) {
    let actions = &mut search.policy_target_actions;
    let probabilities = &mut search.policy_target_probabilities;
    match rng.random_range(0..10) {
        0 => {
            actions.clear();
            probabilities.clear();
        }
        1 => {
            actions.reverse();
            probabilities.reverse();
        }
        2 => {
            search.net_policy_top_actions.clear();
            search.net_policy_top_probabilities.clear();
        }
        3 => {
            let more = actions.iter().zip(&*probabilities).take(9);
            for (&action, &probability) in more {
                search.net_policy_top_actions.push(action);
                search.net_policy_top_probabilities.push(probability);
            }
        }
        4 => {
            search.visit_actions.clear();
            search.visit_counts.clear();
        }
        5 => search.root_wdl.resize(rng.random_range(0..6), 0.25),
        6 => {
            let len = rng.random_range(0..70_000_u32);
            search.visit_actions = (0..len).collect();
            search.visit_counts = vec![1; len as usize];
        }
        7 => probabilities.push(0.0),
        8 => search.visit_actions.extend([0, 1]),
        _ => {
            // Mass on an action that is most likely illegal, the sum kept.
            let action = rng.random_range(0..300);
            let place = actions.partition_point(|&listed| listed < action);
            probabilities.iter_mut().for_each(|probability| *probability *= 0.5);
            actions.insert(place, action);
            probabilities.insert(place, 0.5);
        }
    }
}
