//! `caro5-gomocup`: the preset of [`crate::caro5`] in which only stones close an end, as in Gomocup's rule 9.
//!
//! It is the game `caro5?edge=open` under another name; that is its canonical id.

use crate::caro5::{self, Caro5};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;

/// `caro5-gomocup` in the registry.
pub const FAMILY: Family<Caro5> = Family {
    name: "caro5-gomocup",
    summary: "caro5 with open edges, as Gomocup plays it (the game caro5?edge=open)",
    parameters: "size=5..20 (15), opening=swap2|none, history=2..16 even (none), threat_planes=true|false",
    rules: "Caro5 in which only the opponent's stones close the end of a line, as in Gomocup's rule 9: the game \
            `caro5?edge=open` under another name.",
    samples: &["caro5-gomocup?size=6"],
    build,
};

fn build(params: Params) -> Result<Caro5, ParseGameError> {
    caro5::build(params.preset(caro5::FAMILY.name, &[("edge", "open")])?)
}
