//! Fingerprints: golden, and sensitive to what they guard.

use tengen_games::line::{Colour, EdgePolicy, Ends, LineRule, Overline};
use tengen_games::mnk::MnkRules;
use tengen_games::stones::{StoneGame, StoneRules, StoneState};
use tengen_games::{AnyGame, Fingerprint, Game, OpeningRule, Plane, feature_fingerprint, registry, rules_fingerprint};

use crate::game;

const GOLDEN: &str = include_str!("../golden/fingerprints.txt");

#[test]
fn fingerprints_are_golden() {
    let mut text = String::new();
    for name in registry::entries()
        .iter()
        .flat_map(|entry| std::iter::once(&entry.name).chain(entry.samples))
    {
        let game = AnyGame::parse(name).expect("a registered game");
        let (rules, features) = (game.rules_fingerprint(), game.feature_fingerprint());
        text.push_str(&format!("{name}\n  rules    {rules}\n  features {features}\n"));
    }
    assert!(
        text == GOLDEN,
        "tests/golden/fingerprints.txt differs; fingerprints now:\n{text}"
    );
}

/// A line rule behind the name and planes of another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Altered(LineRule);

impl StoneRules for Altered {
    fn line_rule(&self, _colour: Colour) -> LineRule {
        self.0
    }

    fn plane_list(&self, _opening: OpeningRule) -> Vec<Plane> {
        vec![Plane::binary("stones")]
    }

    fn fill_planes(&self, _state: &StoneState<Altered>, _out: &mut [u8]) {}
}

fn altered(id: &str, rule: LineRule, side: usize, opening: OpeningRule) -> StoneGame<Altered> {
    StoneGame::new(id.to_owned(), Altered(rule), side, side, opening)
}

#[test]
fn a_change_of_the_win_test_alone_changes_the_rules_fingerprint() {
    let caro5 = |edge| LineRule {
        length: 5,
        overline: Overline::Nothing,
        ends: Ends::OneOpen(edge),
    };
    let closed = altered("caro5", caro5(EdgePolicy::Closed), 15, OpeningRule::Swap2);
    let open = altered("caro5", caro5(EdgePolicy::Open), 15, OpeningRule::Swap2);
    assert_eq!(rules_fingerprint(&closed), rules_fingerprint(&game!(Caro5, "caro5")));
    assert_ne!(rules_fingerprint(&closed), rules_fingerprint(&open));
    let freestyle = LineRule::at_least(5);
    let exact = LineRule {
        overline: Overline::Nothing,
        ..freestyle
    };
    let with = |rule| rules_fingerprint(&altered("mnk", rule, 15, OpeningRule::None));
    assert_ne!(with(freestyle), with(exact));
    assert_ne!(with(freestyle), with(LineRule::at_least(6)));
}

#[test]
fn a_change_of_planes_changes_only_the_feature_fingerprint() {
    let game = game!(Mnk, "mnk?m=3&n=3&k=3");
    let other = altered(&game.spec().id, LineRule::at_least(3), 3, OpeningRule::None);
    assert_eq!(rules_fingerprint(&game), rules_fingerprint(&other));
    assert_ne!(feature_fingerprint(&game), feature_fingerprint(&other));
}

#[test]
fn a_change_of_what_planes_show_changes_the_feature_fingerprint() {
    let game = game!(Mnk, "mnk?m=3&n=3&k=3");
    let blank = StoneGame::new(game.spec().id.clone(), Blank, 3, 3, OpeningRule::None);
    assert_eq!(game.spec().planes, blank.spec().planes);
    assert_eq!(rules_fingerprint(&game), rules_fingerprint(&blank));
    assert_ne!(feature_fingerprint(&game), feature_fingerprint(&blank));
}

/// Tic-tac-toe with the planes of `mnk` left empty.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Blank;

impl StoneRules for Blank {
    fn line_rule(&self, _colour: Colour) -> LineRule {
        LineRule::at_least(3)
    }

    fn plane_list(&self, opening: OpeningRule) -> Vec<Plane> {
        MnkRules { k: 3 }.plane_list(opening)
    }

    fn fill_planes(&self, _state: &StoneState<Blank>, _out: &mut [u8]) {}
}

#[test]
fn a_preset_is_the_game_it_names() {
    let fingerprint = |text| AnyGame::parse(text).map(|game| game.feature_fingerprint());
    assert_eq!(
        fingerprint("caro5-gomocup?size=7"),
        fingerprint("caro5?size=7&edge=open")
    );
    assert_ne!(fingerprint("caro5?size=7"), fingerprint("caro5?size=7&edge=open"));
}

#[test]
fn fingerprints_are_read_as_they_are_written() {
    let fingerprint = rules_fingerprint(&game!(TicTacToe, "tic-tac-toe"));
    assert_eq!(Fingerprint::parse(&fingerprint.to_string()), Ok(fingerprint));
    assert!(Fingerprint::parse("00").is_err_and(|error| error.to_string().contains("`00` is no fingerprint")));
    assert!(Fingerprint::parse(&"g".repeat(64)).is_err());
}
