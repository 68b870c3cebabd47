//! Spoils records by the thousand and looks whether anything gets through.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::{Rng, RngExt, SeedableRng};
use tengen_games::Game;

use super::earlier::version_1;
use super::invariants::violation;
use super::mutation::Mutation;
use super::{expected, random_record, shorten};
use crate::expected::Expected;
use crate::record::{Kind, Record};
use crate::{check, decode, encode, peek_id};

/// Base records of one game; each is spoilt many times.
const BASES: u32 = 24;
/// Actions above which the searches of most base records are thinned out: their bytes would be nothing but lists.
const FULL_ACTIONS_MAX: usize = 64;
/// Faults that are told in full.
const FAULTS_MAX: usize = 20;

/// What became of spoilt records.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By kind of damage: tried, decoded, accepted.
    pub kinds: BTreeMap<Mutation, [u64; 3]>,
    /// Panics, and accepted records that break a promise.
    pub faults: u64,
    /// The first of them, with what is needed to see it again.
    pub told: Vec<String>,
}

impl Tally {
    /// Spoilt records in all: tried, decoded, accepted.
    pub fn totals(&self) -> [u64; 3] {
        self.kinds
            .values()
            .fold([0; 3], |sum, one| std::array::from_fn(|n| sum[n] + one[n]))
    }

    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        for (kind, counts) in other.kinds {
            let sum = self.kinds.entry(kind).or_default();
            *sum = std::array::from_fn(|n| sum[n] + counts[n]);
        }
        self.faults += other.faults;
        self.told.extend(other.told);
        self.told.truncate(FAULTS_MAX);
    }

    fn note(&mut self, kind: Mutation, fate: Fate, place: impl Fn() -> String) {
        let counts = self.kinds.entry(kind).or_default();
        counts[0] += 1;
        counts[1] += u64::from(fate != Fate::Unreadable);
        counts[2] += u64::from(fate == Fate::Accepted);
        if let Fate::Fault(what) = fate {
            self.faults += 1;
            if self.told.len() < FAULTS_MAX {
                self.told.push(format!("{}: {what}", place()));
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Unreadable,
    Rejected,
    Accepted,
    Fault(String),
}

/// What becomes of these bytes.
fn fate<G: Game>(game: &G, bytes: &[u8], expected: &Expected) -> Fate {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let _named = peek_id(bytes);
        let Ok(record) = decode(bytes) else {
            return Fate::Unreadable;
        };
        if check(game, &record, expected).is_err() {
            return Fate::Rejected;
        }
        match violation(game, &record, expected) {
            None => Fate::Accepted,
            Some(broken) => Fate::Fault(format!("accepted although {broken}")),
        }
    }));
    judged.unwrap_or_else(|_| Fate::Fault("panicked".to_owned()))
}

/// Spoils honest records of `game` this many times; the same seed does the same.
///
/// # Panics
/// When an honest record is refused.
pub fn hammer<G: Game, R: Rng + SeedableRng>(game: &G, mutations: u64, seed: u64) -> Tally {
    let mut rng = R::seed_from_u64(seed);
    let leases = leases(game, &mut rng);
    let bases: Vec<(&Expected, Vec<u8>)> = (0..BASES).map(|n| base(game, &leases, n, &mut rng)).collect();
    let mut tally = Tally::default();
    for round in 0..mutations {
        let (expected, honest) = &bases[rng.random_range(0..bases.len())];
        let (_, donor) = &bases[rng.random_range(0..bases.len())];
        let kind = Mutation::ALL[rng.random_range(0..Mutation::ALL.len())];
        let bytes = kind.apply(honest, donor, &mut rng);
        let place = || format!("{} seed {seed} round {round} {kind:?}", game.spec().id);
        tally.note(kind, fate(game, &bytes, expected), place);
    }
    tally
}

/// Cuts `records` honest records of `game` after every byte.
pub fn every_prefix<G: Game, R: Rng + SeedableRng>(game: &G, records: u32, seed: u64) -> Tally {
    let mut rng = R::seed_from_u64(seed);
    let leases = leases(game, &mut rng);
    let mut tally = Tally::default();
    for n in 0..records {
        let (expected, honest) = base(game, &leases, n, &mut rng);
        for len in 0..honest.len() {
            let place = || format!("{} seed {seed} record {n} cut to {len}", game.spec().id);
            tally.note(Mutation::Truncation, fate(game, &honest[..len], expected), place);
        }
    }
    tally
}

/// Sends honest random games through encoding, decoding and the check; returns what was wrong with those refused.
pub fn honest_refused<G: Game, R: Rng + SeedableRng>(game: &G, games: u64, seed: u64) -> Vec<String> {
    let mut rng = R::seed_from_u64(seed);
    let mut refused = Vec::new();
    let leases = leases(game, &mut rng);
    for n in 0..games {
        let lease = &leases[(n % 2) as usize];
        let record = random_record(game, lease, (n / 2 % 8) as u32, &mut rng);
        let judged = decode(&encode(&record)).and_then(|decoded| {
            let checked = check(game, &decoded, lease)?;
            Ok((decoded == record, checked.positions == record.positions()))
        });
        if judged != Ok((true, true)) {
            refused.push(format!("{} seed {seed} game {n}: {judged:?}", game.spec().id));
        }
    }
    refused
}

/// A lease of each kind.
fn leases<G: Game, R: Rng>(game: &G, rng: &mut R) -> [Expected; 2] {
    [Kind::SelfPlay, Kind::Match].map(|kind| expected(game, kind, rng))
}

/// An honest record with its lease; one in four as earlier builds wrote it.
fn base<'a, G: Game, R: Rng>(game: &G, leases: &'a [Expected; 2], n: u32, rng: &mut R) -> (&'a Expected, Vec<u8>) {
    let lease = &leases[usize::from(n.is_multiple_of(3))];
    let mut record = random_record(game, lease, n % 8, rng);
    if game.spec().actions.len() > FULL_ACTIONS_MAX && !n.is_multiple_of(8) {
        thin_out(&mut record, rng);
    }
    check(game, &record, lease).expect("the base record is honest");
    let bytes = if n % 4 == 1 {
        version_1(&record)
    } else {
        encode(&record)
    };
    (lease, bytes)
}

/// Leaves few searches, with short lists.
pub(super) fn thin_out<R: Rng>(record: &mut Record, rng: &mut R) {
    for ply in &mut record.plies {
        if !rng.random_bool(0.15) {
            ply.search = None;
        }
        if let Some(search) = &mut ply.search {
            shorten(search, 6);
        }
    }
}
