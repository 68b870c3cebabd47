//! The coordinator process.

use std::process::ExitCode;

use clap::Parser;
use tengen_coordinator::cli::{Cli, run};

fn main() -> ExitCode {
    tengen_selfplay::audit::forbid_telemetry();
    tengen_service::tls::install_provider();
    tengen_service::args::exit_status("tengen-coordinator", run(Cli::parse()))
}
