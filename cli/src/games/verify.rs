//! `tengen games verify`: every record again, as the coordinator checked it when it came.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use serde_json::{Value, json};
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor};
use tengen_proto::v1;
use tengen_records::exchange::game_of;
use tengen_records::{Expected, ReasonCode, Record, Rejection, check, decode};
use tengen_selfplay::wire::order_from_wire;

use super::source::{Extent, FileArgs, FileReader, FilterArgs, Pages, id_of};
use crate::client::CoordinatorArgs;

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Files to check; without any, the games of a run
    #[arg(value_name = "FILE", conflicts_with_all = ["coordinator", "data"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: FileArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// Print one JSON object instead of words
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<()> {
    ensure!(
        args.files.is_empty() || !args.filter.is_any(),
        "the filters are for the games of a run, not for files"
    );
    let report = if args.files.is_empty() {
        of_run(&args).await?
    } else {
        of_files(&args)?
    };
    if args.json {
        println!("{}", report.as_json());
    } else {
        report.print();
    }
    ensure!(
        report.faults.is_empty(),
        "{} of {} games are wrong",
        report.faults.len(),
        report.games
    );
    Ok(())
}

/// What was found.
#[derive(Default)]
struct Report {
    games: u64,
    positions: u64,
    plies: u64,
    reasons: BTreeMap<&'static str, u64>,
    faults: Vec<Fault>,
}

/// One game that is wrong.
struct Fault {
    game: String,
    code: Option<ReasonCode>,
    what: String,
}

impl Report {
    fn good(&mut self, record: &Record) {
        self.games += 1;
        self.positions += u64::from(record.positions());
        self.plies += record.actions().count() as u64;
        *self.reasons.entry(record.outcome.reason.as_str()).or_default() += 1;
    }

    fn bad(&mut self, game: String, code: Option<ReasonCode>, what: String) {
        self.games += 1;
        self.faults.push(Fault { game, code, what });
    }

    fn as_json(&self) -> Value {
        let faults = self.faults.iter().map(|fault| {
            let code = fault.code.map(ReasonCode::as_str);
            json!({ "game": fault.game, "code": code, "what": fault.what })
        });
        json!({
            "games": self.games,
            "plies": self.plies,
            "positions": self.positions,
            "reasons": self.reasons,
            "faults": faults.collect::<Vec<_>>(),
        })
    }

    fn print(&self) {
        for fault in &self.faults {
            println!("{}: {}", fault.game, fault.what);
        }
        println!(
            "{} games checked by their rules: {} plies, {} positions, {} faults",
            self.games,
            self.plies,
            self.positions,
            self.faults.len()
        );
        let reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, games)| format!("{reason} {games}"))
            .collect();
        if !reasons.is_empty() {
            println!("ended by {}", reasons.join(", "));
        }
    }
}

fn of_files(args: &VerifyArgs) -> anyhow::Result<Report> {
    let mut reader = FileReader::new(&args.format);
    let mut report = Report::default();
    for path in &args.files {
        for game in reader.read(path)? {
            match game.record {
                Ok(record) => report.good(&record),
                Err(error) => {
                    let code = match &error {
                        tengen_records::exchange::ImportError::Rejected(rejection) => Some(rejection.code),
                        _ => None,
                    };
                    report.bad(format!("{}: {}", path.display(), game.label), code, error.to_string());
                }
            }
        }
    }
    Ok(report)
}

async fn of_run(args: &VerifyArgs) -> anyhow::Result<Report> {
    let run = args.coordinator.reach().await?;
    let mut pages = Pages::of(&run, &args.filter, Extent::Whole).await?;
    let mut report = Report::default();
    // A run is of one game.
    let mut rules: Option<Rules> = None;
    while let Some(games) = pages.next().await? {
        for stored in games {
            match verify(&stored, &mut rules) {
                Ok(record) => report.good(&record),
                Err(rejection) => report.bad(id_of(&stored), Some(rejection.code), rejection.to_string()),
            }
        }
    }
    Ok(report)
}

/// The rules of a run.
struct Rules {
    game: AnyGame,
    fingerprint: Fingerprint,
}

/// Checks a stored record against its hash, the rules and its work order.
fn verify(stored: &v1::StoredGame, rules: &mut Option<Rules>) -> Result<Record, Rejection> {
    if stored.damaged {
        return Err(Rejection::new(
            ReasonCode::Decode,
            "its bytes are not those that were stored",
        ));
    }
    let record = decode(&stored.record)?;
    let known = rules
        .as_ref()
        .is_some_and(|rules| rules.game.spec().id == record.game_id);
    if !known {
        let game = game_of(&record).map_err(|error| Rejection::new(ReasonCode::WrongGame, error.to_string()))?;
        *rules = Some(Rules {
            fingerprint: game.rules_fingerprint(),
            game,
        });
    }
    let Some(Rules { game, fingerprint }) = rules.as_ref() else {
        return Err(Rejection::new(ReasonCode::WrongGame, record.game_id));
    };
    let unknown = |why: String| Rejection::new(ReasonCode::UnknownLease, why);
    let order = stored
        .work_order
        .as_ref()
        .ok_or_else(|| unknown("its work order is gone".to_owned()))?;
    let order = order_from_wire(order).map_err(|error| unknown(error.to_string()))?;
    let expected = order.expected(record.run_id.clone(), game.spec().id.clone(), *fingerprint);
    check_by(game, &record, &expected)?;
    Ok(record)
}

/// Checks a record of this game against what is expected of it.
pub(crate) fn check_by(game: &AnyGame, record: &Record, expected: &Expected) -> Result<(), Rejection> {
    struct Check<'a>(&'a Record, &'a Expected);
    impl GameVisitor for Check<'_> {
        type Output = Result<(), Rejection>;
        fn visit<G: Game>(self, game: G) -> Self::Output {
            check(&game, self.0, self.1).map(drop)
        }
    }
    game.visit(Check(record, expected))
}
