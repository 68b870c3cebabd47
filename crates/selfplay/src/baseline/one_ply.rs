//! One ply ahead: takes a win, blocks a loss, else plays at random.

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, State};

use super::shuffled;

/// What becomes of an action, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It ends the game with a win of the other seat.
    Loses,
    /// The other seat acts next and has an action that wins.
    LetsLose,
    /// Neither.
    Holds,
    /// It ends the game with a win of the acting seat.
    Wins,
}

/// An action that wins; if there is none, one after which the other seat has no action that wins; among equals any with
/// equal probability. `None` after the end.
///
/// Where the same seat acts again, nothing has been let happen yet: a loss is blocked with the last action of a turn.
pub(crate) fn one_ply<S: State>(state: &S, rng: &mut Xoshiro256PlusPlus) -> Option<Action> {
    let actions = shuffled(state, rng);
    if let Some(win) = actions.iter().copied().find(|&action| wins(state, action)) {
        return Some(win);
    }
    let mut best: Option<(Fate, Action)> = None;
    // The order is random, so the first that is good enough is any of them with equal probability.
    for action in actions {
        let fate = fate(state, action);
        if best.is_none_or(|(most, _)| fate > most) {
            best = Some((fate, action));
        }
        if fate >= Fate::Holds {
            break;
        }
    }
    best.map(|(_, action)| action)
}

fn fate<S: State>(state: &S, action: Action) -> Fate {
    let seat = state.seat();
    let mut next = state.clone();
    if next.apply(action).is_err() {
        return Fate::Loses;
    }
    if let Some(outcome) = next.outcome() {
        return match outcome.winner {
            Some(winner) if winner == seat => Fate::Wins,
            Some(_) => Fate::Loses,
            None => Fate::Holds,
        };
    }
    let mut replies = Vec::new();
    if next.seat() != seat {
        next.playable(&mut replies);
    }
    if replies.into_iter().any(|reply| wins(&next, reply)) {
        Fate::LetsLose
    } else {
        Fate::Holds
    }
}

/// Whether `action` ends the game with a win of the seat that plays it.
fn wins<S: State>(state: &S, action: Action) -> bool {
    let mut next = state.clone();
    next.apply(action).is_ok()
        && next
            .outcome()
            .is_some_and(|outcome| outcome.winner == Some(state.seat()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tengen_games::{AnyGame, Game, GameVisitor};

    use super::*;
    use crate::seed::game_rng;

    /// The actions that the player may choose after `plies`, seen in 400 tries.
    fn choices(game: &str, plies: &[&str]) -> BTreeSet<String> {
        struct Visitor<'a>(&'a [&'a str]);
        impl GameVisitor for Visitor<'_> {
            type Output = BTreeSet<String>;
            fn visit<G: Game>(self, game: G) -> Self::Output {
                let mut state = game.start();
                for ply in self.0 {
                    state.apply(game.parse_action(ply).unwrap()).unwrap();
                }
                let text = |seed| game.action_text(one_ply(&state, &mut game_rng(seed)).unwrap());
                (0..400).map(text).collect()
            }
        }
        AnyGame::parse(game).unwrap().visit(Visitor(plies))
    }

    fn only(actions: &[&str]) -> BTreeSet<String> {
        actions.iter().map(|&action| action.to_owned()).collect()
    }

    #[test]
    fn a_win_is_taken_even_where_a_loss_could_be_blocked() {
        // Cells 0 1 2 / 3 4 5 / 6 7 8 by index: X has 0 and 1, O has 3 and 4.
        let cells = choices("tic-tac-toe", &["0", "3", "1", "4"]);
        assert_eq!(cells.len(), 1);
        assert_eq!(
            cells,
            choices("tic-tac-toe", &["1", "4", "0", "3"]),
            "the third of the row"
        );
    }

    #[test]
    fn a_loss_is_blocked() {
        // O must answer 0 and 1 with 2.
        let blocks = choices("tic-tac-toe", &["0", "4", "1"]);
        assert_eq!(blocks.len(), 1);
        let wins = choices("tic-tac-toe", &["0", "3", "1", "4"]);
        assert_eq!(blocks, wins, "it is the cell that would win");
    }

    #[test]
    fn four_in_a_column_are_completed_or_stopped() {
        let column = |plies: &[&str]| choices("connect-four", plies);
        let three = column(&["3", "0", "3", "0", "3", "6"]);
        assert_eq!(three.len(), 1, "{three:?}");
        assert_eq!(
            three,
            column(&["3", "0", "3", "0", "3"]),
            "the other seat stops it in the same column"
        );
    }

    /// Whatever else is on the board, and wherever the fifth stone would go.
    #[test]
    fn fours_are_stopped_and_fives_are_made() {
        let gomoku = |plies: &str| choices("gomoku-freestyle", &plies.split(' ').collect::<Vec<_>>());
        assert_eq!(gomoku("h8 g8 i8 a1 j8 o15 k8"), only(&["l8"]), "closed at one end");
        assert_eq!(gomoku("h8 a15 i8 a1 k8 o15 l8"), only(&["j8"]), "with a gap");
        assert_eq!(gomoku("a1 h8 b2 h10 c3 j9 d4"), only(&["e5"]), "from the corner");
        assert_eq!(
            gomoku("h8 a1 i8 b2 j8 c3 k8 d4 o15"),
            only(&["e5"]),
            "the own five comes first"
        );
    }

    #[test]
    fn without_wins_and_threats_anything_goes() {
        assert_eq!(choices("tic-tac-toe", &[]).len(), 9);
        // With two threats at once every action lets the other win, and one is played all the same.
        assert!(choices("tic-tac-toe", &["0", "1", "4", "2", "3"]).len() > 1);
        assert_ne!(choices("tic-tac-toe", &[]), only(&[]));
    }
}
