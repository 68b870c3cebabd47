//! Fingerprints: golden, and sensitive to what they guard.

use tengen_games::line::{EdgePolicy, Ends, LineRule, Overline};
use tengen_games::stone_planes::{StoneStack, Threats};
use tengen_games::stones::{Fouls, StoneGame, StoneRules};
use tengen_games::{AnyGame, Fingerprint, Game, OpeningRule, feature_fingerprint, mnk, registry, rules_fingerprint};

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

/// The game `id` with another line rule than its own.
fn altered(id: &str, rule: LineRule, side: usize, opening: OpeningRule) -> StoneGame {
    let rules = StoneRules {
        lines: [rule; 2],
        ..mnk::rules(5)
    };
    StoneGame::new(id.to_owned(), rules, side, side, opening)
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
fn fouls_change_the_rules_fingerprint() {
    let with = |fouls| {
        let rules = StoneRules { fouls, ..mnk::rules(5) };
        rules_fingerprint(&StoneGame::new("mnk".to_owned(), rules, 15, 15, OpeningRule::None))
    };
    assert_ne!(with(Fouls::None), with(Fouls::Renju));
}

#[test]
fn a_change_of_planes_changes_only_the_feature_fingerprint() {
    for (text, other) in [
        ("caro5?size=7", "caro5?size=7&threat_planes=false"),
        ("caro5?size=7", "caro5?size=7&history=2"),
        ("caro5?size=7&history=4", "caro5?size=7&history=6"),
        ("renju", "renju?history=8&threat_planes=false"),
    ] {
        let [game, other] = [text, other].map(|text| AnyGame::parse(text).expect("a registered game"));
        assert_eq!(game.rules_fingerprint(), other.rules_fingerprint(), "{text}");
        assert_ne!(game.feature_fingerprint(), other.feature_fingerprint(), "{text}");
    }
}

#[test]
fn a_change_of_what_planes_show_changes_the_feature_fingerprint() {
    let stack = |stack| {
        let mut rules = mnk::rules(3);
        rules.planes.stack = stack;
        rules.planes.threats = Threats::Shown;
        feature_fingerprint(&StoneGame::new("mnk".to_owned(), rules, 3, 3, OpeningRule::None))
    };
    assert_ne!(stack(StoneStack::Sides), stack(StoneStack::History { depth: 2 }));
    // The same planes by name, but traps and threats of another line rule.
    let traps = |rule| {
        let mut rules = StoneRules {
            lines: [rule; 2],
            ..mnk::rules(3)
        };
        rules.planes.threats = Threats::Shown;
        StoneGame::new("mnk".to_owned(), rules, 9, 9, OpeningRule::None)
    };
    let (free, exact) = (traps(LineRule::at_least(5)), traps(LineRule::exactly(5)));
    assert_eq!(free.spec().planes, exact.spec().planes);
    assert_ne!(feature_fingerprint(&free), feature_fingerprint(&exact));
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
