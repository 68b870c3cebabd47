//! The compose file on a real Docker engine: images from deploy/Dockerfile, Redis as the window, two actors, from an
//! empty board to a promotion.
//!
//! The programs in the images are those that the tests were built with; only the stage that compiles them is left out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{RunStatus, WatchStatusRequest};
use tengen_system_tests::cluster::{program, repository};
use tonic::transport::Channel;

/// Self-play games within which the first promotion must come; it comes within the first thousand.
const GAMES_MAX: u64 = 6_000;

/// A compose project that is taken down with its volumes.
struct Project {
    name: String,
    port: u16,
}

impl Project {
    fn new() -> Project {
        // Free a moment ago; Docker takes it for the published port.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Project {
            name: format!("tengen-test-{}", std::process::id()),
            port,
        }
    }

    /// Runs a compose command to its end; returns what it printed.
    fn compose(&self, args: &[&str]) -> String {
        let mut command = compose();
        command
            .args(["-p", &self.name])
            .args(args)
            .env("COORDINATOR_PORT", self.port.to_string());
        run(&mut command)
    }

    async fn watch(&self) -> tonic::Streaming<RunStatus> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
        let request = WatchStatusRequest {
            interval_ms: 500,
            ..Default::default()
        };
        RunServiceClient::new(channel)
            .watch_status(request)
            .await
            .unwrap()
            .into_inner()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.compose(&["logs", "--no-color", "--tail", "60"]));
        }
        self.compose(&["down", "--volumes", "--timeout", "60"]);
    }
}

/// `docker compose` where that plugin is installed, else `docker-compose`.
fn compose() -> Command {
    let plugin = Command::new("docker")
        .args(["compose", "version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if plugin.is_ok_and(|status| status.success()) {
        let mut command = Command::new("docker");
        command.arg("compose");
        command
    } else {
        Command::new("docker-compose")
    }
}

fn run(command: &mut Command) -> String {
    let output = command.current_dir(repository()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{words}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_up_reaches_a_promotion_with_redis_as_the_window() {
    let built = program("tengen");
    let profile: &Path = built.parent().unwrap();
    run(Command::new(repository().join("tests/compose/base-images")).arg(profile));
    let project = Project::new();
    project.compose(&["build", "--build-arg", "BUILDER=tengen-programs:test"]);
    project.compose(&["up", "-d", "--scale", "actor=2"]);

    // `up` returns once the coordinator is healthy, because the actors wait for that.
    let mut statuses = project.watch().await;
    let promoted = loop {
        let status = statuses.message().await.unwrap().expect("the status stream goes on");
        if status.generation >= 1 {
            break status;
        }
        assert!(status.games < GAMES_MAX, "no promotion within {GAMES_MAX} games");
    };
    // Nobody but this machine reaches what has no tokens.
    let published = project.compose(&["port", "coordinator", "7300"]);
    assert!(published.starts_with("127.0.0.1:"), "{published}");
    assert!(promoted.rejected.is_empty(), "{:?}", promoted.rejected);
    assert_eq!(promoted.actors.len(), 2, "{:?}", promoted.actors);

    let keys = project.compose(&["exec", "-T", "redis", "redis-cli", "--raw", "KEYS", "*"]);
    let stream = keys
        .lines()
        .find(|key| key.contains(":window:"))
        .unwrap_or_else(|| panic!("no stream in {keys}"));
    let games = project.compose(&["exec", "-T", "redis", "redis-cli", "--raw", "XLEN", stream]);
    assert!(games.trim().parse::<u64>().unwrap() > 0, "the window is not in Redis");
    let status = project.compose(&["exec", "-T", "coordinator", "tengen", "status"]);
    assert!(status.contains("quickstart"), "{status}");

    project.compose(&["stop", "--timeout", "60"]);
    for service in ["coordinator", "learner", "actor"] {
        let ids = project.compose(&["ps", "-a", "-q", service]);
        for id in ids.lines() {
            let code = run(Command::new("docker").args(["inspect", "--format", "{{.State.ExitCode}}", id]));
            assert_eq!(code.trim(), "0", "{service} did not drain");
        }
    }
}
