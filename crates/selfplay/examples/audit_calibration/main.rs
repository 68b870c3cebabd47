//! Measures what tells an honest game from one of another network or of broken hardware: the figures of docs/audit.md.
//!
//! `cargo run --release -p tengen-selfplay --example audit_calibration -- [POSITIONS] [MODELS_DIR]`
//!
//! POSITIONS honest positions are audited for each game and way of batching. MODELS_DIR is the folder `models` of a
//! Connect Four run: its networks, ordered by iteration, are taken as each other's neighbours. Those that come in int8 are
//! measured in it, too, in tables of their own.

mod int8;
mod networks;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Game, GameVisitor, State};
use tengen_inference::{Device, Outputs, Session, SessionOptions, softmax};
use tengen_records::Record;
use tengen_search::Settings;
use tengen_selfplay::DriverOptions;
use tengen_selfplay::audit::{Difference, TOLERANCE_CPU, TOLERANCE_OTHER, Tolerances, audit, draw_plies, evaluator};
use tengen_selfplay::offline::{OfflineOptions, selfplay_offline};

use networks::{Network, trained};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Positions of one game that an audit looks at.
const AUDITED: usize = 4;
/// Networks that are tried of each kind of fault.
const TRIES: u64 = 24;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let positions: usize = arguments.next().unwrap_or("4000".to_owned()).parse()?;
    let folder = arguments.next();
    tengen_inference::init(None)?;
    let columns = Network::new("connect-four", 3, 32, 11)?;
    let caro5 = Network::new("caro5", 2, 16, 12)?;
    let trained = folder
        .map(|folder| trained(Path::new(&folder)))
        .transpose()?
        .unwrap_or_default();

    println!("| honest | positions | median | 99.9 % | greatest | at or beyond {TOLERANCE_CPU:.0e} |\n|-|-|-|-|-|-|");
    for network in [&columns, &columns.lively(30.0), &caro5, &caro5.lively(30.0)]
        .into_iter()
        .chain(trained.last())
    {
        honest(network, positions)?;
    }
    println!(
        "\n| wrong | audited games | caught at {TOLERANCE_CPU:.0e} | caught at {TOLERANCE_OTHER:.0e} | median of the worst \
         difference |\n|-|-|-|-|-|"
    );
    for network in [&columns, &columns.lively(30.0), &caro5.lively(30.0)]
        .into_iter()
        .chain(trained.last())
    {
        wrong(network)?;
    }
    for pair in trained.windows(2) {
        let games = play(&pair[1], 100, 64, 64, 5)?;
        report(
            &format!("{} instead of {}", pair[0].name, pair[1].name),
            &[(&pair[1], &pair[0])],
            &games,
            0.0,
        )?;
    }
    int8::tables(&trained, positions)
}

fn play(network: &Network, games: u32, at_once: usize, batch_max: usize, seed: u64) -> Outcome<Vec<Record>> {
    let options = OfflineOptions {
        games,
        settings: Settings {
            simulations: 8,
            ..Settings::default()
        },
        random_plies_max: 4,
        seed,
        driver: DriverOptions {
            games: at_once,
            leaves_per_game: 1 + at_once % 2,
            batch_max,
            ..DriverOptions::default()
        },
        sessions: SessionOptions {
            device: Device::Cpu,
            intra_threads: 1,
            batch_max: batch_max.min(32),
        },
    };
    Ok(selfplay_offline(&network.game, Arc::clone(&network.model), &options)?)
}

/// Audits `plies` of a record with the network it should be of.
fn differences(network: &Network, record: &Record, plies: &[usize], with: &mut Auditor) -> Outcome<Vec<Difference>> {
    struct Visit<'a>(&'a Network, &'a Record, &'a [usize], &'a mut Auditor);
    impl GameVisitor for Visit<'_> {
        type Output = Outcome<Vec<Difference>>;
        fn visit<G: Game>(self, game: G) -> Self::Output {
            let models = [Arc::clone(&self.0.model)];
            Ok(audit(&game, self.1, self.2, &models, self.3)?)
        }
    }
    network.game.visit(Visit(network, record, plies, with))
}

type Auditor = tengen_selfplay::SessionEvaluator;

fn honest(network: &Network, positions: usize) -> Outcome<()> {
    let mut auditor = evaluator();
    for (at_once, batch_max) in [(1, 1), (7, 8), (64, 64)] {
        let mut found: Vec<f32> = Vec::new();
        let mut seed = 1;
        while found.len() < positions {
            for record in play(network, 2 * at_once as u32, at_once, batch_max, seed)? {
                let all: Vec<usize> = (0..record.plies.len()).collect();
                found.extend(
                    differences(network, &record, &all, &mut auditor)?
                        .iter()
                        .map(Difference::greatest),
                );
            }
            seed += 1;
        }
        line(network, &format!("batches up to {batch_max}"), &mut found);
    }
    let mut session = Session::load(network.model.bytes(), &SessionOptions::default())?;
    let mut found = restated(network, &mut session, positions)?;
    line(network, "any symmetry, batches of 32", &mut found);
    Ok(())
}

/// What audits find of games that `session` states anew, each position under any of its symmetries.
fn restated(network: &Network, session: &mut Session, positions: usize) -> Outcome<Vec<f32>> {
    let (mut found, mut rng) = (Vec::new(), Xoshiro256PlusPlus::seed_from_u64(3));
    let mut auditor = evaluator();
    while found.len() < positions {
        for mut record in play(network, 64, 64, 64, rng.random())? {
            restate(network, session, &mut record, &mut rng, Symmetries::Any, 0.0)?;
            let all: Vec<usize> = (0..record.plies.len()).collect();
            found.extend(
                differences(network, &record, &all, &mut auditor)?
                    .iter()
                    .map(Difference::greatest),
            );
        }
    }
    Ok(found)
}

fn line(network: &Network, how: &str, found: &mut [f32]) {
    found.sort_by(f32::total_cmp);
    let at = |share: f64| found[((found.len() - 1) as f64 * share) as usize];
    let tolerance = Tolerances::default().of(network.model.precision());
    let beyond = found.iter().filter(|&&difference| difference >= tolerance).count();
    println!(
        "| {}, {how} | {} | {:.1e} | {:.1e} | {:.1e} | {beyond} |",
        network.name,
        found.len(),
        at(0.5),
        at(0.999),
        at(1.0)
    );
}

#[derive(Clone, Copy)]
enum Symmetries {
    Identity,
    Any,
}

/// Makes the record state what `session` sees, as if its network had been used; `noise` is added to every logit.
fn restate(
    network: &Network,
    session: &mut Session,
    record: &mut Record,
    rng: &mut Xoshiro256PlusPlus,
    symmetries: Symmetries,
    noise: f32,
) -> Outcome<()> {
    struct Visit<'a>(
        &'a mut Session,
        &'a mut Record,
        &'a mut Xoshiro256PlusPlus,
        Symmetries,
        f32,
    );
    impl GameVisitor for Visit<'_> {
        type Output = Outcome<()>;
        fn visit<G: Game>(self, game: G) -> Self::Output {
            let Visit(session, record, rng, symmetries, noise) = self;
            let spec = game.spec();
            let mut state = game.start();
            for &action in &record.opening {
                state.apply(action)?;
            }
            let (mut planes, mut playable) = (Vec::new(), Vec::new());
            for ply in &mut record.plies {
                let search = ply.search.as_mut().ok_or("self-play searches every ply")?;
                search.symmetry = match symmetries {
                    Symmetries::Identity => 0,
                    Symmetries::Any => rng.random_range(0..spec.symmetries.len() as u16),
                };
                let from = planes.len();
                planes.resize(from + spec.planes_len(), 0);
                state
                    .transform(&spec.symmetries[usize::from(search.symmetry)])
                    .planes(&mut planes[from..]);
                let mut actions = Vec::new();
                state.playable(&mut actions);
                playable.push(actions);
                state.apply(ply.action)?;
            }
            let mut outputs = Outputs::default();
            session.run(&planes, record.plies.len(), &mut outputs)?;
            for (n, (ply, playable)) in record.plies.iter_mut().zip(&playable).enumerate() {
                let search = ply.search.as_mut().ok_or("self-play searches every ply")?;
                let image = &spec.symmetries[usize::from(search.symmetry)].actions;
                let mut noisy = |logit: f32| {
                    logit
                        + if noise > 0.0 {
                            rng.random_range(-noise..noise)
                        } else {
                            0.0
                        }
                };
                let (policy, wdl) = outputs.position(n);
                let logits = playable
                    .iter()
                    .map(|action| noisy(policy[usize::from(image[action.index()])]));
                let logits: Vec<f32> = logits.collect();
                let mut priors: Vec<_> = playable.iter().copied().zip(softmax(&logits)).collect();
                priors.sort_by(|left, right| right.1.total_cmp(&left.1));
                priors.truncate(tengen_records::NET_POLICY_TOP_MAX);
                search.net_policy_top = priors;
                let wdl = softmax(&wdl.map(&mut noisy));
                search.net_wdl = [wdl[0], wdl[1], wdl[2]];
            }
            Ok(())
        }
    }
    network.game.visit(Visit(session, record, rng, symmetries, noise))
}

/// Audits games of `named` that were really played by other networks.
fn wrong(named: &Network) -> Outcome<()> {
    let games = play(named, 50, 50, 64, 4)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    let other = named.another(77)?;
    report(
        &format!("{}: a random network", named.name),
        &[(named, &other)],
        &games,
        0.0,
    )?;
    for length in [0.2, 0.02, 0.002, 0.0002] {
        let stepped: Vec<Network> = (0..TRIES)
            .map(|_| named.step(length, &mut rng))
            .collect::<Outcome<_>>()?;
        let pairs: Vec<_> = stepped.iter().map(|stepped| (named, stepped)).collect();
        report(
            &format!("{}: a step of length {length}", named.name),
            &pairs,
            &games[..10],
            0.0,
        )?;
    }
    for (what, bits) in [
        ("sign", 31..=31),
        ("exponent", 23..=30),
        ("upper mantissa", 16..=22),
        ("lower mantissa", 0..=15),
    ] {
        let flipped = (0..2 * TRIES).map(|_| named.flipped(bits.clone(), &mut rng));
        let flipped: Vec<Network> = flipped.collect::<Outcome<_>>()?;
        let pairs: Vec<_> = flipped.iter().map(|flipped| (named, flipped)).collect();
        report(
            &format!("{}: a flipped {what} bit", named.name),
            &pairs,
            &games[..10],
            0.0,
        )?;
    }
    for noise in [0.1, 0.01, 0.001, 0.0001] {
        report(
            &format!("{}: logits off by up to {noise}", named.name),
            &[(named, named)],
            &games,
            noise,
        )?;
    }
    Ok(())
}

/// The greatest differences that audits found in games, a game each, in ascending order.
struct Worst {
    differences: Vec<f32>,
    /// Games that the wrong network could not play at all.
    unplayable: usize,
}

impl Worst {
    /// The share of the games that fail at this tolerance, in percent.
    fn caught(&self, tolerance: f32) -> f64 {
        let caught = self.differences.iter().filter(|&&difference| difference >= tolerance);
        100.0 * caught.count() as f64 / self.differences.len().max(1) as f64
    }

    fn median(&self) -> f32 {
        let middle = self.differences.get(self.differences.len() / 2);
        middle.copied().unwrap_or_default()
    }

    /// How many games there were.
    fn games(&self) -> String {
        let audited = self.differences.len();
        match self.unplayable {
            0 => audited.to_string(),
            unplayable => format!("{audited} ({unplayable} could not be played)"),
        }
    }
}

/// Restates `games` by the second network of each pair and audits them with the first.
fn worst(pairs: &[(&Network, &Network)], games: &[Record], noise: f32) -> Outcome<Worst> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let mut auditor = evaluator();
    let (mut greatest, mut unplayable) = (Vec::new(), 0);
    for (named, real) in pairs {
        let mut session = Session::load(real.model.bytes(), &SessionOptions::default())?;
        for record in games {
            let mut record = record.clone();
            // Outputs that are not finite end the actor's game: there is no record to audit.
            if restate(named, &mut session, &mut record, &mut rng, Symmetries::Identity, noise).is_err() {
                unplayable += 1;
                continue;
            }
            let plies = draw_plies(&record, AUDITED, rng.random());
            let found = differences(named, &record, &plies, &mut auditor)?;
            greatest.push(found.iter().map(Difference::greatest).fold(0.0, f32::max));
        }
    }
    greatest.sort_by(f32::total_cmp);
    Ok(Worst {
        differences: greatest,
        unplayable,
    })
}

/// What audits find of such games, as a row.
fn report(what: &str, pairs: &[(&Network, &Network)], games: &[Record], noise: f32) -> Outcome<()> {
    let worst = worst(pairs, games, noise)?;
    println!(
        "| {what} | {} | {:.1} % | {:.1} % | {:.1e} |",
        worst.games(),
        worst.caught(TOLERANCE_CPU),
        worst.caught(TOLERANCE_OTHER),
        worst.median()
    );
    Ok(())
}
