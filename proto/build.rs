//! Compiles the `.proto` files with protox (no protoc needed) and writes the descriptor set for reflection.

use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 8] = ["record", "usage", "actor", "model", "learner", "game", "run", "admin"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = FILES.iter().map(|name| format!("tengen/v1/{name}.proto")).collect();
    let descriptors = protox::compile(&files, ["."])?;
    // `compile_fds` ignores `file_descriptor_set_path`, so the set is written here.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    #[allow(
        clippy::disallowed_methods,
        reason = "a build script's output is cargo's to make whole"
    )]
    std::fs::write(out.join("tengen_descriptor.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(true)
        // It holds a secret: the crate writes its Debug by hand.
        .skip_debug(["tengen.v1.CreateTokenResponse"])
        .compile_fds(descriptors)?;
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    Ok(())
}
