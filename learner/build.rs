//! Tells the linker where libtorch lies at run time: dependents of `tch` inherit neither its search path nor its flags.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-changed=build.rs");
    // Beside an installed binary and beside `target/<profile>/`: a tree that was moved still finds its runtime.
    for fallback in [
        "$ORIGIN/../.runtime/libtorch/lib",
        "$ORIGIN/../../.runtime/libtorch/lib",
    ] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{fallback}");
    }
    #[allow(clippy::disallowed_methods, reason = "build script: tch reads the same variable")]
    let Ok(libtorch) = std::env::var("LIBTORCH") else {
        return;
    };
    let lib = Path::new(&libtorch).join("lib");
    // The folder, not the CUDA library: a file that is missing would make every build begin anew.
    println!("cargo:rerun-if-changed={}", lib.display());
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    if lib.join("libtorch_cuda.so").exists() {
        // Nothing in our code names a symbol of it; without this the linker drops it and CUDA is "not available".
        println!("cargo:rustc-link-arg=-Wl,--no-as-needed,-ltorch_cuda,--as-needed");
    }
}
