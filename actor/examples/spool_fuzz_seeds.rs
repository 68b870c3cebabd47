//! Writes the kept inputs of the fuzz target `spool_recovery` anew: `cargo run -p tengen-actor --example spool_fuzz_seeds`.

use std::io::Write;
use std::path::Path;

use tengen_actor::spool::testing::seeds;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/spool_recovery");
    std::fs::create_dir_all(&folder)?;
    for (name, input) in seeds() {
        std::fs::File::create(folder.join(name))?.write_all(&input)?;
    }
    Ok(())
}
