//! All rows of the benches as one table, of each the newest; `make bench` ends with it.

use tengen_faults::bench::{all_rows, table};

fn main() -> std::io::Result<()> {
    print!("{}", table(&all_rows()?));
    Ok(())
}
