//! Writes the kept inputs of the fuzz target `record_decode_check` anew: `cargo run -p tengen-records --example fuzz_seeds`.

use std::io::Write;
use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_records::testing::fuzz::Ring;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/record_decode_check");
    std::fs::create_dir_all(&folder)?;
    for (name, input) in Ring::new::<Xoshiro256PlusPlus>().seeds::<Xoshiro256PlusPlus>() {
        std::fs::File::create(folder.join(name))?.write_all(&input)?;
    }
    Ok(())
}
