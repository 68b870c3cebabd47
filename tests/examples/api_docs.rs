//! Writes `docs/api.md`.

use tengen_service::files::write_atomic;
use tengen_system_tests::api_docs::page;
use tengen_system_tests::cluster::repository;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Ok(write_atomic(&repository().join("docs/api.md"), page().as_bytes())?)
}
