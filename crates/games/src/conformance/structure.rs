//! The laws of a game's spec and of its start.

use super::{Checker, Violation};
use crate::game::{Action, Game, Seat, State};

impl<G: Game> Checker<'_, G> {
    /// Names, sizes, symmetries and the start.
    pub(super) fn check_spec(&self) -> Result<(), Violation> {
        let spec = self.spec;
        let actions = spec.actions.len();
        self.require(
            !spec.planes.is_empty() && actions > 0,
            "a game has planes and actions",
            || spec.id.clone(),
        )?;
        let blocks: usize = spec
            .actions
            .blocks()
            .iter()
            .map(|block| block.len(spec.rows, spec.cols))
            .sum();
        self.require(blocks == actions, "the blocks make up the action space", || {
            format!("{blocks} of {actions}")
        })?;
        for action in (0..actions as u16).map(Action) {
            let text = self.game.action_text(action);
            let parsed = self.game.parse_action(&text);
            self.require(parsed == Some(action), "the text of an action names it", || {
                format!("{text}: {parsed:?}")
            })?;
        }
        self.check_symmetry_group()?;
        let start = self.game.start();
        self.require(start.outcome().is_none(), "the start is not over", || {
            format!("{start:?}")
        })?;
        self.require(start.seat() == Seat::FIRST, "seat 0 acts first", || {
            start.seat().to_string()
        })?;
        self.require(
            (start.turn(), start.stage()) == (0, 0),
            "the start is turn 0, stage 0",
            || format!("{start:?}"),
        )?;
        for symmetry in &spec.symmetries {
            let same = start.transform(symmetry) == start;
            self.require(same, "every symmetry keeps the start", || symmetry.name.to_owned())?;
        }
        Ok(())
    }

    fn check_symmetry_group(&self) -> Result<(), Violation> {
        let symmetries = &self.spec.symmetries;
        let identity = symmetries.first().is_some_and(|first| {
            first
                .cells
                .iter()
                .chain(&first.actions)
                .map(|&image| image as usize)
                .eq((0..first.cells.len()).chain(0..first.actions.len()))
        });
        self.require(identity, "the first symmetry is the identity", || {
            format!("{:?}", symmetries.first())
        })?;
        for symmetry in symmetries {
            let fits = is_permutation(&symmetry.cells, self.spec.cells())
                && is_permutation(&symmetry.actions, self.spec.actions.len());
            self.require(fits, "a symmetry permutes cells and actions", || {
                symmetry.name.to_owned()
            })?;
        }
        for (first, second) in symmetries
            .iter()
            .flat_map(|first| symmetries.iter().map(move |second| (first, second)))
        {
            let cells = composed(&first.cells, &second.cells);
            let actions = composed(&first.actions, &second.actions);
            let known = symmetries
                .iter()
                .any(|symmetry| symmetry.cells == cells && symmetry.actions == actions);
            self.require(known, "two symmetries make a third", || {
                format!("{}, {}", first.name, second.name)
            })?;
        }
        Ok(())
    }
}

fn is_permutation(images: &[u16], len: usize) -> bool {
    let mut hit = vec![false; len];
    images.iter().for_each(|&image| {
        if let Some(hit) = hit.get_mut(image as usize) {
            *hit = true;
        }
    });
    images.len() == len && hit.into_iter().all(|hit| hit)
}

/// The permutation that applies `first`, then `second`.
fn composed(first: &[u16], second: &[u16]) -> Vec<u16> {
    first.iter().map(|&image| second[image as usize]).collect()
}
