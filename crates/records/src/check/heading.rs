//! A record's heading against its lease: everything that is known without replaying the game.

use tengen_games::Fingerprint;

use crate::expected::{Expected, MatchGame, Work};
use crate::player::Player;
use crate::record::{ModelIndex, Record};
use crate::rejection::{ReasonCode, Rejection};
use crate::seed::game_seed;

type Verdict = Result<(), Rejection>;

pub(super) fn check(record: &Record, expected: &Expected) -> Verdict {
    equal(ReasonCode::WrongRun, "run", &record.run_id, &expected.run_id)?;
    equal(ReasonCode::WrongGame, "game", &record.game_id, &expected.game_id)?;
    equal(
        ReasonCode::WrongRules,
        "rules fingerprint",
        &record.rules_fingerprint,
        &expected.rules_fingerprint,
    )?;
    equal(ReasonCode::UnknownLease, "lease", &record.id.lease, &expected.lease)?;
    equal(
        ReasonCode::WrongKind,
        "kind",
        record.kind.as_str(),
        expected.work.kind().as_str(),
    )?;
    if record.models != expected.models {
        let names = |models: &[crate::ModelId]| models.iter().map(|model| model.short()).collect::<Vec<_>>().join(", ");
        let (stated, wanted) = (names(&record.models), names(&expected.models));
        return Err(Rejection::new(
            ReasonCode::WrongModel,
            format!("models are [{stated}], the lease names [{wanted}]"),
        ));
    }
    if record.players != expected.players {
        let names = |players: &Option<[Player; 2]>| match players {
            None => "nobody".to_owned(),
            Some([first, second]) => format!("{first} and {second}"),
        };
        let (stated, wanted) = (names(&record.players), names(&expected.players));
        return Err(Rejection::new(
            ReasonCode::WrongPlayers,
            format!("players are {stated}, the lease names {wanted}"),
        ));
    }
    equal(
        ReasonCode::WrongRevision,
        "settings revision",
        &record.settings_revision,
        &expected.settings_revision,
    )?;
    match &expected.work {
        Work::SelfPlay {
            index_end,
            random_plies_max,
        } => self_play(record, *index_end, *random_plies_max)?,
        Work::Match(games) => match_game(record, games)?,
    }
    let seed = game_seed(expected.lease_seed, record.id.index);
    equal(ReasonCode::WrongSeed, "seed", &record.seed, &seed)
}

/// A heading for itself: the game and its rules are these, and players and models are numbered as they are listed.
pub(super) fn check_alone(record: &Record, game: &str, rules: Fingerprint) -> Verdict {
    equal(ReasonCode::WrongGame, "game", &record.game_id[..], game)?;
    equal(
        ReasonCode::WrongRules,
        "rules fingerprint",
        &record.rules_fingerprint,
        &rules,
    )?;
    let (code, listed) = match &record.players {
        Some(players) => (ReasonCode::WrongPlayers, players.len()),
        None => (ReasonCode::WrongModel, record.models.len()),
    };
    match record.seat_models.iter().find(|index| index.index() >= listed) {
        None => Ok(()),
        Some(index) => Err(Rejection::new(
            code,
            format!("a seat is that of number {} of {listed}", index.0),
        )),
    }
}

fn equal<T: PartialEq + std::fmt::Display + ?Sized>(code: ReasonCode, what: &str, stated: &T, wanted: &T) -> Verdict {
    if stated == wanted {
        return Ok(());
    }
    // The stated value may be long and hostile text; what a person needs of it is its beginning.
    let stated: String = stated.to_string().chars().take(100).collect();
    Err(Rejection::new(code, format!("{what} is {stated}, expected {wanted}")))
}

fn self_play(record: &Record, index_end: u32, random_plies_max: u32) -> Verdict {
    if record.id.index >= index_end {
        let detail = format!("index {}, the lease's are below {index_end}", record.id.index);
        return Err(Rejection::new(ReasonCode::IndexOutOfLease, detail));
    }
    seat_models(record, [ModelIndex(0); 2])?;
    equal(ReasonCode::WrongPair, "match pair", &record.match_pair, &0)?;
    if record.opening.len() > random_plies_max as usize {
        let detail = format!(
            "{} opening plies, at most {random_plies_max} are random",
            record.opening.len()
        );
        return Err(Rejection::new(ReasonCode::Opening, detail));
    }
    Ok(())
}

fn match_game(record: &Record, games: &[MatchGame]) -> Verdict {
    let Some(game) = games.get(record.id.index as usize) else {
        let detail = format!("index {}, the lease has {} games", record.id.index, games.len());
        return Err(Rejection::new(ReasonCode::IndexOutOfLease, detail));
    };
    seat_models(record, game.seat_models())?;
    equal(ReasonCode::WrongPair, "match pair", &record.match_pair, &game.pair)?;
    if record.opening != game.opening {
        return Err(Rejection::new(
            ReasonCode::Opening,
            "the opening plies are not the lease's",
        ));
    }
    Ok(())
}

fn seat_models(record: &Record, wanted: [ModelIndex; 2]) -> Verdict {
    if record.seat_models == wanted {
        return Ok(());
    }
    let [first, second] = record.seat_models.map(|model| model.0);
    let detail = format!(
        "seats have models {first} and {second}, the lease says {} and {}",
        wanted[0].0, wanted[1].0
    );
    Err(Rejection::new(ReasonCode::WrongModel, detail))
}
