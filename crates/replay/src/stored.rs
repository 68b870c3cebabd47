//! One game as the learner keeps it: what sampling needs and no more.
//!
//! Six bytes for an action with its target probability, two for an action played, twelve for a position; everything
//! else (planes, seats, legal actions) follows from the rules when a position is drawn.

use tengen_games::{Action, Outcome};
use tengen_records::{Record, RecordId, exchange};

/// One position of a stored game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Number of actions before it, opening included.
    pub ply: u32,
    /// Weight in training, above 0.
    pub weight: f32,
    /// End of its entries in the game's targets; they begin where the previous position's end.
    target_end: u32,
}

/// The actions, positions and policy targets of one game.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredGame {
    id: RecordId,
    outcome: Outcome,
    actions: Box<[Action]>,
    positions: Box<[Position]>,
    target_actions: Box<[Action]>,
    target_probabilities: Box<[f32]>,
}

impl StoredGame {
    /// What sampling needs of `record`: of a game of people the moves they played, with probability 1.
    pub fn new(record: &Record) -> StoredGame {
        let mut positions = Vec::with_capacity(record.positions() as usize);
        let (mut target_actions, mut target_probabilities) = (Vec::new(), Vec::new());
        for (n, ply) in record.plies.iter().enumerate() {
            let Some(target) = exchange::positions::target(record, ply) else {
                continue;
            };
            for &(action, probability) in target.policy.iter() {
                target_actions.push(action);
                target_probabilities.push(probability);
            }
            positions.push(Position {
                ply: (record.opening.len() + n) as u32,
                weight: target.weight,
                target_end: target_actions.len() as u32,
            });
        }
        StoredGame {
            id: record.id,
            outcome: record.outcome,
            actions: record.actions().collect(),
            positions: positions.into(),
            target_actions: target_actions.into(),
            target_probabilities: target_probabilities.into(),
        }
    }

    /// The game's name.
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// How it ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Every action from the start of the game.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Its positions in order.
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// The policy target of the position with this index: distinct actions with their probabilities.
    pub fn target(&self, index: usize) -> impl Iterator<Item = (Action, f32)> + '_ {
        let begin = index
            .checked_sub(1)
            .map_or(0, |previous| self.positions[previous].target_end as usize);
        let range = begin..self.positions[index].target_end as usize;
        self.target_actions[range.clone()]
            .iter()
            .copied()
            .zip(self.target_probabilities[range].iter().copied())
    }

    /// Memory it takes, bytes, without the allocator's own.
    pub fn bytes(&self) -> usize {
        size_of::<StoredGame>()
            + size_of_val(&*self.actions)
            + size_of_val(&*self.positions)
            + size_of_val(&*self.target_actions)
            + size_of_val(&*self.target_probabilities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_games::{records, tic_tac_toe};

    #[test]
    fn a_stored_game_keeps_every_position_with_its_target() {
        for record in records(&tic_tac_toe(), 50, 1) {
            let stored = StoredGame::new(&record);
            assert_eq!(stored.actions(), record.actions().collect::<Vec<_>>());
            assert_eq!(stored.positions().len(), record.positions() as usize);
            let plies = record.plies.iter().enumerate().filter(|(_, ply)| ply.is_position());
            for (index, (n, ply)) in plies.enumerate() {
                let search = ply.search.as_ref().expect("positions were searched");
                assert_eq!(stored.positions()[index].ply as usize, record.opening.len() + n);
                assert_eq!(stored.positions()[index].weight, search.weight);
                assert_eq!(stored.target(index).collect::<Vec<_>>(), search.policy_target);
            }
        }
    }

    #[test]
    fn a_game_of_people_teaches_the_moves_they_played() {
        let read = exchange::Reader::new(None).read(exchange::Format::Datapoints, b"0,14;1;1\n");
        let record = read[0].record.as_ref().unwrap();
        let stored = StoredGame::new(record);
        assert_eq!((stored.positions()[0].ply, stored.positions()[0].weight), (2, 1.0));
        assert_eq!(stored.target(0).collect::<Vec<_>>(), [(record.plies[0].action, 1.0)]);
        // The window counts what self-play found and nothing else.
        assert_eq!((stored.positions().len(), record.positions()), (1, 0));
    }
}
