//! The sequential test against an independent computation, and gates of every kind against what they promise.

use std::io::Write;
use std::process::{Command, Stdio};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_control::{
    Candidate, Decision, FixedRule, GameScore, Gate, GateId, LeaseId, Leg, LogEntry, MatchPlan, MatchRule, ModelId,
    Needed, Openings, SprtRule, Standing, Unit, log_likelihood_ratio,
};

/// Lines `unit lower upper n0 n1 n2 n3 n4 llr`, the last one as `llr_reference.py` computes it.
const GOLDEN: &str = include_str!("golden/llr.txt");

/// The greatest difference from the reference.
const TOLERANCE: f64 = 1e-9;

/// The question of a golden line, and its answer.
fn golden() -> impl Iterator<Item = (&'static str, f64)> {
    let split = |line: &'static str| line.rsplit_once(' ').expect("a question and its answer");
    GOLDEN
        .lines()
        .map(split)
        .map(|(question, llr)| (question, llr.parse().expect("a number")))
}

fn ours(question: &str) -> f64 {
    let words: Vec<&str> = question.split(' ').collect();
    let unit = match words[0] {
        "score" => Unit::Score,
        "elo" => Unit::Elo,
        "normalized-elo" => Unit::NormalizedElo,
        other => panic!("no unit {other}"),
    };
    let strength = |word: &str| word.parse().expect("a number");
    let pairs = std::array::from_fn(|i| words[3 + i].parse().expect("a count"));
    log_likelihood_ratio(pairs, unit, strength(words[1]), strength(words[2]))
}

#[test]
fn the_likelihood_ratio_of_1000_tallies_is_that_of_an_independent_computation() {
    assert_eq!(golden().count(), 1_000);
    for (question, expected) in golden() {
        let llr = ours(question);
        assert!(
            (llr - expected).abs() < TOLERANCE,
            "{question}: {llr} here, {expected} there"
        );
    }
}

#[test]
fn the_golden_likelihood_ratios_are_what_the_python_says() {
    let mut python = Command::new("python3")
        .args(["-c", include_str!("llr_reference.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there: make setup needs it");
    let mut stdin = python.stdin.take().expect("a pipe");
    let questions: String = golden().map(|(question, _)| format!("{question}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let output = python.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("all is read");
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<f64> = answers.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(answers.len(), 1_000);
    for ((question, expected), answer) in golden().zip(answers) {
        assert!(
            (answer - expected).abs() < TOLERANCE,
            "{question}: {answer} now, {expected} then"
        );
    }
}

/// Gates in each simulation.
const GATES: u32 = 10_000;

/// Share of the gates that promote a candidate which wins each game with `win`, and loses it else; every game goes through
/// a gate's log.
fn promoted(rule: impl Into<MatchRule>, win: f64, seed: u64) -> f64 {
    let rule = rule.into();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let promoted = (0..GATES)
        .filter(|_| play(rule, win, &mut rng) == Decision::Promote)
        .count();
    promoted as f64 / f64::from(GATES)
}

fn play(rule: MatchRule, win: f64, rng: &mut Xoshiro256PlusPlus) -> Decision {
    let candidate = Candidate {
        model: ModelId([1; 32]),
        iteration: 1,
    };
    let champion = MatchPlan {
        opponent: ModelId([0; 32]),
        rule,
        openings: Openings::distinct(rule.pairs()),
    };
    let mut gate = Gate::new(GateId(1), candidate, champion);
    for pair in 0..rule.pairs() {
        for leg in Leg::BOTH {
            let score = if rng.random::<f64>() < win {
                GameScore::Win
            } else {
                GameScore::Loss
            };
            gate.append(LogEntry {
                lease: LeaseId([0; 16]),
                pair,
                leg,
                score,
                standing: Standing::Counts,
            });
        }
        if let Some(decision) = gate.decision() {
            return decision;
        }
    }
    panic!("a gate whose pairs are all played is decided")
}

fn sprt(games_max: u32) -> SprtRule {
    SprtRule::new(games_max, Unit::Elo, [0.0, 35.0], [0.05, 0.05]).expect("a good rule")
}

/// 35 Elo without draws.
const STRONGER: f64 = 0.550_2;

// The shares expected below are those of a test that looks after every game. One that looks after every pair oversteps its
// bounds a little further and promotes a little less often; of 10,000 gates a share of 5 % deviates by 0.22 %, one of 77 %
// by 0.42 %.

#[test]
fn an_uncapped_sprt_promotes_one_equal_in_twenty() {
    // Far more games than any of these gates takes.
    let rate = promoted(sprt(8_000), 0.5, 1);
    println!("uncapped, equal: {:.2} % promoted", rate * 100.0);
    assert!((rate - 0.048).abs() < 0.006, "{rate}");
}

#[test]
fn a_capped_sprt_promotes_fewer_equals_and_some_stronger_ones_not() {
    let rate = promoted(sprt(800), 0.5, 2);
    println!("capped at 800 games, equal: {:.2} % promoted", rate * 100.0);
    assert!((rate - 0.039).abs() < 0.006, "{rate}");
    let rate = promoted(sprt(800), STRONGER, 3);
    println!("capped at 800 games, 35 Elo stronger: {:.2} % promoted", rate * 100.0);
    assert!((rate - 0.77).abs() < 0.02, "{rate}");
}

#[test]
fn fifty_five_percent_of_400_games_is_one_equal_in_forty() {
    let rule = FixedRule::new(400, Needed::AtLeast(0.55)).expect("a good rule");
    let rate = promoted(rule, 0.5, 4);
    println!("55 % of 400 games, equal: {:.2} % promoted", rate * 100.0);
    assert!((rate - 0.026).abs() < 0.005, "{rate}");
}
