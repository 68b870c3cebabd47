//! `tengen rules`: the oracle. What the rules of a game say about a list of moves, for people and for other programs.
//!
//! It is the referee, not a player: an action that self-play would never choose is judged as the rules judge it.

mod check;
mod position;
mod show;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tengen_games::{Action, AnyGame, Game, GameVisitor, State, perft_from, perft_moves};
use tengen_service::args::LogArgs;

use position::Position;

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// List the games with their parameters
    List(Output),
    /// Show a game: board, actions, planes, symmetries, fingerprints
    Show(GameArgs),
    /// Play moves and say where they lead; exit status 2 when one is illegal
    Judge(PositionArgs),
    /// List the legal actions after some moves
    Legal(PositionArgs),
    /// Count the sequences of actions, or of whole moves, of a given length
    Perft(PerftArgs),
    /// Show the network's input planes after some moves
    Planes(PositionArgs),
    /// Run the checklist of a rules integration and print what was measured
    Check(check::CheckArgs),
}

#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GameArgs {
    /// Game, for example `hex?size=9`; `tengen rules list` names them
    game: AnyGameArg,
    #[command(flatten)]
    output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct PositionArgs {
    /// Game, for example `hex?size=9`; `tengen rules list` names them
    game: AnyGameArg,
    /// Moves in the game's notation, or indexes of actions
    #[arg(value_name = "ACTIONS")]
    actions: Vec<String>,
    /// Where to begin: a position text (FEN), or a list of moves in one argument
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct PerftArgs {
    /// Game, for example `hex?size=9`; `tengen rules list` names them
    game: AnyGameArg,
    /// Number of plies, or with --moves of whole moves
    depth: u32,
    /// Moves in the game's notation, or indexes of actions
    #[arg(value_name = "ACTIONS")]
    actions: Vec<String>,
    /// Where to begin: a position text (FEN), or a list of moves in one argument
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,
    /// Count whole moves, as published figures do
    #[arg(long)]
    moves: bool,
    #[command(flatten)]
    output: Output,
}

/// A game parsed from an argument.
#[derive(Clone, Debug)]
pub(crate) struct AnyGameArg(AnyGame);

impl AnyGameArg {
    /// The game.
    pub(crate) fn into_game(self) -> AnyGame {
        self.0
    }
}

impl std::str::FromStr for AnyGameArg {
    type Err = tengen_games::ParseGameError;

    fn from_str(text: &str) -> Result<AnyGameArg, Self::Err> {
        AnyGame::parse(text).map(AnyGameArg)
    }
}

pub(crate) async fn run(command: RulesCommand, log: &LogArgs) -> anyhow::Result<()> {
    match command {
        RulesCommand::List(output) => {
            output.print(&show::list());
            Ok(())
        }
        RulesCommand::Show(args) => {
            args.output.print(&show::game(&args.game.0));
            Ok(())
        }
        RulesCommand::Judge(args) => ask(
            &args.game,
            &args.actions,
            args.from.as_deref(),
            args.output,
            Question::Judge,
        ),
        RulesCommand::Legal(args) => ask(
            &args.game,
            &args.actions,
            args.from.as_deref(),
            args.output,
            Question::Legal,
        ),
        RulesCommand::Planes(args) => ask(
            &args.game,
            &args.actions,
            args.from.as_deref(),
            args.output,
            Question::Planes,
        ),
        RulesCommand::Perft(args) => {
            let question = if args.moves {
                Question::PerftMoves(args.depth)
            } else {
                Question::Perft(args.depth)
            };
            ask(&args.game, &args.actions, args.from.as_deref(), args.output, question)
        }
        RulesCommand::Check(args) => check::run(&args, log).await,
    }
}

/// What is asked about a position.
#[derive(Clone, Copy, Debug)]
enum Question {
    Judge,
    Legal,
    Planes,
    Perft(u32),
    PerftMoves(u32),
}

struct Asked<'a> {
    actions: &'a [String],
    from: Option<&'a str>,
    question: Question,
}

/// The answer as JSON and in words.
type Answer = (Value, String);

impl Output {
    fn print(self, (value, words): &Answer) {
        if self.json {
            println!("{value}");
        } else {
            println!("{}", words.trim_end());
        }
    }
}

fn ask(
    game: &AnyGameArg,
    actions: &[String],
    from: Option<&str>,
    output: Output,
    question: Question,
) -> anyhow::Result<()> {
    let answer = game.0.visit(Asked {
        actions,
        from,
        question,
    });
    match answer {
        Ok(answer) => output.print(&answer),
        Err(refusal) => {
            if output.json {
                println!("{}", refusal.as_json());
            }
            return Err(tengen_service::args::ExitStatus::new(2, refusal).into());
        }
    }
    Ok(())
}

impl GameVisitor for Asked<'_> {
    type Output = Result<Answer, position::Refusal>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let at = position::reach(&game, self.from, self.actions)?;
        Ok(match self.question {
            Question::Judge => judge(&game, &at),
            Question::Legal => legal(&game, &at.state),
            Question::Planes => show::planes(&game, &at.state),
            Question::Perft(depth) => count(perft_from(&at.state, depth)),
            Question::PerftMoves(depth) => {
                position::at_turn(&game, &at.state)?;
                count(perft_moves(&game, &at.state, depth))
            }
        })
    }
}

fn count(count: u64) -> Answer {
    (json!({ "count": count }), count.to_string())
}

fn judge<G: Game>(game: &G, at: &Position<G>) -> Answer {
    let mut legal = Vec::new();
    at.state.legal(&mut legal);
    let outcome = at.state.outcome();
    let text = at.state.draw();
    let value = json!({
        "game": game.spec().id,
        "fingerprint": tengen_games::rules_fingerprint(game).to_string(),
        "plies": at.plies,
        "seat": at.state.seat().index(),
        "stage": at.state.stage(),
        "legal_count": legal.len(),
        "result": outcome.map(|outcome| if outcome.winner.is_some() { "win" } else { "draw" }),
        "winner_seat": outcome.and_then(|outcome| outcome.winner).map(|seat| seat.index()),
        "reason": outcome.map(|outcome| outcome.reason.as_str()),
        "text": text,
    });
    let words = format!("{text}{} plies, {} legal actions", at.plies, legal.len());
    (value, words)
}

fn legal<G: Game>(game: &G, state: &G::State) -> Answer {
    let mut legal = Vec::new();
    state.legal(&mut legal);
    let texts: Vec<String> = legal.iter().map(|&action| game.action_text(action)).collect();
    let actions: Vec<u16> = legal.iter().map(|&Action(index)| index).collect();
    let value = json!({ "count": actions.len(), "actions": actions, "texts": texts });
    (value, texts.join(" "))
}
