//! Compiles `proto/onnx.proto` with protox (no protoc needed) into the types of the ONNX file format.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors = protox::compile(["onnx.proto"], ["proto"])?;
    prost_build::Config::new()
        // The comments hold indented examples, which rustdoc would take for tests.
        .disable_comments(["."])
        .compile_fds(descriptors)?;
    println!("cargo:rerun-if-changed=proto/onnx.proto");
    Ok(())
}
