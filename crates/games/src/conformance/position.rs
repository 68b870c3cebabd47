//! The laws of one position: planes, hash, symmetries, and the refusal of illegal actions.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Checker, SEEN_MAX, Scratch, Violation};
use crate::game::{Action, Game, State};
use crate::hash::Mixer;
use crate::random;
use crate::spec::Symmetry;

impl<G: Game> Checker<'_, G> {
    /// Planes, hash, symmetries and refusals at one position.
    pub(super) fn check_deeply(&mut self, state: &G::State, rng: &mut Xoshiro256PlusPlus) -> Result<(), Violation> {
        self.summary.deep_checks += 1;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.planes.fill(0xa5);
        state.planes(&mut scratch.planes);
        scratch.image_planes.fill(0x5a);
        state.planes(&mut scratch.image_planes);
        let overwritten = scratch.planes == scratch.image_planes;
        self.require(overwritten, "planes overwrite every byte", String::new)?;
        state.legal(&mut scratch.legal);
        self.check_hash(state, &scratch)?;
        for symmetry in &self.spec.symmetries {
            self.check_symmetry(state, symmetry, &mut scratch)?;
        }
        let actions = self.spec.actions.len();
        for _ in 0..4 {
            self.check_illegal(state, Action(random::below(rng, actions) as u16))?;
        }
        self.check_illegal(state, Action(actions as u16))?;
        self.check_illegal(state, Action(u16::MAX))?;
        let drawn = state.draw();
        let tall = drawn.lines().count() > self.spec.rows;
        self.require(tall, "a drawing shows every row and coordinates", || drawn.clone())?;
        self.scratch = scratch;
        Ok(())
    }

    fn check_hash(&mut self, state: &G::State, scratch: &Scratch) -> Result<(), Violation> {
        let outcome = state
            .outcome()
            .map_or(3, |outcome| outcome.winner.map_or(2, |seat| seat.index() as u64));
        let mut digest = Mixer::new(outcome)
            .with(state.seat().index() as u64)
            .with(u64::from(state.stage()));
        for chunk in scratch.planes.chunks(8) {
            digest = digest.with(chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
        for action in &scratch.legal {
            digest = digest.with(u64::from(action.0));
        }
        let digest = digest.finish();
        let hash = state.hash();
        if self.seen.len() < SEEN_MAX {
            self.seen.entry(hash).or_insert(digest);
        }
        let same = self.seen.get(&hash).is_none_or(|&earlier| earlier == digest);
        self.require(
            same,
            "equal hashes imply equal planes, legal actions, seat and result",
            || format!("{hash:x}"),
        )
    }

    fn check_symmetry(&self, state: &G::State, symmetry: &Symmetry, scratch: &mut Scratch) -> Result<(), Violation> {
        let image = state.transform(symmetry);
        let name = || symmetry.name.to_owned();
        let same = (
            image.seat(),
            image.turn(),
            image.stage(),
            image.outcome(),
            image.roles(),
        ) == (
            state.seat(),
            state.turn(),
            state.stage(),
            state.outcome(),
            state.roles(),
        );
        self.require(same, "seat, turn, result and roles commute with symmetry", name)?;
        image.planes(&mut scratch.image_planes);
        let cells = self.spec.cells();
        let planes_same = scratch
            .planes
            .chunks(cells)
            .zip(scratch.image_planes.chunks(cells))
            .all(|(plane, image)| {
                plane
                    .iter()
                    .zip(&symmetry.cells)
                    .all(|(&byte, &cell)| image[cell as usize] == byte)
            });
        self.require(planes_same, "planes commute with symmetry", name)?;
        image.legal(&mut scratch.image_legal);
        let legal_same = scratch.image_legal.len() == scratch.legal.len()
            && scratch
                .legal
                .iter()
                .all(|action| image.is_legal(Action(symmetry.actions[action.index()])));
        self.require(legal_same, "legal actions commute with symmetry", name)?;
        image.playable(&mut scratch.image_legal);
        state.playable(&mut scratch.playable);
        let playable_same = scratch.image_legal.len() == scratch.playable.len()
            && scratch.playable.iter().all(|action| {
                let moved = Action(symmetry.actions[action.index()]);
                scratch.image_legal.binary_search(&moved).is_ok()
            });
        self.require(playable_same, "playable actions commute with symmetry", name)?;
        if let Some(inverse) = self
            .spec
            .symmetries
            .iter()
            .find(|inverse| is_inverse(symmetry, inverse))
        {
            let back = image.transform(inverse);
            self.require(
                back == *state && back.hash() == state.hash(),
                "a symmetry can be undone",
                name,
            )?;
        }
        Ok(())
    }

    pub(super) fn check_illegal(&self, state: &G::State, action: Action) -> Result<(), Violation> {
        if state.is_legal(action) {
            return Ok(());
        }
        let mut after = state.clone();
        let refused = after.apply(action).is_err_and(|error| error.action == action);
        self.require(refused, "an illegal action is refused", || action.to_string())?;
        let same = after == *state && after.hash() == state.hash();
        self.require(same, "an illegal action changes nothing", || action.to_string())
    }
}

fn is_inverse(symmetry: &Symmetry, inverse: &Symmetry) -> bool {
    symmetry
        .cells
        .iter()
        .enumerate()
        .all(|(cell, &image)| inverse.cells[image as usize] as usize == cell)
        && symmetry
            .actions
            .iter()
            .enumerate()
            .all(|(action, &image)| inverse.actions[image as usize] as usize == action)
}
