//! The rules' part of the checklist: counts of the start, laws over random games, stable results.

use anyhow::Context;
use tengen_games::conformance::{self, Options, Summary};
use tengen_games::{Game, GameVisitor, Moves, State, perft_moves};

use super::survey::Survey;
use super::{Group, Report};

/// How much is checked here; the conformance suite of the tests checks more.
const OPTIONS: Options = Options {
    games: 2_000,
    plies_max: 50_000,
    deep_checks: 2_000,
    seed: super::SEED,
};

pub(super) struct Laws<'a> {
    pub(super) report: &'a mut Report,
    pub(super) survey: &'a Survey,
}

impl GameVisitor for Laws<'_> {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Laws { report, survey } = self;
        let mut legal = Vec::new();
        game.start().legal(&mut legal);
        let whole_moves = match game.moves() {
            Moves::Actions => String::new(),
            Moves::Staged => format!(", which begin {} whole moves", perft_moves(&game, &game.start(), 1)),
        };
        report.line(
            Group::Rules,
            "the start has the correct number of legal moves",
            format!(
                "{} legal actions{whole_moves}; compare with a published count",
                legal.len()
            ),
        );
        report.begin("checking the laws of every game over random games");
        let summary = conformance::check(&game, &OPTIONS).context("a law is broken")?;
        let Summary {
            games,
            plies,
            deep_checks,
            results: [first, second, draws],
        } = summary;
        report.line(
            Group::Rules,
            "edges, captures, blocking, forbidden moves, pass and no move",
            format!(
                "every law held over {games} random games of {plies} plies, {deep_checks} positions under {} symmetries; \
                 illegal actions were refused and changed nothing; {} games ended by: {}",
                game.spec().symmetries.len(),
                survey.games.len(),
                survey.ends_in_words()
            ),
        );
        report.line(
            Group::Rules,
            "the winner does not change after the end",
            format!("{games} ends, nothing was legal after any; seat 0 won {first}, seat 1 {second}, {draws} draws"),
        );
        Ok(())
    }
}
