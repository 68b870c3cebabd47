//! Gates whole: a sequential one that decides in a real run, and many between a network and itself that favour nobody.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::Connection;
use serde_json::Value;
use tengen_control::{
    ActorId, Candidate, Decision, GameScore, Gate, GateId, LeaseId, Leg, LogEntry, MatchPlan, ModelId, Openings,
    SprtRule, Standing, Unit, log_likelihood_ratio,
};
use tengen_games::connect_four::ConnectFour;
use tengen_games::{Action, AnyGame, Opening, draw_openings};
use tengen_inference::SessionOptions;
use tengen_network::{Config, Metadata, Shape, random_weights, write_onnx};
use tengen_records::{Record, RunId};
use tengen_search::Settings;
use tengen_selfplay::evaluator::SessionEvaluator;
use tengen_selfplay::{Driver, DriverOptions, Lease, MatchGame, ModelBytes, Order, Plan};
use tengen_system_tests::cluster::Up;

/// Connect Four with a tiny network, whose first networks are far stronger than the random one: the test is short.
const RUN: &str = r#"
[run]
name = "sequential"
game = "connect-four"
[network]
blocks = 1
channels = 16
value_hidden = 16
[search]
temperature_turns = 10
[[schedule]]
from_iteration = 0
games = 120
simulations = 24
[selfplay]
random_plies_max = 2
[gate]
kind = "sprt"
simulations = 16
[gate.sprt]
unit = "score"
lower = 0.5
upper = 0.65
games_max = 200
[learner]
batch = 64
window_min_positions = 500
checkpoint_every_steps = 50
[actor]
games = 32
batch_max = 32
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Games within which the first promotion must come; it comes within the first thousand.
const GAMES_MAX: &str = "4000";

#[tokio::test(flavor = "multi_thread")]
async fn a_sequential_gate_decides_in_a_real_run_and_its_decision_follows_from_the_stored_log() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run.toml");
    std::fs::write(&run, RUN).unwrap();
    let data = folder.path().join("data");
    let up = Up::start(&run, &data, &["--until-generation", "1", "--until-games", GAMES_MAX]);
    let (status, lines) = up.finish();
    assert!(status.success());
    assert!(
        lines
            .iter()
            .any(|line| line.contains("promoted: ") && line.contains("log-likelihood ratio")),
        "no promotion within {GAMES_MAX} games:\n{}",
        lines.join("\n")
    );

    let database = Connection::open(data.join("tengen.db")).unwrap();
    let decided = decided_gates(&database);
    assert!(decided.iter().any(|gate| gate.state == "promoted"));
    for gate in &decided {
        check_decision(&database, gate);
    }
}

/// A decided gate as the database has it.
#[derive(Debug)]
struct Stored {
    gate: u32,
    state: String,
    pairs_wanted: u32,
    pairs_target: u32,
    tally: [u32; 4],
    pair_scores: [u32; 5],
    llr: f64,
    openings: Vec<Value>,
    reason: String,
}

fn decided_gates(database: &Connection) -> Vec<Stored> {
    let sql = "SELECT gate, state, pairs_wanted, pairs_target, pairs, wins, draws, losses, pair_scores, llr, openings, \
               reason FROM gates WHERE decided_ms IS NOT NULL ORDER BY gate";
    let json = |text: String| serde_json::from_str(&text).unwrap();
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        Ok(Stored {
            gate: row.get(0)?,
            state: row.get(1)?,
            pairs_wanted: row.get(2)?,
            pairs_target: row.get(3)?,
            tally: [row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?],
            pair_scores: serde_json::from_str(&row.get::<_, String>(8)?).unwrap(),
            llr: row.get(9)?,
            openings: json(row.get(10)?),
            reason: row.get(11)?,
        })
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// The decision once more, from the log and the definition alone.
fn check_decision(database: &Connection, stored: &Stored) {
    let rule = SprtRule::new(stored.pairs_wanted * 2, Unit::Score, [0.5, 0.65], [0.05, 0.05]).unwrap();
    let (lower, upper) = rule.bounds();
    let sql = "SELECT lease, pair, leg, score FROM gate_log WHERE gate = ?1 AND standing = 'counts' ORDER BY sequence";
    let mut statement = database.prepare(sql).unwrap();
    let mut rows = statement.query([stored.gate]).unwrap();
    let mut halves: BTreeMap<(Vec<u8>, u32), usize> = BTreeMap::new();
    let mut scores = [0; 5];
    let mut counted = BTreeSet::new();
    let mut llr = 0.0;
    while let Some(row) = rows.next().unwrap() {
        let (lease, pair): (Vec<u8>, u32) = (row.get(0).unwrap(), row.get(1).unwrap());
        if pair >= stored.pairs_target || llr >= upper || llr <= lower {
            continue;
        }
        let half_points = match row.get::<_, String>(3).unwrap().as_str() {
            "win" => 2,
            "draw" => 1,
            _ => 0,
        };
        match halves.remove(&(lease.clone(), pair)) {
            None => {
                halves.insert((lease, pair), half_points);
            }
            Some(first) => {
                assert!(counted.insert(pair), "pair {pair} counts twice");
                scores[first + half_points] += 1;
                llr = log_likelihood_ratio(scores, Unit::Score, 0.5, 0.65);
            }
        }
    }
    assert_eq!(scores, stored.pair_scores, "{stored:?}");
    assert!((llr - stored.llr).abs() < 1e-9, "{llr} from the log of {stored:?}");
    assert_eq!(stored.tally[0], scores.iter().sum::<u32>());
    assert_eq!(
        stored.tally[1] * 2 + stored.tally[2],
        (0..5).map(|i| i as u32 * scores[i]).sum::<u32>()
    );
    if stored.state == "promoted" {
        assert!(llr >= upper, "{stored:?}");
    } else {
        assert!(llr <= lower || stored.tally[0] == stored.pairs_target, "{stored:?}");
    }
    let main: BTreeSet<String> = stored.openings[..stored.pairs_target as usize]
        .iter()
        .map(Value::to_string)
        .collect();
    assert_eq!(main.len(), stored.pairs_target as usize, "an opening came twice");
    assert!(stored.reason.contains("log-likelihood ratio"), "{}", stored.reason);
}

/// Gates between a network and itself.
const GATES: u32 = 40;
/// Pairs of each.
const PAIRS: u32 = 24;

/// The families of tests that the soak consists of share this chance of a false alarm among them.
const FALSE_ALARM: f64 = 0.001;
/// How many there are: overall, in seat 0, in seat 1, by opening, by seed, and among the decisions.
const FAMILIES: f64 = 6.0;

/// One network against itself, its moves sampled throughout, so that the two games of a pair are two draws from one
/// distribution. Whatever tells candidate and champion apart is a fault of match play or of counting. Every statement is
/// an exact sign test: of the comparisons that are not tied, each is as likely to favour the candidate as the champion.
/// Within a family the level is divided by its number of tests (Bonferroni), so that a fault-free soak fails with
/// probability at most 0.1 %.
#[test]
fn gates_between_a_network_and_itself_favour_nobody() {
    tengen_inference::forbid_telemetry();
    tengen_inference::init(None).unwrap();
    let AnyGame::ConnectFour(game) = AnyGame::parse("connect-four").unwrap() else {
        panic!("connect-four is registered as another game");
    };
    let model = tiny_network();
    let soaked: Vec<Soaked> = (0..GATES).map(|gate| soak(&game, &model, gate)).collect();
    let faults = biases(&soaked);
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    // The tests can fail: one in four of the candidate's losses taken for a win is found, overall and in both seats.
    let mut losses = 0;
    let bent: Vec<Soaked> = soaked
        .into_iter()
        .map(|mut gate| {
            for score in gate.pairs.iter_mut().flat_map(|pair| &mut pair.scores) {
                losses += u32::from(*score == 0);
                if *score == 0 && losses % 4 == 0 {
                    *score = 2;
                }
            }
            gate
        })
        .collect();
    let found = biases(&bent).join("\n");
    for family in ["overall", "seat 0", "seat 1"] {
        assert!(found.contains(family), "{family} is not in\n{found}");
    }
}

/// A gate of the soak.
struct Soaked {
    /// The candidate passed, failed at the lower bound, or neither.
    ended: Option<Decision>,
    pairs: Vec<Pair>,
}

/// What a pair brought.
struct Pair {
    opening: Vec<Action>,
    /// The candidate's half points: with seat 0, and with seat 1.
    scores: [u8; 2],
}

fn tiny_network() -> Arc<ModelBytes> {
    let game = AnyGame::parse("connect-four").unwrap();
    let config = Config {
        blocks: 1,
        channels: 8,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config).unwrap();
    let metadata = Metadata {
        run: "soak".to_owned(),
        game: game.spec().id.clone(),
        rules_fingerprint: game.rules_fingerprint(),
        feature_fingerprint: game.feature_fingerprint(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        ..Metadata::of_shape(&shape)
    };
    ModelBytes::new(write_onnx(&shape, &random_weights(&shape, 5), &metadata).unwrap())
}

/// The pairs of these openings, their moves sampled to the end.
fn pairs_from(openings: &[Opening]) -> Vec<MatchGame> {
    let pair = |(pair, opening): (usize, &Opening)| {
        [0, 1].map(|seat0_model| MatchGame {
            pair: pair as u32,
            opening: opening.plies.clone(),
            sampled_plies: u32::MAX,
            seat0_model,
        })
    };
    openings.iter().enumerate().flat_map(pair).collect()
}

/// A lease of a match of the network with itself.
fn lease_of(games: Vec<MatchGame>, model: &Arc<ModelBytes>, number: u32) -> Arc<Lease> {
    let order = Order {
        lease: tengen_records::LeaseId(u128::from(number) + 1),
        models: vec![model.id(), model.id()],
        settings: Settings {
            simulations: 4,
            noise_fraction: 0.0,
            temperature: 0.0,
            ..Settings::default()
        },
        settings_revision: 1,
        seed: 1_000 + u64::from(number),
        plan: Plan::Match { games },
    };
    let models = vec![Arc::clone(model), Arc::clone(model)];
    Lease::new(RunId::new("soak").unwrap(), order, models).unwrap()
}

/// Plays one gate as an actor would, and counts it as a coordinator would.
fn soak(game: &ConnectFour, model: &Arc<ModelBytes>, number: u32) -> Soaked {
    let openings = draw_openings(game, PAIRS as usize, u64::from(number));
    assert_eq!(openings.len(), PAIRS as usize);
    let games = pairs_from(&openings);
    let lease = lease_of(games.clone(), model, number);
    let mut gate = Gate::new(GateId(number + 1), CANDIDATE, symmetric_match());
    let holder = LeaseId([1; 16]);
    gate.assign(&(0..PAIRS).collect::<Vec<_>>(), holder, ActorId(1));
    let mut ended = None;
    let mut scores = vec![[0; 2]; PAIRS as usize];
    let options = DriverOptions {
        games: 2 * PAIRS as usize,
        ..DriverOptions::default()
    };
    Driver::new(game.clone(), SessionEvaluator::new(SessionOptions::default()), options)
        .play(&lease, |record: Record| {
            let played = &games[record.id.index as usize];
            let score = match record.outcome.winner {
                None => GameScore::Draw,
                Some(winner) if winner.index() == played.seat0_model => GameScore::Win,
                Some(_) => GameScore::Loss,
            };
            let leg = Leg::BOTH[played.seat0_model];
            let standing = gate.standing(holder, played.pair);
            assert_eq!(standing == Standing::Counts, ended.is_none());
            gate.append(LogEntry {
                lease: holder,
                pair: played.pair,
                leg,
                score,
                standing,
            });
            scores[played.pair as usize][played.seat0_model] = half_points(score);
            if ended.is_none() {
                ended = gate.decision();
            }
        })
        .unwrap();
    let pairs = openings.into_iter().zip(scores).map(|(opening, scores)| Pair {
        opening: opening.plies,
        scores,
    });
    // Undecided at the end is a rejection that no bound was reached for.
    let (lower, _) = symmetric_rule().bounds();
    let at_a_bound = gate.decision() == Some(Decision::Promote) || gate.evidence().llr.is_some_and(|llr| llr <= lower);
    Soaked {
        ended: ended.filter(|_| at_a_bound),
        pairs: pairs.collect(),
    }
}

const CANDIDATE: Candidate = Candidate {
    model: ModelId([1; 32]),
    iteration: 1,
};

/// A test whose two bounds are as far from an even score, so that equals pass it as often as they fail.
fn symmetric_rule() -> SprtRule {
    SprtRule::new(PAIRS * 2, Unit::Score, [0.4, 0.6], [0.2, 0.2]).unwrap()
}

fn symmetric_match() -> MatchPlan {
    MatchPlan {
        opponent: ModelId([0; 32]),
        rule: symmetric_rule().into(),
        openings: Openings::distinct(PAIRS),
    }
}

fn half_points(score: GameScore) -> u8 {
    match score {
        GameScore::Win => 2,
        GameScore::Draw => 1,
        GameScore::Loss => 0,
    }
}

/// What favours a side more than chance would, a sentence each.
fn biases(soaked: &[Soaked]) -> Vec<String> {
    let pairs = || soaked.iter().flat_map(|gate| &gate.pairs);
    let both = |pair: &Pair| i32::from(pair.scores[0]) + i32::from(pair.scores[1]) - 2;
    // Of a pair in which one side won with this seat and the other did not: who was it?
    let with_seat =
        |seat: usize| move |pair: &Pair| i32::from(pair.scores[seat] == 2) - i32::from(pair.scores[1 - seat] == 0);
    let mut by_opening: BTreeMap<&[Action], Vec<i32>> = BTreeMap::new();
    for pair in pairs() {
        by_opening.entry(&pair.opening).or_default().push(both(pair));
    }
    let decisions = soaked.iter().map(|gate| match gate.ended {
        Some(Decision::Promote) => 1,
        Some(Decision::Reject) => -1,
        None => 0,
    });
    let of_opening = by_opening
        .into_iter()
        .map(|(opening, signs)| (format!("opening {opening:?}"), signs));
    let of_seed = soaked
        .iter()
        .enumerate()
        .map(|(seed, gate)| (format!("seed {seed}"), gate.pairs.iter().map(both).collect()));
    let families: [Vec<(String, Vec<i32>)>; 6] = [
        vec![("overall".to_owned(), pairs().map(both).collect())],
        vec![("seat 0".to_owned(), pairs().map(with_seat(0)).collect())],
        vec![("seat 1".to_owned(), pairs().map(with_seat(1)).collect())],
        of_opening.collect(),
        of_seed.collect(),
        vec![("decisions".to_owned(), decisions.collect())],
    ];
    let mut found = Vec::new();
    for family in families {
        let level = FALSE_ALARM / FAMILIES / family.len() as f64;
        let mut least = 1.0f64;
        for (what, signs) in &family {
            let (up, down) = signs.iter().fold((0, 0), |(up, down), sign| match sign.signum() {
                1 => (up + 1, down),
                -1 => (up, down + 1),
                _ => (up, down),
            });
            let p = sign_test(up, down);
            least = least.min(p);
            if p < level {
                found.push(format!(
                    "{what}: {up} for the candidate, {down} for the champion (p = {p:.2e})"
                ));
            }
            if family.len() == 1 {
                println!("{what}: {up} for the candidate, {down} for the champion, p = {p:.3}");
            }
        }
        if family.len() > 1 {
            println!(
                "{} tests like {}: least p = {least:.4}, level {level:.1e}",
                family.len(),
                family[0].0
            );
        }
    }
    found
}

/// Chance that a fair coin falls at least as unevenly, either way.
fn sign_test(up: u32, down: u32) -> f64 {
    let (n, k) = (up + down, up.min(down));
    let mut log_choose = 0.0;
    let mut tail = 0.0;
    for i in 0..=k {
        tail += (log_choose - f64::from(n) * std::f64::consts::LN_2).exp();
        log_choose += (f64::from(n - i) / f64::from(i + 1)).ln();
    }
    (2.0 * tail).min(1.0)
}

#[test]
fn the_sign_test_is_the_binomials() {
    assert_eq!(sign_test(0, 0), 1.0);
    assert!((sign_test(0, 10) - 2.0 / 1024.0).abs() < 1e-12);
    assert!((sign_test(9, 1) - 22.0 / 1024.0).abs() < 1e-12);
    assert_eq!(sign_test(5, 5), 1.0);
}
