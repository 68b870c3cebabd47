//! Self-play of a random network in this process, every record held against the rules as the coordinator does.

use std::sync::Arc;

use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_inference::{Device, SessionOptions};
use tengen_network::{Config, Metadata, Shape, random_weights, read_metadata, write_onnx};
use tengen_records::{Endings, Expected, LeaseId, Record, RunId, Work};
use tengen_search::Settings;
use tengen_selfplay::offline::{OFFLINE_RUN, OfflineOptions, selfplay_offline};
use tengen_selfplay::{DriverOptions, ModelBytes};

use super::{CheckArgs, Group, Report, SEED};

/// The games of that self-play.
pub(super) struct Played {
    /// What its network's file says of itself.
    pub(super) network: Metadata,
    pub(super) records: Vec<Record>,
    /// What the records were held against.
    pub(super) expected: Expected,
}

pub(super) fn measure(args: &CheckArgs, report: &mut Report) -> anyhow::Result<Played> {
    let game = &args.game.0;
    report.begin(format!("{} games of self-play by a random network", args.games));
    tengen_inference::init(None)?;
    let model = random_network(game)?;
    let records = selfplay_offline(game, Arc::clone(&model), &options(args))?;
    let expected = expected(args, &model)?;
    let positions = game.visit(Records {
        records: &records,
        expected: &expected,
    })?;
    report.line(
        Group::Training,
        "self-play gives data without illegal moves",
        format!(
            "{} games of {positions} positions by a random network of {} planes in ONNX Runtime: every record passed the \
             coordinator's check",
            records.len(),
            game.spec().planes.len(),
        ),
    );
    Ok(Played {
        network: read_metadata(model.bytes())?,
        records,
        expected,
    })
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

fn options(args: &CheckArgs) -> OfflineOptions {
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
    expected: &'a Expected,
}

impl GameVisitor for Records<'_> {
    type Output = anyhow::Result<u32>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut positions = 0;
        for record in self.records {
            let decoded = tengen_records::decode(&tengen_records::encode(record))
                .map_err(|rejection| anyhow::anyhow!("record {}: {rejection}", record.id))?;
            let checked = tengen_records::check(&game, &decoded, self.expected)
                .map_err(|rejection| anyhow::anyhow!("record {}: {rejection}", record.id))?;
            positions += checked.positions;
        }
        Ok(positions)
    }
}
