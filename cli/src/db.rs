//! `tengen db`: commands on a data folder. The database is the coordinator's, so its program carries them out.

use std::ffi::OsString;

use clap::Args;
use tengen_service::args::LogArgs;

use crate::programs;

/// Everything that follows `db`, as it is: `tengen db --help` is answered by the coordinator's program, too.
#[derive(Args, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct DbArgs {
    /// check, backup FOLDER or compact, each with --data DIR; see `tengen db help`
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes the coordinator's program.
pub(crate) fn run(args: &DbArgs, log: &LogArgs) -> anyhow::Result<()> {
    programs::become_program("tengen-coordinator", "db", &args.args, log)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(clap::Subcommand)]
    enum Command {
        Db(super::DbArgs),
    }

    #[test]
    fn everything_after_db_is_passed_on_as_it_is() {
        for given in [
            &["backup", "to", "--data", "dir", "--even-if-damaged"][..],
            &["--help"],
            &["check", "-h"],
            &[],
        ] {
            let cli = Cli::try_parse_from(["tengen", "db"].iter().chain(given)).unwrap();
            let Command::Db(args) = cli.command;
            assert_eq!(args.args, given);
        }
    }
}
