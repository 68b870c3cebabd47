//! Halves of games that share their sessions, and how the size of a batch is settled.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use common::{lease, network, opinions, play, settings};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_inference::{Device, Devices, Outputs, SessionOptions};
use tengen_records::{LeaseId, Record, RunId};
use tengen_selfplay::evaluator::HashEvaluator;
use tengen_selfplay::feeding::{Division, Feeding, Measured, SessionsPer, Shared, Wishes, find};
use tengen_selfplay::{
    Driver, DriverOptions, EvaluateError, Evaluator, GameOrder, Lease, ModelBytes, Order, Plan, SessionEvaluator,
};

/// How long anything may take before a test counts as failed. Nothing waits this long when all is well.
const GUARD: Duration = Duration::from_secs(40);

fn self_play(games: u32) -> Plan {
    Plan::SelfPlay {
        games,
        random_plies_max: 2,
    }
}

/// Plays every `stride`-th game of the lease from `first` on, many at once. Time stands still.
fn play_share<G: Game>(
    game: &G,
    evaluator: impl Evaluator,
    lease: &Arc<Lease>,
    (first, stride): (u32, usize),
) -> Vec<Record> {
    let options = DriverOptions {
        games: 64,
        batch_max: 4,
        clock: || 1_000,
        ..DriverOptions::default()
    };
    let mut driver = Driver::new(game.clone(), evaluator, options);
    for index in (first..lease.order().plan.games()).step_by(stride) {
        let lease = Arc::clone(lease);
        driver.start(GameOrder { lease, index }).unwrap();
    }
    let mut records = Vec::new();
    while !driver.is_idle() {
        driver.tick(&mut records).unwrap();
    }
    records
}

/// Plays the lease on two threads, each with one of the evaluators, and sorts the records by index.
fn play_halves<G: Game, E: Evaluator + Send + 'static>(
    game: &G,
    evaluators: [E; 2],
    lease: &Arc<Lease>,
) -> Vec<Record> {
    let [first, second] = evaluators;
    let mut records = std::thread::scope(|scope| {
        let first = scope.spawn(move || play_share(game, first, lease, (0, 2)));
        let mut records = play_share(game, second, lease, (1, 2));
        records.extend(first.join().unwrap());
        records
    });
    records.sort_by_key(|record| record.id.index);
    records
}

struct SameGames;

impl GameVisitor for SameGames {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let lease = lease(self_play(9), settings(12), 21);
        let alone = play(&game, opinions(&game), DriverOptions::default(), &lease);
        let shared = Shared::new(opinions(&game));
        assert_eq!(play_halves(&game, [shared.clone(), shared], &lease), alone);
    }
}

#[test]
fn halves_that_share_sessions_play_the_games_of_one_alone() {
    for id in ["connect-four", "caro5?size=5"] {
        AnyGame::parse(id).unwrap().visit(SameGames);
    }
}

fn on_the_cpu() -> SessionEvaluator {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    SessionEvaluator::new(SessionOptions {
        device: Device::Cpu,
        intra_threads: 1,
        batch_max: 4,
    })
}

struct SameToTheBit(Arc<ModelBytes>);

impl GameVisitor for SameToTheBit {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let order = Order {
            lease: LeaseId(78),
            models: vec![self.0.id()],
            settings: settings(16),
            settings_revision: 1,
            seed: 4,
            plan: self_play(10),
        };
        let lease = Lease::new(RunId::new("test-run").unwrap(), order, vec![self.0]).unwrap();
        let own = play_halves(&game, [on_the_cpu(), on_the_cpu()], &lease);
        assert_eq!(own.len(), 10);
        let shared = Shared::new(on_the_cpu());
        assert_eq!(play_halves(&game, [shared.clone(), shared], &lease), own);
    }
}

/// Each half fills its batches from its own games, and they are padded alike.
#[test]
fn a_shared_session_answers_each_half_as_one_of_its_own_does_to_the_bit() {
    let game = AnyGame::parse("connect-four").unwrap();
    let model = network(&game, 4);
    game.visit(SameToTheBit(model));
}

/// What the halves and what they share tell the test.
#[derive(Debug, PartialEq)]
enum Event {
    /// This half has its batch and wants it evaluated.
    Asked(u32),
    /// A batch is being evaluated.
    Inside,
}

/// One half's way to the sessions.
struct Half {
    number: u32,
    events: SyncSender<Event>,
    sessions: Shared<Held>,
}

impl Evaluator for Half {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        // The test listens as long as it goes well.
        let _ = self.events.send(Event::Asked(self.number));
        self.sessions.evaluate(model, planes, n, out)
    }
}

/// Keeps a batch until the test lets it go.
struct Held {
    events: SyncSender<Event>,
    go: Receiver<()>,
    opinions: HashEvaluator,
}

impl Evaluator for Held {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        // A test that has failed lets everything go.
        let _ = self.events.send(Event::Inside);
        let _ = self.go.recv();
        self.opinions.evaluate(model, planes, n, out)
    }
}

struct Overlap;

impl GameVisitor for Overlap {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let lease = lease(self_play(4), settings(8), 3);
        let (events, heard) = sync_channel(16);
        let (go, held) = sync_channel(1);
        let sessions = Shared::new(Held {
            events: events.clone(),
            go: held,
            opinions: opinions(&game),
        });
        let halves = [0, 1].map(|number| Half {
            number,
            events: events.clone(),
            sessions: sessions.clone(),
        });
        drop((events, sessions));
        let (shown, ordered) = (&game, &lease);
        let mut records = std::thread::scope(|scope| {
            // Whatever fails below drops both, and the halves play on unheard.
            let (go, heard) = (go, heard);
            let next = || heard.recv_timeout(GUARD).unwrap();
            let [first, second] = halves;
            let first = scope.spawn(move || play_share(shown, first, ordered, (0, 2)));
            assert_eq!([next(), next()], [Event::Asked(0), Event::Inside]);
            // The first half's batch stays inside, and the second fills one of its own.
            let second = scope.spawn(move || play_share(shown, second, ordered, (1, 2)));
            assert_eq!(next(), Event::Asked(1));
            go.send(()).unwrap();
            loop {
                match heard.recv_timeout(GUARD) {
                    Ok(Event::Inside) => go.send(()).unwrap(),
                    Ok(Event::Asked(_)) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => panic!("the halves stand still"),
                }
            }
            let mut records = first.join().unwrap();
            records.extend(second.join().unwrap());
            records
        });
        records.sort_by_key(|record| record.id.index);
        assert_eq!(records, play(&game, opinions(&game), DriverOptions::default(), &lease));
    }
}

#[test]
fn one_half_walks_its_trees_while_the_batch_of_the_other_is_evaluated() {
    AnyGame::parse("tic-tac-toe").unwrap().visit(Overlap);
}

const NOTHING: Wishes = Wishes {
    games: None,
    batch_max: None,
    threads: Some(2),
    threads_per_device: 2,
    sessions_per: None,
    cache_mib: None,
};

/// Feeds the CPU as wanted, and measures a small network of Connect Four.
fn measured(wishes: Wishes) -> (Feeding, Measured) {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    let game = AnyGame::parse("connect-four").unwrap();
    let division = Division::new(&Device::Cpu.into(), &wishes, 1);
    let feeding = Feeding::new(division, game.spec().planes_len());
    let model = network(&game, 1);
    let measured = feeding.measure(&model).unwrap().expect("the first time");
    assert_eq!(feeding.measure(&model).unwrap(), None, "it is settled");
    assert_eq!(measured.provider, "CPUExecutionProvider");
    assert_eq!(feeding.batch(), measured.batch);
    assert_eq!(feeding.driver(0).batch_max, measured.batch);
    (feeding, measured)
}

/// The sizes that were measured: all of these, unless the machine is so busy that the time ran out.
fn check_sizes(measured: &Measured, sizes: &[usize]) {
    let found: Vec<usize> = measured.rates.iter().map(|rate| rate.batch).collect();
    assert!(!found.is_empty() && sizes.starts_with(&found), "{found:?}");
    assert!(measured.rates.iter().all(|rate| rate.per_second > 0.0), "{measured:?}");
    assert_eq!(measured.rates_in_words().split(", ").count(), found.len());
}

#[test]
fn the_first_network_settles_the_size_of_a_batch() {
    let (feeding, measured) = measured(NOTHING);
    check_sizes(&measured, &[1, 2, 4, 8, 16]);
    assert!(measured.rates.iter().any(|rate| rate.batch == measured.batch));
    assert_eq!(feeding.driver(1).games, 32);
    assert_eq!(
        feeding.evaluator(0).provider(),
        None,
        "a thread loads sessions of its own"
    );
}

#[test]
fn a_batch_that_somebody_fixed_is_measured_and_kept() {
    let (feeding, measured) = measured(Wishes {
        games: Some(10),
        batch_max: Some(6),
        ..NOTHING
    });
    // Five games a thread fill no batch of six.
    check_sizes(&measured, &[1, 2, 4, 5]);
    assert_eq!((measured.batch, feeding.driver(0).games), (6, 5));
}

#[test]
fn threads_that_share_a_device_share_the_session_that_was_measured() {
    let (feeding, measured) = measured(Wishes {
        sessions_per: Some(SessionsPer::Device),
        ..NOTHING
    });
    check_sizes(&measured, &[1, 2, 4, 8, 16]);
    for thread in 0..2 {
        let provider = feeding.evaluator(thread).provider();
        assert_eq!(provider.as_deref(), Some("CPUExecutionProvider"));
    }
}

#[test]
fn auto_is_found_out_and_a_name_is_not() {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    let game = AnyGame::parse("tic-tac-toe").unwrap();
    let found = find(&Devices::default(), &game).unwrap();
    assert!(matches!(found.as_slice(), [Device::Cpu | Device::Cuda(0)]), "{found}");
    let named: Devices = "cuda:5,cuda:6".parse().unwrap();
    assert_eq!(find(&named, &game).unwrap(), named);
}
