//! Our programs tell nobody about their users: ONNX Runtime's own reports are off before it is loaded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use tengen_system_tests::cluster::{program, repository};

#[test]
fn loading_onnx_runtime_leaves_no_device_id_and_no_upload_queue() {
    let home = tempfile::tempdir().unwrap();
    // `tengen version` loads the library. The variable that cargo sets for tests must not be what keeps it quiet.
    let output = Command::new(program("tengen"))
        .arg("version")
        .current_dir(repository())
        .env_remove("ORT_DISABLE_TELEMETRY")
        .env_remove("XDG_CACHE_HOME")
        .env("HOME", home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("ORT Build Info"), "{output:?}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}
