//! `tengen learn`: supervised learning from prepared sets. Training is the learner's, so its program carries it out.

use std::ffi::OsString;

use clap::Args;
use tengen_service::args::LogArgs;

use crate::programs;

/// Everything that follows `learn`, as it is: `tengen learn --help` is answered by the learner's program, too.
#[derive(Args, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct LearnArgs {
    /// --from DIR --run FILE --out DIR [--coordinator URL] and more; see `tengen learn --help`
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes the learner's program.
pub(crate) fn run(args: &LearnArgs, log: &LogArgs) -> anyhow::Result<()> {
    programs::become_program("tengen-learner", "learn", &args.args, log)
}
