//! What one gate makes of its games.

use super::*;
use crate::fixed::{FixedRule, Needed};
use crate::log::{GameScore, Leg};
use crate::sprt::{SprtRule, Unit};

const LEASE: LeaseId = LeaseId([1; 16]);
const ACTOR: ActorId = ActorId(1);
const CANDIDATE: Candidate = Candidate {
    model: ModelId([1; 32]),
    iteration: 1,
};

fn plan(rule: impl Into<MatchRule>) -> MatchPlan {
    let rule = rule.into();
    MatchPlan {
        opponent: ModelId([0; 32]),
        rule,
        openings: Openings::distinct(rule.pairs()),
    }
}

fn fixed(games: u32, threshold: f64) -> FixedRule {
    FixedRule::new(games, Needed::AtLeast(threshold)).unwrap()
}

fn gate(rule: impl Into<MatchRule>) -> Gate {
    let mut gate = Gate::new(GateId(1), CANDIDATE, plan(rule));
    let pairs: Vec<u32> = gate.unassigned().collect();
    gate.assign(&pairs, LEASE, ACTOR);
    gate
}

fn play(gate: &mut Gate, lease: LeaseId, pair: u32, leg: Leg, score: GameScore) {
    let standing = gate.standing(lease, pair);
    gate.append(LogEntry {
        lease,
        pair,
        leg,
        score,
        standing,
    });
}

fn play_pair(gate: &mut Gate, pair: u32, first: GameScore, second: GameScore) {
    play(gate, LEASE, pair, Leg::CandidateFirst, first);
    play(gate, LEASE, pair, Leg::ChampionFirst, second);
}

fn rejected(gate: &Gate) -> String {
    gate.reason(Outcome::Rejected)
}

#[test]
fn strict_needs_more_than_the_threshold() {
    for (needed, decision) in [
        (Needed::AtLeast(0.5), Decision::Promote),
        (Needed::MoreThan(0.5), Decision::Reject),
    ] {
        let mut gate = gate(FixedRule::new(4, needed).unwrap());
        play_pair(&mut gate, 0, GameScore::Win, GameScore::Loss);
        assert_eq!(gate.decision(), None);
        play_pair(&mut gate, 1, GameScore::Draw, GameScore::Draw);
        assert_eq!(gate.decision(), Some(decision));
    }
}

#[test]
fn decided_early_in_both_directions_and_frozen() {
    let mut winning = gate(fixed(20, 0.55));
    for pair in 0..6 {
        assert_eq!(winning.decision(), None);
        play_pair(&mut winning, pair, GameScore::Win, GameScore::Win);
    }
    assert_eq!(winning.decision(), Some(Decision::Promote));
    let tally = winning.tally();
    play_pair(&mut winning, 6, GameScore::Loss, GameScore::Loss);
    assert_eq!(winning.tally(), tally);
    assert_eq!(winning.log().last().map(|entry| entry.standing), Some(Standing::Late));

    let mut losing = gate(fixed(20, 0.55));
    for pair in 0..5 {
        assert_eq!(losing.decision(), None);
        play_pair(&mut losing, pair, GameScore::Loss, GameScore::Loss);
    }
    assert_eq!(losing.decision(), Some(Decision::Reject));
    assert!(
        rejected(&losing).contains("could not have changed"),
        "{}",
        rejected(&losing)
    );
}

#[test]
fn a_half_pair_of_a_lapsed_lease_is_void() {
    let mut gate = gate(fixed(8, 0.55));
    let other = LeaseId([2; 16]);
    play(&mut gate, LEASE, 0, Leg::CandidateFirst, GameScore::Win);
    gate.release(LEASE);
    assert_eq!(gate.unassigned().collect::<Vec<_>>(), [0, 1, 2, 3]);
    gate.assign(&[0], other, ACTOR);
    play(&mut gate, LEASE, 0, Leg::ChampionFirst, GameScore::Win);
    play(&mut gate, other, 0, Leg::ChampionFirst, GameScore::Loss);
    assert_eq!(gate.tally().pairs, 0);
    play(&mut gate, other, 0, Leg::CandidateFirst, GameScore::Loss);
    let mut lost = Tally::default();
    lost.add_pair(GameScore::Loss, GameScore::Loss);
    assert_eq!(gate.tally(), lost);
    assert_eq!(gate.log()[1].standing, Standing::Late);
    assert_eq!(gate.unassigned().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_shortened_match_says_so_and_so_does_one_that_repeats_openings() {
    let rule = fixed(60, 0.55);
    let shortened = |pairs, repeated| MatchPlan {
        openings: Openings { pairs, repeated },
        ..plan(rule)
    };
    let mut gate = Gate::new(GateId(1), CANDIDATE, shortened(9, 0));
    assert_eq!(gate.champion_match().rule().pairs(), 9);
    gate.assign(&[0], LEASE, ACTOR);
    play_pair(&mut gate, 0, GameScore::Win, GameScore::Draw);
    assert!(
        rejected(&gate).contains("shortened from 30 pairs"),
        "{}",
        rejected(&gate)
    );

    let mut repeating = Gate::new(GateId(1), CANDIDATE, shortened(30, 21));
    repeating.assign(&[0], LEASE, ACTOR);
    play_pair(&mut repeating, 0, GameScore::Win, GameScore::Draw);
    let says = rejected(&repeating);
    assert!(
        says.contains("only 9 distinct openings") && !says.contains("shortened"),
        "{says}"
    );

    let none = Gate::new(GateId(1), CANDIDATE, shortened(0, 0));
    assert_eq!(none.decision(), Some(Decision::Reject));
    assert_eq!(
        rejected(&none),
        "rejected: no pair of 30 was counted; shortened from 30 pairs: the game has no more distinct openings"
    );
}

#[test]
fn a_sequential_match_ends_at_either_bound_and_undecided_keeps_the_champion() {
    let rule = SprtRule::new(200, Unit::Elo, [0.0, 200.0], [0.05, 0.05]).unwrap();
    let course = |first: GameScore, second: GameScore, rule: SprtRule| {
        let mut gate = gate(rule);
        for pair in 0..rule.pairs_max {
            play_pair(&mut gate, pair, first, second);
        }
        gate
    };
    let won = course(GameScore::Win, GameScore::Draw, rule);
    assert_eq!(won.decision(), Some(Decision::Promote));
    let says = won.reason(Outcome::Promoted { streak: 1 });
    assert!(won.tally().pairs < 100 && says.contains("reached 2.94"), "{says}");
    let even = course(GameScore::Win, GameScore::Loss, rule);
    assert_eq!(even.decision(), Some(Decision::Reject));
    assert!(rejected(&even).contains("reached -2.94"), "{}", rejected(&even));
    let short = course(GameScore::Win, GameScore::Draw, SprtRule { pairs_max: 3, ..rule });
    assert_eq!(short.decision(), Some(Decision::Reject));
    assert!(rejected(&short).contains("keeps the champion"), "{}", rejected(&short));
}

#[test]
fn the_pool_is_met_after_the_champion_and_one_loss_to_it_rejects() {
    let earlier = |n: u8| MatchPlan {
        opponent: ModelId([n; 32]),
        ..plan(fixed(4, 0.5))
    };
    let start = || {
        let gate = Gate::new(GateId(1), CANDIDATE, plan(fixed(4, 0.55)));
        gate.with_pool(&[earlier(8), earlier(9)])
    };
    let mut passing = start();
    assert_eq!(passing.unassigned().collect::<Vec<_>>(), [0, 1]);
    passing.assign(&[0, 1, 2], LEASE, ACTOR);
    assert_eq!(passing.standing(LEASE, 2), Standing::Late, "the pool is not on yet");
    play_pair(&mut passing, 0, GameScore::Win, GameScore::Win);
    play_pair(&mut passing, 1, GameScore::Win, GameScore::Win);
    assert_eq!(passing.decision(), None);
    assert!(!passing.wants(1) && passing.wants(2));
    passing.release(LEASE);
    assert_eq!(passing.free(), Some((ModelId([8; 32]), vec![2, 3])));
    passing.assign(&[2, 3, 4, 5], LEASE, ACTOR);
    let mut failing = passing.clone();
    for pair in 2..6 {
        play_pair(&mut passing, pair, GameScore::Win, GameScore::Loss);
    }
    assert_eq!(passing.decision(), Some(Decision::Promote));
    let says = passing.reason(Outcome::Promoted { streak: 1 });
    assert!(
        says.contains("against 2 earlier champions: 08080808 not lost"),
        "{says}"
    );

    play_pair(&mut failing, 4, GameScore::Loss, GameScore::Loss);
    assert_eq!(failing.decision(), None);
    play_pair(&mut failing, 5, GameScore::Loss, GameScore::Draw);
    assert_eq!(failing.decision(), Some(Decision::Reject));
    assert!(
        rejected(&failing).contains("09090909 lost with 12.5 %"),
        "{}",
        rejected(&failing)
    );
}

#[test]
fn no_actor_can_come_to_more_than_its_share_of_what_counts() {
    let mut gate = Gate::new(GateId(1), CANDIDATE, plan(fixed(200, 0.55)));
    let (first, second) = (ActorId(1), ActorId(2));
    assert_eq!(gate.room(first, 1.0), u32::MAX);
    assert_eq!(gate.room(first, 0.5), PAIRS_BEFORE_SHARES);
    gate.assign(&(0..8).collect::<Vec<_>>(), LEASE, first);
    assert_eq!(gate.room(first, 0.5), 0);
    assert_eq!(gate.room(second, 0.5), PAIRS_BEFORE_SHARES);
    let theirs = LeaseId([2; 16]);
    gate.assign(&(8..18).collect::<Vec<_>>(), theirs, second);
    for pair in 8..18 {
        play(&mut gate, theirs, pair, Leg::CandidateFirst, GameScore::Win);
        play(&mut gate, theirs, pair, Leg::ChampionFirst, GameScore::Loss);
    }
    // Ten of theirs count: with ten of its own the first one would have half.
    assert_eq!(gate.room(first, 0.5), 2);
    assert_eq!(gate.room(second, 0.5), 0);
}
