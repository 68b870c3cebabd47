//! `tengen rules check`: the verification checklist of a rules integration, each line with what was measured.
//!
//! Training itself is not run here: of its lines this measures what one process can, self-play of a random network
//! through ONNX Runtime with every record checked, and says so.

use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use tengen_games::conformance::{self, Options, Summary};
use tengen_games::{
    Action, AnyGame, Game, GameVisitor, State, notation, perft_moves, random_opening, rules_fingerprint,
};
use tengen_inference::{Device, SessionOptions};
use tengen_network::{Config, Metadata, Shape, random_weights, write_onnx};
use tengen_records::{Endings, Expected, LeaseId, Record, RunId, Work};
use tengen_search::Settings;
use tengen_selfplay::offline::{OFFLINE_RUN, OfflineOptions, selfplay_offline};
use tengen_selfplay::{DriverOptions, ModelBytes};

use super::{AnyGameArg, Output};

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Game, for example `hex?size=9`; `tengen rules list` names them
    game: AnyGameArg,
    /// Games of self-play with a random network
    #[arg(long, value_name = "N", default_value_t = 10)]
    games: u32,
    /// Root visits of each search of those games
    #[arg(long, value_name = "S", default_value_t = 4)]
    simulations: u32,
    #[command(flatten)]
    output: Output,
}

/// Random games for the laws and for replaying.
const RANDOM_GAMES: u32 = 2_000;
const REPLAYED_GAMES: u32 = 200;
const SEED: u64 = 1;

/// One line of the checklist.
struct Line {
    group: &'static str,
    item: &'static str,
    measured: String,
}

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let mut lines = args.game.0.visit(Rules)?;
    lines.extend(training(args)?);
    lines.extend(args.game.0.visit(Reproducibility)?);
    if args.output.json {
        let lines: Vec<Value> = lines
            .iter()
            .map(|line| json!({ "group": line.group, "item": line.item, "measured": line.measured }))
            .collect();
        println!("{}", json!({ "game": args.game.0.spec().id, "lines": lines }));
        return Ok(());
    }
    for line in &lines {
        println!("{:<15} {}\n{:16}{}", line.group, line.item, "", line.measured);
    }
    Ok(())
}

/// The rules: counts of the start, laws over random games, stable results.
struct Rules;

impl GameVisitor for Rules {
    type Output = anyhow::Result<Vec<Line>>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut legal = Vec::new();
        game.start().legal(&mut legal);
        let moves = perft_moves(&game, &game.start(), 1);
        let options = Options {
            games: RANDOM_GAMES,
            deep_checks: 2_000,
            ..Options::default()
        };
        let summary = conformance::check(&game, &options).context("a law is broken")?;
        let Summary {
            games,
            plies,
            deep_checks,
            results: [first, second, draws],
        } = summary;
        Ok(vec![
            line(
                "rules",
                "the start has the correct number of legal moves",
                format!(
                    "{} legal actions, {moves} moves; compare with a published count",
                    legal.len()
                ),
            ),
            line(
                "rules",
                "edges, captures, blocking, forbidden moves, pass and no move",
                format!(
                    "every law held over {games} random games of {plies} plies, {deep_checks} positions under {} symmetries; \
                 illegal actions were refused and changed nothing",
                    game.spec().symmetries.len()
                ),
            ),
            line(
                "rules",
                "the winner does not change after the end",
                format!(
                    "{games} ends, nothing was legal after any; seat 0 won {first}, seat 1 {second}, {draws} draws"
                ),
            ),
        ])
    }
}

fn line(group: &'static str, item: &'static str, measured: String) -> Line {
    Line { group, item, measured }
}

/// Self-play by a random network, every record held against the rules.
fn training(args: &CheckArgs) -> anyhow::Result<Vec<Line>> {
    let game = &args.game.0;
    let actions = game.spec().actions.len();
    tengen_inference::init(None)?;
    let model = random_network(game)?;
    let records = selfplay_offline(game, Arc::clone(&model), &selfplay_options(args))?;
    let positions = game.visit(Records {
        records: &records,
        expected: expected(args, &model)?,
    })?;
    let never = game.visit(NeverLegal);
    Ok(vec![
        line(
            "training",
            "self-play gives data without illegal moves",
            format!(
                "{} games of {positions} positions by a random network in ONNX Runtime: every record passed the \
                 coordinator's check",
                records.len(),
            ),
        ),
        line(
            "training",
            "training reads the data and the next generation loads it",
            format!(
                "a network of {} planes and {actions} actions was written, loaded and played with; training itself is \
                 measured by a run: `tengen up`, then `tengen status`",
                game.spec().planes.len(),
            ),
        ),
        line(
            "training",
            "the policy has no weight on what is always illegal",
            format!(
                "{never} of {actions} actions were legal in no position of {RANDOM_GAMES} random games; illegal actions \
                 are masked before the search sees them",
            ),
        ),
    ])
}

fn random_network(game: &AnyGame) -> anyhow::Result<Arc<ModelBytes>> {
    let config = Config {
        blocks: 1,
        channels: 16,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config)?;
    let metadata = Metadata {
        game: game.spec().id.clone(),
        rules_fingerprint: game.rules_fingerprint(),
        feature_fingerprint: game.feature_fingerprint(),
        ..Metadata::of_shape(&shape)
    };
    let bytes = write_onnx(&shape, &random_weights(&shape, SEED), &metadata)?;
    Ok(ModelBytes::new(bytes))
}

fn selfplay_options(args: &CheckArgs) -> OfflineOptions {
    let driver = DriverOptions::default();
    OfflineOptions {
        games: args.games,
        settings: Settings {
            simulations: args.simulations,
            ..Settings::default()
        },
        random_plies_max: 0,
        seed: SEED,
        sessions: SessionOptions {
            device: Device::Cpu,
            intra_threads: 1,
            batch_max: driver.batch_max,
        },
        driver,
    }
}

/// What the coordinator would hold these records against.
fn expected(args: &CheckArgs, model: &ModelBytes) -> anyhow::Result<Expected> {
    let game = &args.game.0;
    Ok(Expected {
        run_id: RunId::new(OFFLINE_RUN)?,
        game_id: game.spec().id.clone(),
        rules_fingerprint: game.rules_fingerprint(),
        lease: LeaseId(u128::from(SEED)),
        models: vec![model.id()],
        players: None,
        settings_revision: 0,
        lease_seed: SEED,
        work: Work::SelfPlay {
            index_end: args.games,
            random_plies_max: 0,
        },
        endings: Endings::default(),
    })
}

/// Checks every record as the coordinator does; the number of positions.
struct Records<'a> {
    records: &'a [Record],
    expected: Expected,
}

impl GameVisitor for Records<'_> {
    type Output = anyhow::Result<u32>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut positions = 0;
        for record in self.records {
            let decoded = tengen_records::decode(&tengen_records::encode(record))
                .map_err(|rejection| anyhow::anyhow!("record {}: {rejection}", record.id))?;
            let checked = tengen_records::check(&game, &decoded, &self.expected)
                .map_err(|rejection| anyhow::anyhow!("record {}: {rejection}", record.id))?;
            positions += checked.positions;
        }
        Ok(positions)
    }
}

/// How many actions were never legal in random games.
struct NeverLegal;

impl GameVisitor for NeverLegal {
    type Output = usize;

    fn visit<G: Game>(self, game: G) -> usize {
        let mut seen = vec![false; game.spec().actions.len()];
        let mut legal = Vec::new();
        for actions in random_games(&game, RANDOM_GAMES) {
            let mut state = game.start();
            for action in actions {
                state.legal(&mut legal);
                legal.iter().for_each(|action| seen[action.index()] = true);
                if state.apply(action).is_err() {
                    break;
                }
            }
        }
        seen.into_iter().filter(|seen| !seen).count()
    }
}

/// Seeded random games, each cut before the action that would end it.
fn random_games<G: Game>(game: &G, games: u32) -> impl Iterator<Item = Vec<Action>> {
    use rand::SeedableRng;
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let plies_max = game.spec().plies_max as u32;
    (0..games).map(move |_| random_opening(game, plies_max, &mut rng))
}

/// Names, fingerprints, and replaying from the notation.
struct Reproducibility;

impl GameVisitor for Reproducibility {
    type Output = anyhow::Result<Vec<Line>>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut plies = 0;
        for actions in random_games(&game, REPLAYED_GAMES) {
            let words = notation::words(&game, &game.start(), &actions);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (replayed, _) = notation::play(&game, &game.start(), &words)?;
            ensure!(replayed == actions, "the words {words:?} do not give back {actions:?}");
            plies += actions.len();
        }
        let group = "reproducibility";
        Ok(vec![
            line(
                group,
                "rules, configuration and board size are saved",
                format!(
                    "every record and run carries `{}` and the fingerprint {}",
                    game.spec().id,
                    rules_fingerprint(&game)
                ),
            ),
            line(
                group,
                "a complete game can be replayed",
                format!(
                    "{REPLAYED_GAMES} random games of {plies} plies were written as moves and read back, action for action"
                ),
            ),
            line(
                group,
                "old rules are not mixed in",
                format!(
                    "another fingerprint than {} is refused by run, record check and model",
                    &rules_fingerprint(&game).to_string()[..12]
                ),
            ),
        ])
    }
}
