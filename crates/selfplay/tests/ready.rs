//! Sessions that are loaded before threads want them: a new network stops no game, and changes none.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::sync::Arc;

use common::{network, play, settings};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_inference::{Device, Session};
use tengen_records::{LeaseId, Record, RunId};
use tengen_selfplay::feeding::{Division, Feeding, SessionsPer, ThreadEvaluator, Wishes};
use tengen_selfplay::{Driver, DriverOptions, Lease, ModelBytes, Order, Plan, SessionEvaluator};

const THREADS: usize = 2;

fn connect_four() -> AnyGame {
    AnyGame::parse("connect-four").unwrap()
}

/// Two threads on the CPU, eight games each.
fn feeding(sessions_per: SessionsPer) -> Feeding {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    let wishes = Wishes {
        games: Some(8 * THREADS),
        batch_max: Some(4),
        threads: Some(THREADS),
        threads_per_device: THREADS,
        sessions_per: Some(sessions_per),
        cache_mib: None,
    };
    let division = Division::new(&Device::Cpu.into(), &wishes, 1);
    Feeding::new(division, connect_four().spec().planes_len())
}

/// Self-play with the network of this seed.
fn lease(seed: u64, games: u32) -> Arc<Lease> {
    let model = network(&connect_four(), seed);
    let order = Order {
        lease: LeaseId(u128::from(seed)),
        models: vec![model.id()],
        settings: settings(12),
        settings_revision: 1,
        seed,
        plan: Plan::SelfPlay {
            games,
            random_plies_max: 2,
        },
    };
    Lease::new(RunId::new("test-run").unwrap(), order, vec![model]).unwrap()
}

/// What a thread did: its games, lease by lease, and how often it loaded a session in all after each.
#[derive(Debug)]
struct Played {
    records: Vec<Vec<Record>>,
    loads: Vec<u64>,
}

/// Plays these leases on one thread after the other, each thread with one evaluator for all. Before each lease but the first, when
/// every thread has played all before it, `between` is told its number.
struct InTurn<'a> {
    feeding: &'a Feeding,
    leases: &'a [Arc<Lease>],
    between: &'a dyn Fn(usize),
}

impl GameVisitor for InTurn<'_> {
    type Output = Vec<Played>;

    fn visit<G: Game>(self, game: G) -> Vec<Played> {
        let mut drivers: Vec<Driver<G, ThreadEvaluator>> = (0..THREADS)
            .map(|thread| {
                let options = DriverOptions {
                    clock: || 1_000,
                    ..self.feeding.driver(thread)
                };
                Driver::new(game.clone(), self.feeding.evaluator(thread), options)
            })
            .collect();
        let nothing = || Played {
            records: Vec::new(),
            loads: Vec::new(),
        };
        let mut played: Vec<Played> = drivers.iter().map(|_| nothing()).collect();
        for (number, lease) in self.leases.iter().enumerate() {
            if number > 0 {
                (self.between)(number);
            }
            for (driver, played) in drivers.iter_mut().zip(&mut played) {
                let mut records = Vec::new();
                driver.play(lease, |record| records.push(record)).unwrap();
                records.sort_by_key(|record| record.id.index);
                played.records.push(records);
                played.loads.push(driver.evaluator().loads());
            }
        }
        played
    }
}

fn in_turn(feeding: &Feeding, leases: &[Arc<Lease>], between: &dyn Fn(usize)) -> Vec<Played> {
    connect_four().visit(InTurn {
        feeding,
        leases,
        between,
    })
}

/// The lease's games with a session that was loaded when it was needed.
struct Alone<'a>(&'a Feeding, &'a Arc<Lease>);

impl GameVisitor for Alone<'_> {
    type Output = Vec<Record>;

    fn visit<G: Game>(self, game: G) -> Vec<Record> {
        let Alone(feeding, lease) = self;
        let sessions = SessionEvaluator::new(feeding.sessions().remove(0));
        play(&game, sessions, feeding.driver(0), lease)
    }
}

#[test]
fn a_new_network_is_loaded_by_no_thread_that_plays_and_its_games_are_the_same_to_the_bit() {
    let feeding = feeding(SessionsPer::Thread);
    let leases = [lease(1, 6), lease(2, 6), lease(1, 6)];
    // Nobody plays yet: the threads load their first network side by side.
    feeding.prepare(&leases[0], || true).unwrap();
    assert_eq!(feeding.sessions_waiting(), 0);
    let played = in_turn(&feeding, &leases, &|number| {
        feeding.prepare(&leases[number], || true).unwrap();
        // Of the first network every thread has a session.
        let wanted = [0, THREADS, 0][number];
        assert_eq!(feeding.sessions_waiting(), wanted, "before lease {number}");
    });
    for thread in &played {
        assert_eq!(thread.loads, [1, 1, 1]);
        for (lease, records) in leases.iter().zip(&thread.records) {
            assert_eq!(records.len(), 6);
            assert_eq!(*records, connect_four().visit(Alone(&feeding, lease)));
        }
    }
}

#[test]
fn threads_that_share_a_device_find_one_session_of_a_new_network() {
    let feeding = feeding(SessionsPer::Device);
    let leases = [lease(1, 4), lease(2, 4)];
    feeding.measure(&leases[0].models()[0]).unwrap();
    let played = in_turn(&feeding, &leases, &|number| {
        feeding.prepare(&leases[number], || true).unwrap();
        assert_eq!(feeding.sessions_waiting(), 1);
    });
    assert!(played.iter().all(|thread| thread.loads == [1, 1]), "{played:?}");
    assert_eq!(feeding.sessions_waiting(), 0);
}

#[test]
fn a_session_that_is_loaded_already_is_the_first_to_be_played_with() {
    let feeding = feeding(SessionsPer::Device);
    let lease = lease(1, 4);
    let model: &ModelBytes = &lease.models()[0];
    let proven = || Session::load(model.bytes(), &feeding.sessions()[0]).unwrap();
    // Two threads share one session: there is no use for a second.
    feeding.offer(model, vec![proven()]);
    feeding.offer(model, vec![proven()]);
    assert_eq!(feeding.sessions_waiting(), 1);
    let played = in_turn(&feeding, std::slice::from_ref(&lease), &|_| {});
    assert!(played.iter().all(|thread| thread.loads == [0]), "{played:?}");
    feeding.offer(model, vec![proven()]);
    assert_eq!(feeding.sessions_waiting(), 0, "it is held already");
}

#[test]
fn no_more_sessions_wait_than_games_want_and_none_for_a_lease_that_is_over() {
    let feeding = feeding(SessionsPer::Thread);
    let first = lease(1, 4);
    let played = in_turn(&feeding, &[Arc::clone(&first), Arc::clone(&first)], &|_| {
        let one_game = lease(2, 1);
        feeding.prepare(&one_game, || true).unwrap();
        assert_eq!(feeding.sessions_waiting(), 1);
        let more = lease(3, 9);
        feeding.prepare(&more, || true).unwrap();
        assert_eq!(feeding.sessions_waiting(), 1 + THREADS, "both leases are in hand");
        drop(one_game);
        feeding.prepare(&more, || true).unwrap();
        assert_eq!(feeding.sessions_waiting(), THREADS);
        drop(more);
        feeding.prepare(&first, || true).unwrap();
        assert_eq!(feeding.sessions_waiting(), 0);
    });
    assert!(played.iter().all(|thread| thread.loads == [1, 1]), "{played:?}");
}
