//! `tengen games`: the stored games of a run, and games in files: list, show, export, import, verify, replay.
//!
//! Formats are `tengen-records`' business, and so are the rules'; here is what a user says and sees.

mod export;
mod import;
mod list;
mod npz;
mod replay;
mod show;
mod sink;
pub(crate) mod source;
mod step;
pub(crate) mod verify;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum GamesCommand {
    /// List the games of a run, newest first
    List(list::ListArgs),
    /// Show one game: who played, every move, the last position or any other
    Show(show::ShowArgs),
    /// Write games of a run or of files in another format
    Export(export::ExportArgs),
    /// Read games of other programs, check them by the rules, and prepare them for training
    Import(import::ImportArgs),
    /// Check every record of a run or of files again; exit status 1 when something is wrong
    Verify(verify::VerifyArgs),
    /// Search a stored game again from its seed and networks and compare ply by ply, or step through it
    Replay(replay::ReplayArgs),
}

pub(crate) async fn run(command: GamesCommand) -> anyhow::Result<()> {
    match command {
        GamesCommand::List(args) => list::run(args).await,
        GamesCommand::Show(args) => show::run(args).await,
        GamesCommand::Export(args) => export::run(args).await,
        GamesCommand::Import(args) => import::run(&args),
        GamesCommand::Verify(args) => verify::run(args).await,
        GamesCommand::Replay(args) => replay::run(args).await,
    }
}
