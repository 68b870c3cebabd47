//! The games that a swarm sends: played at random, or those of a real run. Each is sent many times, addressed anew to the lease
//! that an actor holds: what the check binds to a lease is replaced, and everything else stays what it was.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use clap::Args;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::exchange::game_of;
use tengen_records::{Expected, Kind, LeaseId, ModelId, Record, RecordId, RunId, Work, encode, game_seed, testing};
use tengen_search::Settings;
use tengen_selfplay::{Order, Plan};

use crate::client::CoordinatorArgs;
use crate::games::source::{self, Extent, FileArgs, FileReader, FilterArgs, Pages};
use crate::games::verify::check_by;

/// Different games that are played at random.
const RANDOM_GAMES: usize = 64;
/// Different games of a run or of files at most.
const REPLAYED_GAMES_MAX: usize = 1_000;

/// Which games.
#[derive(Args, Debug)]
pub(super) struct GamesArgs {
    /// Game of the random games that are sent unless --records or --data names real ones
    #[arg(long, value_name = "GAME", default_value = "caro5?size=9", conflicts_with_all = ["records", "data"])]
    game: String,
    /// Send the self-play games of these files, as `tengen games export --format protobuf` writes them, again and again: the
    /// first 1,000
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "data")]
    records: Vec<PathBuf>,
    /// Send the self-play games of the run in this data folder again and again: the newest 1,000
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl GamesArgs {
    pub(super) async fn gather(&self) -> anyhow::Result<Games> {
        match &self.data {
            Some(data) => Games::replayed(of_run(data).await?),
            None if !self.records.is_empty() => Games::replayed(of_files(&self.records)?),
            None => Ok(Games::random(AnyGame::parse(&self.game)?)),
        }
    }
}

/// The newest self-play games of a run.
async fn of_run(data: &Path) -> anyhow::Result<Vec<Record>> {
    let run = CoordinatorArgs::of_folder(data).reach().await?;
    let mut pages = Pages::of(&run, &FilterArgs::self_play(), Extent::Whole).await?;
    let mut records = Vec::new();
    while records.len() < REPLAYED_GAMES_MAX
        && let Some(games) = pages.next().await?
    {
        for game in games.iter().filter(|game| !game.damaged) {
            records.push(source::record(game)?);
        }
    }
    Ok(records)
}

fn of_files(paths: &[PathBuf]) -> anyhow::Result<Vec<Record>> {
    let mut reader = FileReader::new(&FileArgs::default());
    let mut records = Vec::new();
    for path in paths {
        for game in reader.read(path)? {
            let record = game
                .record
                .with_context(|| format!("{}: {}", path.display(), game.label))?;
            records.push(record);
        }
    }
    Ok(records)
}

/// Where games come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// They were played at random.
    Random,
    /// They were played by a run.
    Replayed,
}

impl Origin {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Origin::Random => "random",
            Origin::Replayed => "replayed",
        }
    }
}

/// Games to send, all of one game.
#[derive(Debug)]
pub(super) struct Games {
    game: AnyGame,
    origin: Origin,
    records: Vec<Record>,
    /// How many were taken; they take turns, whoever sends them.
    taken: AtomicUsize,
}

impl Games {
    /// Random games, which carry what a search of some dozens of simulations leaves behind.
    pub(super) fn random(game: AnyGame) -> Games {
        struct Play;
        impl GameVisitor for Play {
            type Output = Vec<Record>;
            fn visit<G: Game>(self, game: G) -> Vec<Record> {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
                let expected = Expected {
                    work: Work::SelfPlay {
                        index_end: u32::MAX,
                        random_plies_max: 0,
                    },
                    ..testing::expected(&game, Kind::SelfPlay, &mut rng)
                };
                let mut records: Vec<Record> = (0..RANDOM_GAMES as u32)
                    .map(|index| testing::random_record(&game, &expected, index, &mut rng))
                    .collect();
                records.iter_mut().for_each(testing::thin_out);
                records
            }
        }
        Games {
            records: game.visit(Play),
            game,
            origin: Origin::Random,
            taken: AtomicUsize::new(0),
        }
    }

    /// The self-play games among these, which a lease of the same game takes as they are.
    fn replayed(mut records: Vec<Record>) -> anyhow::Result<Games> {
        records.retain(|record| record.kind == Kind::SelfPlay && record.positions() > 0);
        records.truncate(REPLAYED_GAMES_MAX);
        let first = records.first().context("there is no self-play game to send")?;
        let game = game_of(first)?;
        let id = &game.spec().id;
        if let Some(other) = records.iter().find(|record| record.game_id != *id) {
            bail!("games of {id} and of {}: one game at a time is sent", other.game_id);
        }
        let games = Games {
            game,
            origin: Origin::Replayed,
            records,
            taken: AtomicUsize::new(0),
        };
        games.check()?;
        Ok(games)
    }

    /// Whether a coordinator will take them.
    fn check(&self) -> anyhow::Result<()> {
        let order = Order {
            lease: LeaseId(1),
            models: vec![ModelId([1; 32])],
            settings: Settings::default(),
            settings_revision: 1,
            seed: 1,
            plan: Plan::SelfPlay {
                games: 1,
                random_plies_max: self.random_plies_max(),
            },
        };
        let run = RunId::new("bench")?;
        let rules = self.game.rules_fingerprint();
        let expected = order.expected(run.clone(), self.game.spec().id.clone(), rules);
        for record in &self.records {
            let addressed = addressed(record, &run, &order, 0);
            check_by(&self.game, &addressed, &expected)
                .with_context(|| format!("game {} cannot be sent again", record.id))?;
        }
        Ok(())
    }

    /// Canonical id of their game.
    pub(super) fn game_id(&self) -> &str {
        &self.game.spec().id
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// How many different ones there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The longest opening of any, plies, which the run has to allow.
    pub(super) fn random_plies_max(&self) -> u32 {
        let openings = self.records.iter().map(|record| record.opening.len());
        openings.max().unwrap_or(0) as u32
    }

    /// Positions of a game on average.
    pub(super) fn positions(&self) -> f64 {
        let positions: u32 = self.records.iter().map(Record::positions).sum();
        f64::from(positions) / self.records.len() as f64
    }

    /// The bytes of the next game, as number `index` of this order.
    pub(super) fn next(&self, run: &RunId, order: &Order, index: u32) -> Vec<u8> {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        encode(&addressed(&self.records[turn % self.records.len()], run, order, index))
    }
}

/// A game as if it had been played under this order.
fn addressed(record: &Record, run: &RunId, order: &Order, index: u32) -> Record {
    Record {
        id: RecordId {
            lease: order.lease,
            index,
        },
        run_id: run.clone(),
        models: order.models.clone(),
        settings_revision: order.settings_revision,
        seed: game_seed(order.seed, index),
        created_unix_ms: tengen_service::host::unix_ms(),
        ..record.clone()
    }
}

#[cfg(test)]
mod tests {
    use tengen_records::exchange::delimited;
    use tengen_records::{check, decode};

    use super::*;

    /// Records of random games of this kind, some of which have an opening.
    struct Played(Kind);

    impl GameVisitor for Played {
        type Output = Vec<Record>;
        fn visit<G: Game>(self, game: G) -> Vec<Record> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
            let expected = testing::expected(&game, self.0, &mut rng);
            (0..6)
                .map(|index| testing::random_record(&game, &expected, index, &mut rng))
                .collect()
        }
    }

    fn played(game: &str, kind: Kind) -> Vec<Record> {
        AnyGame::parse(game).unwrap().visit(Played(kind))
    }

    /// What is sent of files with these records.
    async fn of_file(records: &[Record]) -> anyhow::Result<Games> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games.binpb");
        let mut bytes = Vec::new();
        records.iter().for_each(|record| delimited::append(record, &mut bytes));
        tengen_service::files::write_atomic(&path, &bytes).unwrap();
        let args = GamesArgs {
            game: "hex".to_owned(),
            records: vec![path],
            data: None,
        };
        args.gather().await
    }

    fn order(games: &Games) -> Order {
        Order {
            lease: LeaseId(77),
            models: vec![ModelId([7; 32])],
            settings: Settings::default(),
            settings_revision: 3,
            seed: 99,
            plan: Plan::SelfPlay {
                games: 1_000,
                random_plies_max: games.random_plies_max(),
            },
        }
    }

    struct Checked<'a>(&'a Record, &'a Expected);

    impl GameVisitor for Checked<'_> {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            check(&game, self.0, self.1).unwrap();
        }
    }

    #[tokio::test]
    async fn real_games_are_sent_in_turn_with_their_plies_and_stand_the_check_of_the_lease_they_are_sent_for() {
        let mut records = played("tic-tac-toe", Kind::SelfPlay);
        // Of those without a position nothing would be trained on.
        let mut real = records.clone();
        real.retain(|record| record.positions() > 0);
        assert!(real.iter().any(|record| !record.opening.is_empty()));
        records.extend(played("tic-tac-toe", Kind::Match));
        let games = of_file(&records).await.unwrap();
        assert_eq!((games.len(), games.game_id()), (real.len(), "tic-tac-toe"));
        assert_eq!(games.origin(), Origin::Replayed);
        let (run, order) = (RunId::new("swarm").unwrap(), order(&games));
        let expected = order.expected(run.clone(), games.game_id().to_owned(), games.game.rules_fingerprint());
        for index in 0..2 * real.len() as u32 {
            let sent = decode(&games.next(&run, &order, index)).unwrap();
            games.game.visit(Checked(&sent, &expected));
            let one = &real[index as usize % real.len()];
            assert_eq!((&sent.opening, &sent.plies), (&one.opening, &one.plies));
            assert_eq!((sent.id.index, &sent.models), (index, &order.models));
        }
    }

    #[test]
    fn random_games_stand_the_check_too() {
        let games = Games::random(AnyGame::parse("tic-tac-toe").unwrap());
        assert_eq!((games.len(), games.origin()), (RANDOM_GAMES, Origin::Random));
        assert_eq!(games.random_plies_max(), 0);
        games.check().unwrap();
    }

    #[tokio::test]
    async fn what_no_lease_takes_is_refused_with_its_reason() {
        let matches = of_file(&played("tic-tac-toe", Kind::Match)).await.unwrap_err();
        assert!(matches.to_string().contains("no self-play game"), "{matches:#}");
        let mut mixed = played("tic-tac-toe", Kind::SelfPlay);
        mixed.extend(played("connect-four", Kind::SelfPlay));
        let mixed = of_file(&mixed).await.unwrap_err();
        assert!(mixed.to_string().contains("connect-four"), "{mixed:#}");
        let mut wrong = played("tic-tac-toe", Kind::SelfPlay);
        wrong[0].rules_fingerprint.0[0] ^= 1;
        let wrong = of_file(&wrong).await.unwrap_err();
        assert!(format!("{wrong:#}").contains("rules fingerprint"), "{wrong:#}");
    }
}
