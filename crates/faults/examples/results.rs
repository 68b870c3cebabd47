//! Makes one file of the rows that the proofs under faults wrote: `results ROWS FILE`. Fails when a row is missing, not
//! proved, or short of its counts; the file is written all the same.

use std::path::Path;
use std::process::ExitCode;

use tengen_faults::results::collect;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, file] = arguments.as_slice() else {
        eprintln!("usage: results ROWS FILE");
        return ExitCode::FAILURE;
    };
    let (text, faults) = collect(Path::new(rows));
    #[allow(clippy::disallowed_methods, reason = "made again by the same command")]
    if let Err(error) = std::fs::write(file, text) {
        eprintln!("failed to write {file}: {error}");
        return ExitCode::FAILURE;
    }
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    println!("{file}: {} faults", faults.len());
    if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
