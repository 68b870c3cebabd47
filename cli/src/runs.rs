//! `tengen runs`: the data folders of this machine. The databases in them are the coordinator's, so its program looks.

use std::ffi::OsString;

use clap::Args;
use tengen_service::args::LogArgs;

use crate::programs;

/// Everything that follows `runs`, as it is: `tengen runs --help` is answered by the coordinator's program, too.
#[derive(Args, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct RunsArgs {
    /// list or new NAME, each with --dir DIR where the folders are not in ./data; see `tengen runs help`
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes the coordinator's program.
pub(crate) fn run(args: &RunsArgs, log: &LogArgs) -> anyhow::Result<()> {
    programs::become_program("tengen-coordinator", "runs", &args.args, log)
}
