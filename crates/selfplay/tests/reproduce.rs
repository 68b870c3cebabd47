//! Searches run again: the same seed, order and network lead to the same searches, and what differs is told for what it is.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::sync::Arc;

use common::{lease, network, opinions, play, settings};
use tengen_games::{Action, AnyGame, Game, GameVisitor, draw_openings};
use tengen_inference::{Device, SessionOptions};
use tengen_records::{LeaseId, Record, RunId};
use tengen_selfplay::reproduce::{Agreement, ReproduceError, agreement, reproduce};
use tengen_selfplay::{DriverOptions, Evaluator, Lease, MatchGame, ModelBytes, Order, Plan, SessionEvaluator};

/// A lease of each kind: self-play, a gate's match, a rating match.
fn plans<G: Game>(game: &G) -> Vec<Plan> {
    let openings = draw_openings(game, 2, 5);
    let games: Vec<MatchGame> = openings
        .into_iter()
        .enumerate()
        .flat_map(|(pair, opening)| {
            [0, 1].map(|seat0_model| MatchGame {
                pair: pair as u32,
                opening: opening.plies.clone(),
                sampled_plies: opening.sampled_plies,
                seat0_model,
            })
        })
        .collect();
    vec![
        Plan::SelfPlay {
            games: 4,
            random_plies_max: 3,
        },
        Plan::Match { games: games.clone() },
        Plan::Rating {
            players: ["rollout:20", "random"].map(|text| text.parse().unwrap()),
            games,
        },
    ]
}

struct SameAgain;

impl GameVisitor for SameAgain {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        for (n, plan) in plans(&game).into_iter().enumerate() {
            let lease = lease(plan, settings(12), 40 + n as u64);
            // Many games at once: what shares a batch must not matter.
            for record in play(&game, opinions(&game), DriverOptions::default(), &lease) {
                let plies = reproduce(game.clone(), &record, &lease, opinions(&game)).unwrap();
                assert_eq!(plies.len(), record.plies.len());
                assert_eq!(agreement(&plies), Agreement::Identical, "{} {n}", game.spec().id);
                assert!(plies.iter().all(|ply| ply.chosen == ply.played));
            }
        }
    }
}

#[test]
fn games_of_every_kind_of_lease_are_searched_the_same_again() {
    for id in ["caro5?size=5", "tic-tac-toe", "amazons?size=4", "hex?size=4"] {
        AnyGame::parse(id).unwrap().visit(SameAgain);
    }
}

/// One game of self-play with its lease.
fn one_game<G: Game>(game: &G) -> (Record, Arc<Lease>) {
    let plan = Plan::SelfPlay {
        games: 1,
        random_plies_max: 0,
    };
    let lease = lease(plan, settings(12), 9);
    let record = play(game, opinions(game), DriverOptions::default(), &lease).remove(0);
    (record, lease)
}

struct Told;

impl GameVisitor for Told {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let (record, lease) = one_game(&game);
        let again = |record: &Record, evaluator: &mut dyn FnMut() -> Box<dyn Evaluator>| {
            reproduce(game.clone(), record, &lease, Boxed(evaluator())).map(|plies| agreement(&plies))
        };
        let mut same = || Box::new(opinions(&game)) as Box<dyn Evaluator>;

        // Another network.
        let mut other = || {
            Box::new(tengen_selfplay::evaluator::UniformEvaluator {
                actions: game.spec().actions.len(),
            }) as Box<dyn Evaluator>
        };
        assert!(matches!(
            again(&record, &mut other).unwrap(),
            Agreement::OtherNetwork { ply: 0, .. }
        ));

        // Visits that no such search had.
        let mut visited = record.clone();
        let search = visited.plies[2].search.as_mut().unwrap();
        search.visits[0].1 += 1;
        search.visits_total += 1;
        assert_eq!(again(&visited, &mut same).unwrap(), Agreement::OtherVisits { ply: 2 });

        // A number in its last digits.
        let mut rounded = record.clone();
        rounded.plies[1].search.as_mut().unwrap().root_wdl[0] += 1e-6;
        let within = again(&rounded, &mut same).unwrap();
        assert!(
            matches!(within, Agreement::Within { greatest } if greatest > 0.0 && greatest < 2e-6),
            "{within:?}"
        );

        // A search that is kept quiet.
        let mut quiet = record.clone();
        quiet.plies[3].search = None;
        assert_eq!(again(&quiet, &mut same).unwrap(), Agreement::OtherChoice { ply: 3 });

        // Another opening, another lease, half a game.
        let mut opened = record.clone();
        opened.opening = vec![Action(0)];
        assert!(matches!(
            again(&opened, &mut same),
            Err(ReproduceError::NotOfOrder { .. })
        ));
        let mut moved = record.clone();
        moved.id.lease = LeaseId(1);
        assert!(matches!(
            again(&moved, &mut same),
            Err(ReproduceError::NotOfOrder { .. })
        ));
        let mut half = record.clone();
        half.plies.truncate(2);
        assert!(matches!(
            again(&half, &mut same),
            Err(ReproduceError::NotOfOrder { .. })
        ));
    }
}

/// An evaluator behind a pointer.
struct Boxed(Box<dyn Evaluator>);

impl Evaluator for Boxed {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut tengen_inference::Outputs,
    ) -> Result<(), tengen_selfplay::EvaluateError> {
        self.0.evaluate(model, planes, n, out)
    }
}

#[test]
fn what_differs_is_told_for_what_it_is() {
    AnyGame::parse("caro5?size=5").unwrap().visit(Told);
}

fn sessions(batch_max: u32) -> SessionEvaluator {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    SessionEvaluator::new(SessionOptions {
        device: Device::Cpu,
        intra_threads: 1,
        batch_max: batch_max as usize,
    })
}

struct Real(Arc<ModelBytes>);

impl GameVisitor for Real {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let order = Order {
            lease: LeaseId(77),
            models: vec![self.0.id()],
            settings: settings(16),
            settings_revision: 1,
            seed: 3,
            plan: Plan::SelfPlay {
                games: 4,
                random_plies_max: 2,
            },
        };
        let lease = Lease::new(RunId::new("test-run").unwrap(), order, vec![self.0]).unwrap();
        let options = DriverOptions {
            games: 4,
            batch_max: 16,
            ..DriverOptions::default()
        };
        for record in play(&game, sessions(16), options, &lease) {
            let plies = reproduce(game.clone(), &record, &lease, sessions(1)).unwrap();
            // Other batches may round otherwise, and a rounding may tip a visit; the network is the same all the same.
            let found = agreement(&plies);
            let honest = matches!(
                found,
                Agreement::Identical | Agreement::Within { .. } | Agreement::OtherVisits { .. }
            );
            assert!(honest, "{found:?}");
        }
    }
}

#[test]
fn a_network_in_onnx_runtime_is_recognised_in_another_size_of_batch() {
    let game = AnyGame::parse("caro5?size=7").unwrap();
    let model = network(&game, 4);
    game.visit(Real(model));
}
