//! The conformance suite has teeth: a game with one fault is caught by the law it breaks.

use tengen_games::conformance::{self, Options};
use tengen_games::mnk::Mnk;
use tengen_games::{Action, Game, IllegalAction, Outcome, Reason, Roles, Seat, Spec, State, Symmetry};

use crate::game;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// None.
    None,
    /// All hashes are equal.
    Hash,
    /// Legal actions are listed from the last.
    Order,
    /// An illegal action is played as if it were nothing.
    Refusal,
    /// An illegal action is refused, but the state changes.
    Change,
    /// Plane 0 forgets a corner.
    Planes,
    /// One byte of the planes is not written.
    Overwrite,
    /// The result is seen only in the upper half of the mirrored board.
    Transform,
    /// A turn never ends.
    Turn,
    /// The last ply is listed after the end.
    End,
}

#[derive(Clone, Debug)]
struct Faulty(Mnk, Fault);

#[derive(Clone, Debug, PartialEq)]
struct FaultyState(<Mnk as Game>::State, Fault, u32);

impl Game for Faulty {
    type State = FaultyState;

    fn spec(&self) -> &Spec {
        self.0.spec()
    }

    fn start(&self) -> FaultyState {
        FaultyState(self.0.start(), self.1, 0)
    }

    fn action_text(&self, action: Action) -> String {
        self.0.action_text(action)
    }
}

impl State for FaultyState {
    fn seat(&self) -> Seat {
        self.0.seat()
    }

    fn stage(&self) -> u8 {
        self.0.stage()
    }

    fn turn(&self) -> u32 {
        if self.1 == Fault::Turn { 0 } else { self.0.turn() }
    }

    fn legal(&self, out: &mut Vec<Action>) {
        self.0.legal(out);
        match self.1 {
            Fault::Order => out.reverse(),
            Fault::End if self.outcome().is_some() => out.push(Action(0)),
            _ => {}
        }
    }

    fn is_legal(&self, action: Action) -> bool {
        self.0.is_legal(action)
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        match (self.0.apply(action), self.1) {
            (Err(_), Fault::Refusal) => Ok(()),
            (Err(error), Fault::Change) => {
                self.2 += 1;
                Err(error)
            }
            (result, _) => result,
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        self.0.outcome()
    }

    fn planes(&self, out: &mut [u8]) {
        let first = out[0];
        self.0.planes(out);
        match self.1 {
            Fault::Planes => out[0] = 0,
            Fault::Overwrite => out[0] = first,
            _ => {}
        }
    }

    fn hash(&self) -> u64 {
        if self.1 == Fault::Hash { 0 } else { self.0.hash() }
    }

    fn transform(&self, symmetry: &Symmetry) -> FaultyState {
        let image = if self.1 == Fault::Transform {
            self.0.clone()
        } else {
            self.0.transform(symmetry)
        };
        FaultyState(image, self.1, self.2)
    }

    fn roles(&self) -> Roles {
        self.0.roles()
    }

    fn draw(&self) -> String {
        self.0.draw()
    }
}

#[track_caller]
fn check(fault: Fault, law: &str) {
    let options = Options {
        games: 200,
        plies_max: u64::MAX,
        deep_checks: 1_000,
        seed: 3,
    };
    let game = Faulty(game!(TicTacToe, "tic-tac-toe"), fault);
    let violation = conformance::check(&game, &options).expect_err("a fault is caught");
    assert_eq!(violation.law, law, "{violation}");
    assert_eq!(violation.game, "tic-tac-toe");
}

#[test]
fn every_fault_is_caught_by_its_law() {
    check(
        Fault::Hash,
        "equal hashes imply equal planes, legal actions, seat and result",
    );
    check(Fault::Order, "legal actions are ascending");
    check(Fault::Refusal, "an illegal action is refused");
    check(Fault::Change, "an illegal action changes nothing");
    check(Fault::Planes, "planes commute with symmetry");
    check(Fault::Overwrite, "planes overwrite every byte");
    check(Fault::Transform, "playing commutes with symmetry");
    check(Fault::Turn, "a ply is the next stage or begins the next turn");
    check(Fault::End, "there are legal actions until the end");
}

#[test]
fn a_faultless_game_passes_and_is_counted() {
    let options = Options {
        games: 200,
        plies_max: u64::MAX,
        deep_checks: 1_000,
        seed: 3,
    };
    let summary = conformance::check(&Faulty(game!(TicTacToe, "tic-tac-toe"), Fault::None), &options);
    let summary = summary.unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!(summary.games, 200);
    assert_eq!(summary.results.iter().sum::<u32>(), 200);
    assert!(summary.results.iter().all(|&count| count > 0), "{summary:?}");
    assert!(
        (1_000..=1_800).contains(&summary.plies) && summary.deep_checks > 500,
        "{summary:?}"
    );
}

#[test]
fn results_have_stable_names() {
    for reason in Reason::ALL {
        assert_eq!(Reason::parse(reason.as_str()), Some(reason));
    }
    assert_eq!(Reason::parse("checkmate"), None);
}
