//! Who may do what, and how much of it: a real server on a loopback port, tokens from real files, certificates made here.

mod actors;
mod door;
mod limits;
#[path = "../api/rig.rs"]
#[allow(dead_code, reason = "shared with the tests of the API, which use more of it")]
mod rig;
mod roles;
mod secrets;
mod tls;
mod tokens;
