//! How well a network with a little search plays tic-tac-toe, measured against the solved game.

use std::collections::HashMap;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::mnk::Mnk;
use tengen_games::{Action, AnyGame, Game, Seat, State};
use tengen_inference::{Device, Outputs, Session, SessionOptions};
use tengen_search::{Evaluation, RootNoise, Settings, Tree};

type Position = <Mnk as Game>::State;

/// Positions evaluated together.
const BATCH: usize = 512;

/// The solved game.
pub struct TicTacToe {
    game: Mnk,
    /// Every position that can be reached and is not over, by hash.
    open: HashMap<u64, Position>,
    /// Value of every position that can be reached, for the seat that acts.
    values: HashMap<u64, i8>,
}

/// What a player does in every open position.
pub struct Choices(HashMap<u64, Action>);

impl TicTacToe {
    /// Solves the game from the rules.
    pub fn solve() -> TicTacToe {
        let AnyGame::TicTacToe(game) = AnyGame::parse("tic-tac-toe").expect("the game is registered") else {
            panic!("tic-tac-toe is registered as another game");
        };
        let mut solved = TicTacToe {
            open: HashMap::new(),
            values: HashMap::new(),
            game,
        };
        let start = solved.game.start();
        solved.value(&start);
        solved
    }

    /// Number of open positions.
    pub fn positions(&self) -> usize {
        self.open.len()
    }

    /// Hashes of the open positions in which some action is worse than another.
    pub fn non_trivial(&self) -> Vec<u64> {
        let choice_matters = |position: &Position| {
            let values: Vec<i8> = legal(position)
                .into_iter()
                .map(|action| self.after(position, action))
                .collect();
            values.iter().any(|value| *value != values[0])
        };
        self.open
            .iter()
            .filter(|(_, position)| choice_matters(position))
            .map(|(hash, _)| *hash)
            .collect()
    }

    /// Number of non-trivial positions in which the player gives something away.
    pub fn mistakes(&self, choices: &Choices) -> usize {
        let is_mistake = |hash: &u64| self.after(&self.open[hash], choices.0[hash]) < self.values[hash];
        self.non_trivial().iter().filter(|hash| is_mistake(hash)).count()
    }

    /// Number of lines that the player loses, in either seat, against an opponent who tries everything.
    pub fn lost_lines(&self, choices: &Choices) -> usize {
        Seat::BOTH
            .into_iter()
            .map(|seat| lost_lines(&self.game.start(), seat, choices))
            .sum()
    }

    /// What a network does in every open position, with `simulations` and no noise.
    pub fn choices(&self, model: &[u8], simulations: u32) -> Choices {
        let options = SessionOptions {
            device: Device::Cpu,
            intra_threads: 1,
            batch_max: BATCH,
        };
        let mut session = Session::load(model, &options).expect("the model loads");
        let settings = Settings {
            simulations,
            ..Settings::default()
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut trees: Vec<_> = self
            .open
            .values()
            .map(|position| {
                let mut tree = Tree::new(self.game.clone(), position.clone(), settings);
                tree.begin(simulations, RootNoise::None, &mut rng);
                tree
            })
            .collect();
        while search_round(&mut trees, &mut session) {}
        let mut chosen = |tree: &Tree<Mnk>| tree.choose(0.0, &mut rng).expect("an open position has an action");
        Choices(trees.iter().map(|tree| (tree.root().hash(), chosen(tree))).collect())
    }

    fn value(&mut self, position: &Position) -> i8 {
        if let Some(value) = self.values.get(&position.hash()) {
            return *value;
        }
        let value = match position.outcome() {
            Some(outcome) => outcome.value_for(position.seat()) as i8,
            None => {
                self.open.insert(position.hash(), position.clone());
                let mut best = -1;
                for action in legal(position) {
                    best = best.max(-self.value(&played(position, action)));
                }
                best
            }
        };
        self.values.insert(position.hash(), value);
        value
    }

    /// Value of playing `action`, for the seat that plays it.
    fn after(&self, position: &Position, action: Action) -> i8 {
        -self.values[&played(position, action).hash()]
    }
}

fn legal(position: &Position) -> Vec<Action> {
    let mut legal = Vec::new();
    position.legal(&mut legal);
    legal
}

fn played(position: &Position, action: Action) -> Position {
    let mut next = position.clone();
    next.apply(action).expect("the action is legal");
    next
}

fn lost_lines(position: &Position, seat: Seat, choices: &Choices) -> usize {
    if let Some(outcome) = position.outcome() {
        return usize::from(outcome.winner == Some(seat.other()));
    }
    if position.seat() == seat {
        return lost_lines(&played(position, choices.0[&position.hash()]), seat, choices);
    }
    legal(position)
        .into_iter()
        .map(|action| lost_lines(&played(position, action), seat, choices))
        .sum()
}

/// Evaluates one leaf of every tree that is not done; false when all are.
fn search_round(trees: &mut [Tree<Mnk>], session: &mut Session) -> bool {
    let mut leaves = Vec::new();
    let mut owners = Vec::new();
    for (index, tree) in trees.iter_mut().enumerate() {
        if !tree.done() {
            tree.gather(1, &mut leaves);
            owners.resize(leaves.len(), index);
        }
    }
    let mut outputs = Outputs::default();
    let planes_len = session.planes_len();
    let actions = session.actions();
    for (leaves, owners) in leaves.chunks(BATCH).zip(owners.chunks(BATCH)) {
        let mut planes = vec![0; leaves.len() * planes_len];
        for (leaf, planes) in leaves.iter().zip(planes.chunks_exact_mut(planes_len)) {
            leaf.state.planes(planes);
        }
        session
            .run(&planes, leaves.len(), &mut outputs)
            .expect("the model runs");
        let answers = outputs.policy.chunks_exact(actions).zip(outputs.wdl.chunks_exact(3));
        for ((leaf, owner), (policy_logits, wdl)) in leaves.iter().zip(owners).zip(answers) {
            let evaluation = Evaluation {
                policy_logits,
                wdl_logits: [wdl[0], wdl[1], wdl[2]],
            };
            trees[*owner]
                .apply(leaf.id, &evaluation)
                .expect("the evaluation is good");
        }
    }
    trees.iter().any(|tree| !tree.done())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solved_game_has_the_known_size_and_value() {
        let solved = TicTacToe::solve();
        assert_eq!(solved.positions(), 4_520);
        assert_eq!(solved.values.len(), 5_478);
        assert_eq!(solved.non_trivial().len(), 3_191);
        assert_eq!(solved.values[&solved.game.start().hash()], 0);
    }

    #[test]
    fn a_player_of_first_actions_is_seen_to_make_mistakes_and_a_solved_one_none() {
        let solved = TicTacToe::solve();
        let by = |choose: &dyn Fn(&Position) -> Action| {
            Choices(
                solved
                    .open
                    .iter()
                    .map(|(hash, position)| (*hash, choose(position)))
                    .collect(),
            )
        };
        let first = by(&|position| legal(position)[0]);
        assert!(solved.mistakes(&first) > 1_000);
        assert!(solved.lost_lines(&first) > 0);
        let best = by(&|position| {
            let actions = legal(position).into_iter();
            actions.max_by_key(|action| solved.after(position, *action)).unwrap()
        });
        assert_eq!((solved.mistakes(&best), solved.lost_lines(&best)), (0, 0));
    }
}
