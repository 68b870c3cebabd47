//! The part of the checklist on reproducibility: names, fingerprints, and replaying complete games from their notation.

use anyhow::{bail, ensure};
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor, State, notation, rules_fingerprint};
use tengen_records::{ReasonCode, Record, check, decode, encode};

use super::selfplay::Played;
use super::survey::Survey;
use super::training::Trained;
use super::{Group, NOT_TRAINED, Report};

/// Plies after which no further game is replayed.
const PLIES_MAX: usize = 20_000;

pub(super) struct Replay<'a> {
    pub(super) report: &'a mut Report,
    pub(super) survey: &'a Survey,
    pub(super) played: &'a Played,
    pub(super) trained: Option<&'a Trained>,
}

impl GameVisitor for Replay<'_> {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Replay {
            report,
            survey,
            played,
            trained,
        } = self;
        report.begin("replaying complete games");
        let rules = rules_fingerprint(&game);
        report.line(
            Group::Reproducibility,
            "rules, configuration and board size are saved",
            saved(&game, rules, played)?,
        );
        report.line(
            Group::Reproducibility,
            "training parameters are saved with the network",
            trained.map_or_else(|| NOT_TRAINED.to_owned(), Trained::parameters),
        );
        report.line(
            Group::Reproducibility,
            "a complete game can be replayed",
            replayed(&game, survey)?,
        );
        report.line(
            Group::Reproducibility,
            "old rules are not mixed in",
            refused(&game, played)?,
        );
        Ok(())
    }
}

/// What the network and the records of the self-play above say, read from their bytes.
fn saved<G: Game>(game: &G, rules: Fingerprint, played: &Played) -> anyhow::Result<String> {
    let spec = game.spec();
    let Played { records, network, .. } = played;
    let mut stated = vec![(network.game.clone(), network.rules_fingerprint)];
    for record in records {
        let read = decode(&encode(record))?;
        stated.push((read.game_id, read.rules_fingerprint));
    }
    for (id, fingerprint) in &stated {
        let named = AnyGame::parse(id)?;
        ensure!(
            (named.spec().rows, named.spec().cols, *fingerprint) == (spec.rows, spec.cols, rules),
            "`{id}` with the fingerprint {fingerprint} was read where `{}` with {rules} was written",
            spec.id
        );
    }
    Ok(format!(
        "the network and {} records, read from their bytes, name `{}`, a board of {} columns and {} rows, with the \
         fingerprint {rules}",
        records.len(),
        spec.id,
        spec.cols,
        spec.rows
    ))
}

/// Random games, written as moves and read back.
fn replayed<G: Game>(game: &G, survey: &Survey) -> anyhow::Result<String> {
    let (mut games, mut plies) = (0, 0);
    for played in &survey.games {
        if plies >= PLIES_MAX {
            break;
        }
        let words = notation::words(game, &game.start(), &played.actions);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (actions, end) = notation::play(game, &game.start(), &words)?;
        ensure!(
            actions == played.actions && end.outcome() == played.outcome,
            "the words {words:?} do not give back {:?}",
            played.actions
        );
        games += 1;
        plies += actions.len();
    }
    Ok(format!(
        "{games} random games of {plies} plies were written as moves and read back, action for action, to the same end"
    ))
}

/// What the coordinator's check says to a played record whose fingerprint is another by one bit.
fn refused<G: Game>(game: &G, played: &Played) -> anyhow::Result<String> {
    let Some(record) = played.records.first() else {
        return Ok("not measured: no game of self-play was asked for (--games)".to_owned());
    };
    let mut rules_fingerprint = record.rules_fingerprint;
    rules_fingerprint.0[0] ^= 1;
    let other = Record {
        rules_fingerprint,
        ..record.clone()
    };
    match check(game, &decode(&encode(&other))?, &played.expected) {
        Err(refusal) if refusal.code == ReasonCode::WrongRules => Ok(format!(
            "a played record whose fingerprint was changed by one bit: {refusal}"
        )),
        Err(refusal) => bail!("a record of other rules was refused for another reason: {refusal}"),
        Ok(_) => bail!("a record of other rules was accepted"),
    }
}
