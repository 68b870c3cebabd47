//! What the toy games share: a spec of so many actions and a state made from a rule.

use tengen_games::{
    Action, ActionBlock, ActionLayout, Game, IllegalAction, OpeningRule, Outcome, Plane, Roles, Seat, Spec, State,
    Symmetry,
};

/// The rules of a toy game: what is at a place of its tree.
pub(crate) trait Rule: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// A place in the tree.
    type Place: Copy + std::fmt::Debug + PartialEq + Send + Sync + 'static;

    fn start(&self) -> Self::Place;
    fn seat(&self, place: Self::Place) -> Seat;
    fn outcome(&self, place: Self::Place) -> Option<Outcome>;
    /// Where each legal action leads, ascending by action. Only asked before the end.
    fn moves(&self, place: Self::Place) -> Vec<(Action, Self::Place)>;
    fn hash(&self, place: Self::Place) -> u64;
}

#[derive(Clone, Debug)]
pub(crate) struct Toy<R> {
    rule: R,
    spec: Spec,
}

impl<R: Rule> Toy<R> {
    pub(crate) fn new(rule: R, actions: usize) -> Toy<R> {
        let spec = Spec {
            id: "toy".to_owned(),
            rows: 1,
            cols: 1,
            planes: vec![Plane::binary("nothing")],
            actions: ActionLayout::new(vec![ActionBlock::Global { count: actions }], 1, 1),
            symmetries: vec![Symmetry {
                name: "identity",
                cells: vec![0],
                actions: (0..actions as u16).collect(),
            }],
            opening: OpeningRule::None,
            plies_max: 64,
        };
        Toy { rule, spec }
    }
}

impl<R: Rule> Game for Toy<R> {
    type State = ToyState<R>;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> ToyState<R> {
        ToyState {
            rule: self.rule.clone(),
            place: self.rule.start(),
            plies: 0,
        }
    }

    fn action_text(&self, action: Action) -> String {
        action.to_string()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToyState<R: Rule> {
    rule: R,
    place: R::Place,
    plies: u32,
}

impl<R: Rule> ToyState<R> {
    fn moves(&self) -> Vec<(Action, R::Place)> {
        if self.outcome().is_some() {
            Vec::new()
        } else {
            self.rule.moves(self.place)
        }
    }
}

impl<R: Rule> State for ToyState<R> {
    fn seat(&self) -> Seat {
        self.rule.seat(self.place)
    }

    fn stage(&self) -> u8 {
        0
    }

    fn turn(&self) -> u32 {
        self.plies
    }

    fn legal(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend(self.moves().iter().map(|&(action, _)| action));
    }

    fn is_legal(&self, action: Action) -> bool {
        self.moves().iter().any(|&(legal, _)| legal == action)
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        let found = self.moves().into_iter().find(|&(legal, _)| legal == action);
        let (_, place) = found.ok_or(IllegalAction {
            action,
            why: "not on the list",
        })?;
        self.place = place;
        self.plies += 1;
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.rule.outcome(self.place)
    }

    fn planes(&self, out: &mut [u8]) {
        out.fill(0);
    }

    fn hash(&self) -> u64 {
        self.rule.hash(self.place)
    }

    fn transform(&self, _symmetry: &Symmetry) -> Self {
        self.clone()
    }

    fn roles(&self) -> Roles {
        Roles::default()
    }

    fn draw(&self) -> String {
        format!("{:?}", self.place)
    }
}
