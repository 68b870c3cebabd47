//! Which games and networks may be forgotten: the section `[retention]` and the rule for networks.
//!
//! Whatever it says, nothing goes that the window, a gate in progress, a lease in progress or the record of a promotion
//! needs; that is seen to where the rule is carried out (`run::retain`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tengen_records::ModelId;

use crate::store::retention::HeldModel;

/// Section `[retention]` of the process's configuration. The default keeps everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// Newest self-play games that are kept beside those of the window; older ones, and match games of rejected
    /// candidates that are older than they, are deleted. 0 keeps every game.
    pub keep_games: u64,
    /// Newest generations whose networks are kept, and the networks that were published since; 0 keeps every network.
    pub keep_generations: u32,
    /// Of the older generations those are kept whose number is a multiple of this (generation 0 always is); 0 keeps none.
    pub keep_every: u32,
}

impl RetentionConfig {
    /// What is wrong with it, in a sentence each.
    pub(crate) fn faults(&self) -> Vec<String> {
        if self.keep_every > 0 && self.keep_generations == 0 {
            return vec![format!(
                "retention.keep_every = {}: it thins out what retention.keep_generations leaves, which is 0 and keeps every \
                 network; set both, or neither",
                self.keep_every
            )];
        }
        Vec::new()
    }

    /// Whether the network of this generation is kept for its own sake.
    fn keeps(&self, generation: u32, newest: u32) -> bool {
        generation == 0
            || generation.saturating_add(self.keep_generations) > newest
            || (self.keep_every > 0 && generation.is_multiple_of(self.keep_every))
    }

    /// The networks whose files may go. `met` names, for each promoted network, the champion it met in its gate; `at_work`
    /// are the networks of leases and of the open gate.
    pub(crate) fn removable<'a>(
        &self,
        held: &'a [HeldModel],
        met: &BTreeMap<ModelId, ModelId>,
        at_work: &BTreeSet<ModelId>,
    ) -> Vec<&'a HeldModel> {
        if self.keep_generations == 0 {
            return Vec::new();
        }
        let newest = held.iter().filter_map(|model| model.generation).max().unwrap_or(0);
        // Candidates that failed are as old as the generations around them.
        let recent = held
            .iter()
            .filter(|model| {
                model
                    .generation
                    .is_some_and(|generation| generation + self.keep_generations > newest)
            })
            .map(|model| model.number)
            .min()
            .unwrap_or(0);
        let by_rule = |model: &HeldModel| match model.generation {
            Some(generation) => self.keeps(generation, newest),
            None => model.number >= recent,
        };
        let opponents: BTreeSet<ModelId> = held
            .iter()
            .filter(|model| by_rule(model))
            .filter_map(|model| met.get(&model.id).copied())
            .collect();
        held.iter()
            .filter(|model| {
                !model.in_use && !by_rule(model) && !opponents.contains(&model.id) && !at_work.contains(&model.id)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> ModelId {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        ModelId(bytes)
    }

    /// Ten generations, after each of them but the last a candidate that failed.
    fn held() -> Vec<HeldModel> {
        (1..20)
            .map(|number| HeldModel {
                number,
                id: id(number),
                generation: (number % 2 == 1).then_some(number as u32 / 2),
                in_use: number == 19,
                file_name: String::new(),
                variants: Vec::new(),
            })
            .collect()
    }

    fn gone(rule: RetentionConfig, met: &[(i64, i64)], at_work: &[i64]) -> Vec<i64> {
        let met = met.iter().map(|&(model, champion)| (id(model), id(champion))).collect();
        let at_work = at_work.iter().map(|&number| id(number)).collect();
        let held = held();
        let gone = rule.removable(&held, &met, &at_work);
        gone.iter().map(|model| model.number).collect()
    }

    #[test]
    fn the_default_forgets_nothing() {
        assert_eq!(gone(RetentionConfig::default(), &[], &[]), [] as [i64; 0]);
    }

    #[test]
    fn the_newest_generations_every_mth_and_the_first_stay() {
        let rule = RetentionConfig {
            keep_generations: 2,
            keep_every: 4,
            keep_games: 0,
        };
        // Number 2g + 1 is generation g; 0, 4, 8 and 9 stay, and what was published since 8.
        assert_eq!(gone(rule, &[], &[]), [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16]);
    }

    #[test]
    fn what_works_and_the_opponents_of_kept_promotions_stay() {
        let rule = RetentionConfig {
            keep_generations: 1,
            keep_every: 0,
            keep_games: 0,
        };
        let promoted: Vec<(i64, i64)> = (1..10)
            .map(|generation| (2 * generation + 1, 2 * generation - 1))
            .collect();
        // Generation 9 (number 19) met generation 8 (number 17); whom that one met does not matter any more.
        assert_eq!(
            gone(rule, &promoted, &[4, 11]),
            [2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18]
        );
    }

    #[test]
    fn a_key_that_would_do_nothing_is_a_fault() {
        let rule = RetentionConfig {
            keep_every: 5,
            ..RetentionConfig::default()
        };
        let faults = rule.faults();
        assert!(
            faults.len() == 1 && faults[0].contains("retention.keep_every = 5"),
            "{faults:?}"
        );
    }
}
