//! A local cluster whose window is in Redis: what the coordinator is told of the server, the learner is told too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;

use tengen_replay::testing::RedisServer;
use tengen_service::files::write_atomic;
use tengen_system_tests::cluster::{Up, repository, tengen_ok};

/// Games within which the learner must have published a network; it takes about a thousand.
const GAMES_MAX: &str = "8000";

#[test]
fn up_tells_the_learner_of_the_redis_in_the_coordinators_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    write_atomic(&password, b"s3cret\n").unwrap();
    let redis = RedisServer::start(
        folder.path(),
        &["--user", "tengen", "on", ">s3cret", "allcommands", "allkeys"],
    );
    let config = folder.path().join("coordinator.toml");
    let text = format!(
        "replay = \"redis://tengen@127.0.0.1:{}\"\nreplay_password_file = {password:?}\n",
        redis.port()
    );
    write_atomic(&config, text.as_bytes()).unwrap();
    let more = [
        "--coordinator-config",
        config.to_str().unwrap(),
        "--until-generation",
        "1",
        "--until-games",
        GAMES_MAX,
    ];
    let run = repository().join("runs/tic-tac-toe.toml");
    let data = folder.path().join("data");
    let (status, _) = Up::start(&run, &data, &more).finish();
    assert!(status.success());
    // Trained on what it read there, and published.
    let models = tengen_ok([
        OsStr::new("models"),
        "list".as_ref(),
        "--data".as_ref(),
        data.as_os_str(),
    ]);
    let generation = |line: &str| line.split_whitespace().nth(2) == Some("1");
    assert!(models.lines().any(generation), "{models}");
    assert_eq!(redis.command(&["EXISTS", "{tic-tac-toe}:window"]), ":1");
}
