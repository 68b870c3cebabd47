//! The body of the fuzz target `record_decode_check` (folder `fuzz/`), here so that ordinary tests run its kept inputs.
//!
//! An input is one byte that picks a game, one that picks the kind of lease, and a record's bytes. Leases are fixed, so
//! that an input means the same today and tomorrow.

use rand::{Rng, SeedableRng};
use tengen_games::{AnyGame, Game, GameVisitor};

use super::earlier::version_1;
use super::hammer::thin_out;
use super::invariants::violation;
use super::{expected, random_record};
use crate::expected::Expected;
use crate::record::{Kind, Record};
use crate::{check, decode, encode, peek_id};

/// The games whose records are tried.
const GAMES: [&str; 3] = ["tic-tac-toe", "connect-four", "caro5?size=9"];
/// The kinds of lease, in the order of the second byte.
const KINDS: [Kind; 2] = [Kind::SelfPlay, Kind::Match];

/// What becomes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is no record.
    Unreadable,
    /// The check refuses it.
    Rejected,
    /// It is accepted, and keeps every promise.
    Accepted,
}

/// The games with their leases.
#[derive(Debug)]
pub struct Ring {
    games: Vec<(AnyGame, [Expected; 2])>,
}

impl Ring {
    /// The same every time, for one generator.
    pub fn new<R: Rng + SeedableRng>() -> Ring {
        let games = GAMES.iter().enumerate().map(|(n, name)| {
            let game = AnyGame::parse(name).expect("the registry knows its own names");
            let leases = KINDS.map(|kind| game.visit(Lease(kind, R::seed_from_u64(n as u64))));
            (game, leases)
        });
        Ring { games: games.collect() }
    }

    /// Judges an input.
    ///
    /// # Panics
    /// When an accepted record breaks a promise.
    pub fn judge(&self, input: &[u8]) -> Judged {
        let [game, kind, record @ ..] = input else {
            return Judged::Unreadable;
        };
        let (game, leases) = &self.games[usize::from(*game) % self.games.len()];
        game.visit(Judge(&leases[usize::from(*kind) % leases.len()], record))
    }

    /// Inputs to begin from, each an honest record as it is written today or as earlier builds wrote it, with their names.
    pub fn seeds<R: Rng + SeedableRng>(&self) -> Vec<(String, Vec<u8>)> {
        let mut seeds = Vec::new();
        for (n, (game, leases)) in self.games.iter().enumerate() {
            for (k, lease) in leases.iter().enumerate() {
                let record = game.visit(Play(lease, R::seed_from_u64(k as u64)));
                let name: String = GAMES[n]
                    .chars()
                    .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
                    .collect();
                let name = format!("{name}-{}", KINDS[k].as_str());
                let input = |record: Vec<u8>| [&[n as u8, k as u8], &record[..]].concat();
                seeds.push((format!("{name}-version-1"), input(version_1(&record))));
                seeds.push((name, input(encode(&record))));
            }
        }
        seeds
    }
}

struct Lease<R>(Kind, R);

impl<R: Rng> GameVisitor for Lease<R> {
    type Output = Expected;
    fn visit<G: Game>(mut self, game: G) -> Expected {
        expected(&game, self.0, &mut self.1)
    }
}

struct Play<'a, R>(&'a Expected, R);

impl<R: Rng> GameVisitor for Play<'_, R> {
    type Output = Record;
    fn visit<G: Game>(mut self, game: G) -> Record {
        let mut record = random_record(&game, self.0, 1, &mut self.1);
        thin_out(&mut record, &mut self.1);
        record
    }
}

struct Judge<'a>(&'a Expected, &'a [u8]);

impl GameVisitor for Judge<'_> {
    type Output = Judged;
    fn visit<G: Game>(self, game: G) -> Judged {
        let Judge(lease, bytes) = self;
        let _named = peek_id(bytes);
        let Ok(record) = decode(bytes) else {
            return Judged::Unreadable;
        };
        if check(&game, &record, lease).is_err() {
            return Judged::Rejected;
        }
        let broken = violation(&game, &record, lease);
        assert_eq!(broken, None, "an accepted record breaks a promise");
        Judged::Accepted
    }
}
