//! Rating matches beside the rest of a run: their share, their place behind gates, and what a restart leaves of them.

use std::collections::BTreeMap;

use tengen_control::rating::{Pair, PlayerId, RatingRules, RatingState, Results};
use tengen_control::{
    ActorId, Control, Effect, Event, GameScore, GateRule, Lease, LeaseId, LeaseRules, ModelId, Queue, Row, Rules,
    Schedule, Snapshot, Work,
};

const RATINGS: RatingRules = RatingRules {
    share: 0.2,
    pairs: 3,
    openings: 7,
};

fn snapshot() -> Snapshot {
    Snapshot {
        ratings: RatingState {
            anchor: Some(PlayerId(0)),
            ..RatingState::default()
        },
        ..Snapshot::new(ModelId([0; 32]))
    }
}

fn rules(ratings: RatingRules) -> Rules {
    let row = Row {
        from_iteration: 0,
        simulations: 8,
        games: 1_000_000,
    };
    Rules {
        schedule: Schedule::new(vec![row]).expect("a good schedule"),
        candidate_every: 1,
        gate: GateRule::None,
        queue: Queue::Replace,
        gate_share: 0.5,
        actor_share: 0.5,
        ratings,
        leases: LeaseRules::default(),
    }
}

fn start(ratings: RatingRules, snapshot: Snapshot) -> Control {
    let (control, effects) = Control::restore(rules(ratings), snapshot, 0).expect("good rules");
    assert_eq!(effects, []);
    control
}

/// Asks for a lease of about eight games; `serial` becomes its id.
fn ask(control: &mut Control, serial: u32, players: u32) -> Lease {
    let mut lease = [0; 16];
    lease[..4].copy_from_slice(&serial.to_be_bytes());
    let event = Event::WorkAsked {
        actor: ActorId(u64::from(serial)),
        lease: LeaseId(lease),
        games_per_minute: 0.0,
        self_play_max: u32::MAX,
        rating_players: (0..players).map(PlayerId).collect(),
    };
    match control.step(event, 0).pop() {
        Some(Effect::LeaseIssued(lease)) => lease,
        other => panic!("{other:?}"),
    }
}

/// Stores every game of a rating lease, all drawn.
fn play(control: &mut Control, lease: &Lease) {
    let Work::Rating { pair, openings } = &lease.work else {
        panic!("{lease:?}")
    };
    assert_eq!(lease.games as usize, openings.len() * 2);
    for game in 0..lease.games {
        control.step(
            Event::GameRated {
                first: pair.low(),
                second: pair.high(),
                score: GameScore::Draw,
            },
            0,
        );
        let effects = control.step(Event::RatingStored(lease.id), 0);
        assert_eq!(
            effects.is_empty(),
            game + 1 < lease.games,
            "the last game closes the lease"
        );
    }
}

#[test]
fn a_share_of_the_games_is_for_ratings_until_every_opening_was_played() {
    let mut control = start(RATINGS, snapshot());
    let (mut rating, mut other) = (0, 0);
    let mut openings: BTreeMap<Pair, Vec<u32>> = BTreeMap::new();
    for serial in 0..200 {
        assert_eq!(
            control.rating_is_due(),
            f64::from(rating) * 0.8 < f64::from(other) * 0.2
        );
        let lease = ask(&mut control, serial, 4);
        match &lease.work {
            Work::Rating { pair, openings: range } => {
                rating += lease.games;
                openings.entry(*pair).or_default().extend(range.clone());
                play(&mut control, &lease);
            }
            _ => other += lease.games,
        }
    }
    // Six pairings of four players, seven openings each, two games from each: then there is nothing left to play.
    assert_eq!(rating, 6 * 7 * 2);
    assert_eq!(openings.len(), 6);
    assert!(
        openings.values().all(|seen| *seen == (0..7).collect::<Vec<_>>()),
        "{openings:?}"
    );
}

#[test]
fn without_a_share_or_for_an_actor_that_takes_none_there_are_no_rating_matches() {
    let off = RatingRules { share: 0.0, ..RATINGS };
    for (rules, players) in [(off, 4), (RATINGS, 0), (RATINGS, 1)] {
        let mut control = start(rules, snapshot());
        assert!((0..50).all(|serial| ask(&mut control, serial, players).is_self_play()));
    }
}

#[test]
fn what_was_played_and_handed_out_before_a_restart_is_remembered() {
    let pair = Pair::new(PlayerId(0), PlayerId(1)).expect("two players");
    let mut results = Results::default();
    (0..40).for_each(|_| results.add(PlayerId(0), PlayerId(1), GameScore::Draw));
    let snapshot = Snapshot {
        ratings: RatingState {
            anchor: Some(PlayerId(0)),
            results,
            used: BTreeMap::from([(pair, 5)]),
        },
        ..snapshot()
    };
    let mut control = start(RATINGS, snapshot);
    let mut of_pair = Vec::new();
    let mut first_match = None;
    for serial in 0..200 {
        let lease = ask(&mut control, serial, 3);
        if let Work::Rating {
            pair: playing,
            openings,
        } = &lease.work
        {
            first_match.get_or_insert(*playing);
            if *playing == pair {
                of_pair.extend(openings.clone());
            }
            play(&mut control, &lease);
        }
    }
    assert_ne!(
        first_match,
        Some(pair),
        "players 0 and 1 have forty games, player 2 has none"
    );
    assert_eq!(of_pair, [5, 6], "openings 0 to 4 were handed out before");
}

#[test]
fn a_share_out_of_range_is_refused() {
    for share in [-0.1, 0.51, f64::NAN] {
        let refused = Control::restore(rules(RatingRules { share, ..RATINGS }), snapshot(), 0);
        assert!(refused.is_err(), "{share}");
    }
}
