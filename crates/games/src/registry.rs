//! Every game by name: one line a game.
//!
//! [`AnyGame::parse`] turns a text into a game, [`AnyGame::visit`] hands it to generic code: the one place where
//! dispatch happens.

use crate::fingerprint::{self, Fingerprint};
use crate::game::Game;
use crate::params::{self, Params, ParseGameError};
use crate::spec::Spec;

/// What the registry knows about a family of games.
#[derive(Debug)]
pub struct Family<G> {
    /// The name before the `?`.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Its parameters with ranges and defaults, for people.
    pub parameters: &'static str,
    /// Its rules in a few sentences, for `docs/games.md`.
    pub rules: &'static str,
    /// Further parameterisations that the conformance suite runs besides the default.
    pub samples: &'static [&'static str],
    /// Builds the game from its parameters.
    pub build: fn(Params) -> Result<G, ParseGameError>,
}

/// A family without its type, for listings.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name before the `?`.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Its parameters with ranges and defaults, for people.
    pub parameters: &'static str,
    /// Its rules in a few sentences, for `docs/games.md`.
    pub rules: &'static str,
    /// Further parameterisations that the conformance suite runs besides the default.
    pub samples: &'static [&'static str],
}

/// Generic code that is run with a game whose type is known only at run time.
pub trait GameVisitor {
    /// What comes back.
    type Output;

    /// Runs with the game.
    fn visit<G: Game>(self, game: G) -> Self::Output;
}

/// Each line `module: Variant(Type)` registers the family `crate::module::FAMILY`.
macro_rules! registry {
    ($($module:ident: $variant:ident($game:ty),)*) => {
        /// A game of any registered family.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "a variant is the module of the same name")]
        pub enum AnyGame {
            $($variant($game),)*
        }

        const ENTRIES: &[Entry] = &[$({
            let family = crate::$module::FAMILY;
            Entry {
                name: family.name,
                summary: family.summary,
                parameters: family.parameters,
                rules: family.rules,
                samples: family.samples,
            }
        },)*];

        impl AnyGame {
            fn build(name: &str, given: params::Given) -> Result<AnyGame, ParseGameError> {
                $(if name == crate::$module::FAMILY.name {
                    let family = crate::$module::FAMILY;
                    return (family.build)(Params::new(family.name, given)?).map(AnyGame::$variant);
                })*
                Err(ParseGameError::UnknownGame { name: name.to_owned(), known: names().join(", ") })
            }

            /// Runs the visitor with this game.
            pub fn visit<V: GameVisitor>(&self, visitor: V) -> V::Output {
                match self {
                    $(AnyGame::$variant(game) => visitor.visit(game.clone()),)*
                }
            }

            /// The game's spec.
            pub fn spec(&self) -> &Spec {
                match self {
                    $(AnyGame::$variant(game) => game.spec(),)*
                }
            }
        }

        #[cfg(test)]
        mod conformance_suite {
            $(#[test]
            fn $module() -> Result<(), crate::conformance::Violation> {
                crate::conformance::check_family(crate::$module::FAMILY, &Default::default()).map(drop)
            })*
        }

        /// The same with every one of the games, however long they are: `make conformance`.
        #[cfg(test)]
        mod conformance_in_full {
            $(#[test]
            #[ignore = "takes minutes for long games: make conformance"]
            fn $module() -> Result<(), crate::conformance::Violation> {
                let options = crate::conformance::Options {
                    plies_max: u64::MAX,
                    ..Default::default()
                };
                for (id, summary) in crate::conformance::check_family(crate::$module::FAMILY, &options)? {
                    println!("{id}: {} games, {} plies, every law held", summary.games, summary.plies);
                }
                Ok(())
            })*
        }
    };
}

registry! {
    tic_tac_toe: TicTacToe(crate::mnk::Mnk),
    connect_four: ConnectFour(crate::connect_four::ConnectFour),
    mnk: Mnk(crate::mnk::Mnk),
    gomoku_freestyle: GomokuFreestyle(crate::stones::StoneGame),
    gomoku_standard: GomokuStandard(crate::stones::StoneGame),
    caro: Caro(crate::stones::StoneGame),
    caro5: Caro5(crate::caro5::Caro5),
    caro5_gomocup: Caro5Gomocup(crate::caro5::Caro5),
    renju: Renju(crate::stones::StoneGame),
    black_hole: BlackHole(crate::black_hole::BlackHole),
    hex: Hex(crate::hex::Hex),
    go: Go(crate::go::Go),
    amazons: Amazons(crate::amazons::Amazons),
    ataxx: Ataxx(crate::ataxx::Ataxx),
    xiangqi: Xiangqi(crate::xiangqi::Xiangqi),
}

impl AnyGame {
    /// The game that `text` names, for example `caro5?size=9`. Its [`Spec::id`] is the canonical form of the text.
    pub fn parse(text: &str) -> Result<AnyGame, ParseGameError> {
        let (name, given) = params::split(text)?;
        AnyGame::build(name, given)
    }

    /// The fingerprint of the rules; takes up to a tenth of a second.
    pub fn rules_fingerprint(&self) -> Fingerprint {
        struct Rules;
        impl GameVisitor for Rules {
            type Output = Fingerprint;
            fn visit<G: Game>(self, game: G) -> Fingerprint {
                fingerprint::rules_fingerprint(&game)
            }
        }
        self.visit(Rules)
    }

    /// The fingerprint of rules and feature planes; takes as long as [`AnyGame::rules_fingerprint`].
    pub fn feature_fingerprint(&self) -> Fingerprint {
        struct Features;
        impl GameVisitor for Features {
            type Output = Fingerprint;
            fn visit<G: Game>(self, game: G) -> Fingerprint {
                fingerprint::feature_fingerprint(&game)
            }
        }
        self.visit(Features)
    }
}

/// The names of all families, in the order of the registry.
pub fn names() -> Vec<&'static str> {
    ENTRIES.iter().map(|entry| entry.name).collect()
}

/// All families, in the order of the registry.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}
