//! The part of the checklist on reproducibility: names, fingerprints, and replaying complete games from their notation.

use anyhow::ensure;
use tengen_games::{Game, GameVisitor, State, notation, rules_fingerprint};

use super::survey::Survey;
use super::{Group, Report};

/// Plies after which no further game is replayed.
const PLIES_MAX: usize = 20_000;

pub(super) struct Replay<'a> {
    pub(super) report: &'a mut Report,
    pub(super) survey: &'a Survey,
}

impl GameVisitor for Replay<'_> {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Replay { report, survey } = self;
        report.begin("replaying complete games");
        let (mut games, mut plies) = (0, 0);
        for played in &survey.games {
            if plies >= PLIES_MAX {
                break;
            }
            let words = notation::words(&game, &game.start(), &played.actions);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (actions, end) = notation::play(&game, &game.start(), &words)?;
            ensure!(
                actions == played.actions && end.outcome() == played.outcome,
                "the words {words:?} do not give back {:?}",
                played.actions
            );
            games += 1;
            plies += actions.len();
        }
        let fingerprint = rules_fingerprint(&game).to_string();
        report.line(
            Group::Reproducibility,
            "rules, configuration and board size are saved",
            format!(
                "every record and run carries `{}` and the fingerprint {fingerprint}",
                game.spec().id
            ),
        );
        report.line(
            Group::Reproducibility,
            "a complete game can be replayed",
            format!(
                "{games} random games of {plies} plies were written as moves and read back, action for action, to the same \
                 end"
            ),
        );
        report.line(
            Group::Reproducibility,
            "old rules are not mixed in",
            format!(
                "another fingerprint than {} is refused by run, record check and model",
                &fingerprint[..12]
            ),
        );
        Ok(())
    }
}
