//! `tengen`: the user's command. See `tengen --help`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    tengen_inference::forbid_telemetry();
    tengen_service::tls::install_provider();
    let cli = tengen_cli::Cli::parse();
    tengen_service::args::exit_status("tengen", tengen_cli::run(cli))
}
