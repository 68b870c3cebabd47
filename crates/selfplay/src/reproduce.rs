//! A stored game's searches again: from its seed, its order and its networks, compared ply by ply with what it states.
//!
//! The game is played as it was; at every ply the search that chose it is run again, with the same noise and the same
//! tree. On one build of ONNX Runtime, one instruction set, one provider and one size of batch all of it is the same to the
//! bit. Elsewhere the network's numbers differ in their last digits, and such a difference can tip one visit and with it
//! what follows: so the comparison tells the network's view apart from what the search made of it.

use std::sync::Arc;

use tengen_games::{Action, Game};
use tengen_records::{ModelId, PlyRecord, Precision, Record, SearchBlock};

use crate::audit::Tolerances;
use crate::driver::{Driver, DriverOptions, PlayError};
use crate::evaluator::Evaluator;
use crate::order::{GameOrder, Lease};

/// A game cannot be searched again.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The order does not lead to this game.
    #[error("game {id} is not one that its work order leads to: {why}")]
    NotOfOrder {
        /// The game.
        id: tengen_records::RecordId,
        /// What differs.
        why: &'static str,
    },
    /// Play cannot go on.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// How one ply came out.
#[derive(Clone, Debug, PartialEq)]
pub struct PlyComparison {
    /// Index among the record's plies.
    pub ply: usize,
    /// What was played.
    pub played: Action,
    /// What is chosen now.
    pub chosen: Action,
    /// The two searches; `None` where neither searched.
    pub search: Option<SearchComparison>,
    /// Whether one states a search and the other does not.
    pub one_sided: bool,
}

/// How the search of one ply came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchComparison {
    /// Whether the two are the same to the bit.
    pub identical: bool,
    /// Whether both say that the root was evaluated under the same symmetry.
    pub same_symmetry: bool,
    /// The smallest difference of the network that is not honest in the precision that is stated.
    pub tolerance: f32,
    /// Greatest difference of win, draw, loss or a listed prior of the network alone.
    pub network: f32,
    /// Share of the visits that went elsewhere, in `[0, 1]`.
    pub visits: f32,
    /// Greatest difference of win, draw or loss after the search.
    pub value: f32,
}

/// What the comparison of a whole game says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agreement {
    /// Every search is the same to the bit.
    Identical,
    /// Every visit and every choice is the same, and no number differs by as much as its tolerance.
    Within {
        /// The greatest difference of a number.
        greatest: f32,
    },
    /// The networks agree up to there within the tolerance, and the search went another way: a difference of the last
    /// digits that tipped a visit, or another search.
    OtherVisits {
        /// The first such ply.
        ply: usize,
    },
    /// A root was evaluated under another symmetry than the order and the position prescribe, as far as the record says.
    OtherSymmetry {
        /// The first such ply.
        ply: usize,
    },
    /// The network saw something else.
    OtherNetwork {
        /// The first such ply.
        ply: usize,
        /// The greatest difference there.
        difference: f32,
    },
    /// Another action is chosen although nothing was searched, or one of both was not searched.
    OtherChoice {
        /// The first such ply.
        ply: usize,
    },
}

/// The tolerance of a record's comparison: no honest network in its precisions differs by as much on a CPU (docs/audit.md).
pub fn tolerance(record: &Record) -> f32 {
    let searches = record.plies.iter().filter_map(|ply| ply.search.as_ref());
    let tolerances = searches.map(|search| Tolerances::default().of(search.precision));
    tolerances.fold(Tolerances::default().fp32, f32::max)
}

/// A record that names one network in several precisions: no lease is played like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the searches of network {0} are in more than one precision")]
pub struct MixedPrecisions(pub ModelId);

/// The precision that a record's searches with `network` were made in; fp32 where there is none.
pub fn precision_of(record: &Record, network: ModelId) -> Result<Precision, MixedPrecisions> {
    let of_network = record
        .plies
        .iter()
        .filter(|ply| record.network(ply.model) == Some(network));
    let mut stated = of_network.filter_map(|ply| Some(ply.search.as_ref()?.precision));
    let Some(first) = stated.next() else {
        return Ok(Precision::Fp32);
    };
    match stated.all(|precision| precision == first) {
        true => Ok(first),
        false => Err(MixedPrecisions(network)),
    }
}

/// Plays the game of `record` again, which was played under `lease`, and compares every ply.
///
/// # Errors
/// When the lease's order does not lead to this game, or an evaluation fails.
pub fn reproduce<G: Game, E: Evaluator>(
    game: G,
    record: &Record,
    lease: &Arc<Lease>,
    evaluator: E,
) -> Result<Vec<PlyComparison>, ReproduceError> {
    let not_of_order = |why| ReproduceError::NotOfOrder { id: record.id, why };
    if lease.id() != record.id.lease {
        return Err(not_of_order("it belongs to another lease"));
    }
    let options = DriverOptions {
        games: 1,
        batch_max: 1,
        // The time a record was made at is not compared.
        clock: || 0,
        ..DriverOptions::default()
    };
    let mut driver = Driver::new(game, evaluator, options);
    let order = GameOrder {
        lease: Arc::clone(lease),
        index: record.id.index,
    };
    let script = record.plies.iter().map(|ply| ply.action).collect();
    driver.start_following(order, script).map_err(PlayError::from)?;
    let mut finished = Vec::new();
    while !driver.is_idle() {
        driver.tick(&mut finished).map_err(PlayError::from)?;
    }
    let Some(again) = finished.pop() else {
        return Err(not_of_order("it does not end"));
    };
    if again.opening != record.opening {
        return Err(not_of_order("its seed gives another opening"));
    }
    if again.plies.len() != record.plies.len() {
        return Err(not_of_order("its plies are not a whole game"));
    }
    let pairs = record.plies.iter().zip(&again.plies).enumerate();
    Ok(pairs.map(|(n, (stated, found))| compare(n, stated, found)).collect())
}

fn compare(ply: usize, stated: &PlyRecord, found: &PlyRecord) -> PlyComparison {
    let search = match (&stated.search, &found.search) {
        (Some(stated), Some(found)) => Some(compare_searches(stated, found)),
        _ => None,
    };
    PlyComparison {
        ply,
        played: stated.action,
        chosen: found.action,
        search,
        one_sided: stated.search.is_some() != found.search.is_some(),
    }
}

fn compare_searches(stated: &SearchBlock, found: &SearchBlock) -> SearchComparison {
    SearchComparison {
        identical: stated == found,
        same_symmetry: stated.symmetry == found.symmetry,
        tolerance: Tolerances::default().of(stated.precision),
        network: greatest(stated.net_wdl, found.net_wdl).max(priors(stated, found)),
        visits: visits(&stated.visits, &found.visits),
        value: greatest(stated.root_wdl, found.root_wdl),
    }
}

fn greatest(one: [f32; 3], other: [f32; 3]) -> f32 {
    let differences = one.iter().zip(other).map(|(one, other)| (one - other).abs());
    differences.fold(0.0, f32::max)
}

/// Greatest difference of a prior that both list. Which ones are listed may differ among equals.
fn priors(one: &SearchBlock, other: &SearchBlock) -> f32 {
    let both = one.net_policy_top.iter().filter_map(|&(action, prior)| {
        let same = other.net_policy_top.iter().find(|(listed, _)| *listed == action)?;
        Some((prior - same.1).abs())
    });
    both.fold(0.0, f32::max)
}

/// Half the sum of the differences of the shares.
fn visits(one: &[(Action, u32)], other: &[(Action, u32)]) -> f32 {
    let total = |visits: &[(Action, u32)]| {
        visits
            .iter()
            .map(|&(_, visits)| f64::from(visits))
            .sum::<f64>()
            .max(1.0)
    };
    let (one_total, other_total) = (total(one), total(other));
    let share = |visits: &[(Action, u32)], total: f64, action: Action| {
        let found = visits.iter().find(|(visited, _)| *visited == action);
        found.map_or(0.0, |&(_, visits)| f64::from(visits) / total)
    };
    let mut actions: Vec<Action> = one.iter().chain(other).map(|&(action, _)| action).collect();
    actions.sort_unstable();
    actions.dedup();
    let difference: f64 = actions
        .into_iter()
        .map(|action| (share(one, one_total, action) - share(other, other_total, action)).abs())
        .sum();
    (difference / 2.0) as f32
}

/// What the comparisons of a game say together.
pub fn agreement(plies: &[PlyComparison]) -> Agreement {
    let is_other = |ply: &&PlyComparison| ply.search.is_some_and(|search| !search.same_symmetry);
    // First of all: leaves below the roots were then seen otherwise, too, and whatever else differs follows from that.
    if let Some(ply) = plies.iter().find(is_other) {
        return Agreement::OtherSymmetry { ply: ply.ply };
    }
    let mut greatest = 0.0f32;
    let mut identical = true;
    for ply in plies {
        let n = ply.ply;
        let Some(search) = ply.search else {
            if ply.one_sided || ply.chosen != ply.played {
                return Agreement::OtherChoice { ply: n };
            }
            continue;
        };
        if search.network >= search.tolerance {
            return Agreement::OtherNetwork {
                ply: n,
                difference: search.network,
            };
        }
        if search.visits > 0.0 || ply.chosen != ply.played {
            return Agreement::OtherVisits { ply: n };
        }
        identical &= search.identical;
        greatest = greatest.max(search.network).max(search.value);
    }
    if identical {
        Agreement::Identical
    } else {
        Agreement::Within { greatest }
    }
}
