//! A guarded run from the outside: tokens made and used on the command line, over TLS, down to a whole cluster.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tempfile::TempDir;
use tengen_service::files::write_atomic;
use tengen_system_tests::cluster::{program, tengen, tengen_ok};

const RUN: &str = r#"
[run]
name = "guarded"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 8
[[schedule]]
from_iteration = 0
games = 40
simulations = 8
[gate]
kind = "none"
[learner]
batch = 32
window_min_positions = 64
steps_behind_max = 0
"#;

/// A folder with a run, its tokens, and a certificate that vouches for itself.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let tls = format!(
            "[tls]\ncert = {:?}\nkey = {:?}\n",
            folder.path("cert.pem"),
            folder.path("key.pem")
        );
        for (name, text) in [
            ("run.toml", RUN),
            ("coordinator.toml", &tls),
            ("cert.pem", &certificate.pem()),
            ("key.pem", &key.serialize_pem()),
        ] {
            write_atomic(&folder.path(name), text.as_bytes()).unwrap();
        }
        let made = tengen_ok([
            "token",
            "init",
            "--data",
            &folder.text("data"),
            "--tokens",
            &folder.text("tokens"),
        ]);
        assert_eq!(made.lines().count(), 4, "{made}");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Runs a command of `tengen` with the credentials of a token's file.
    fn tengen(&self, token: &str, command: &[&str]) -> Output {
        let (data, ca, token) = (self.text("data"), self.text("cert.pem"), self.text(token));
        let credentials = ["--data", &data, "--ca", &ca, "--token-file", &token];
        tengen(command.iter().chain(&credentials))
    }

    /// The same for a command that must succeed; what it prints.
    fn ok(&self, token: &str, command: &[&str]) -> String {
        let output = self.tengen(token, command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same for a command that must fail; what it says.
    fn refused(&self, token: &str, command: &[&str]) -> String {
        let output = self.tengen(token, command);
        assert!(!output.status.success(), "{command:?} was not refused");
        String::from_utf8(output.stderr).unwrap()
    }

    fn coordinator(&self) -> Coordinator {
        let process = Command::new(program("tengen-coordinator"))
            .arg("--run")
            .arg(self.path("run.toml"))
            .arg("--data")
            .arg(self.path("data"))
            .arg("--config")
            .arg(self.path("coordinator.toml"))
            .arg("--addr-file")
            .arg(self.path("data/coordinator.addr"))
            .args(["--listen", "127.0.0.1:0", "--exit-with-parent"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Coordinator(process)
    }

    /// An actor with the actors' token, always the same one.
    fn actor(&self) -> Child {
        let address = std::fs::read_to_string(self.path("data/coordinator.addr")).unwrap();
        Command::new(program("tengen-actor"))
            .arg("--join")
            .arg(format!("https://{}", address.trim()))
            .arg("--token-file")
            .arg(self.path("tokens/actor.token"))
            .arg("--ca")
            .arg(self.path("cert.pem"))
            .arg("--data")
            .arg(self.path("actor"))
            .args(["--games", "8", "--batch-max", "8", "--threads", "1"])
            .args(["--log", "error", "--drain-seconds", "1", "--exit-with-parent"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// A number of the run's status.
    fn number(&self, name: &str) -> u64 {
        let status: Value = serde_json::from_str(&self.ok("tokens/viewer.token", &["status", "--json"])).unwrap();
        status[name].as_u64().unwrap()
    }

    /// Waits until more games than this are stored.
    async fn more_games_than(&self, games: u64) {
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        while self.number("games") <= games {
            looks.tick().await;
        }
    }
}

/// A coordinator that drains when this is dropped.
struct Coordinator(Child);

impl Drop for Coordinator {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Waits until a file is there.
async fn written(path: &Path) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..3_000 {
        looks.tick().await;
        if path.exists() {
            return;
        }
    }
    panic!("{} was not written within a minute", path.display());
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked_on_the_command_line() {
    let folder = Folder::new();
    let stopped = folder.refused("tokens/admin.token", &["token", "list"]);
    assert!(stopped.contains("no coordinator runs on"), "{stopped}");
    let _coordinator = folder.coordinator();
    written(&folder.path("data/coordinator.addr")).await;

    let status = folder.ok("tokens/viewer.token", &["status"]);
    assert!(status.contains("tokens, TLS"), "{status}");
    let refused = folder.refused("tokens/viewer.token", &["token", "list"]);
    assert!(
        refused.contains("has the role viewer, this call needs admin"),
        "{refused}"
    );

    let out = folder.text("mine.token");
    let create = [
        "token",
        "create",
        "--role",
        "viewer",
        "--name",
        "mine",
        "--expires",
        "1h",
        "--out",
        &out,
    ];
    assert_eq!(folder.ok("tokens/admin.token", &create), "");
    let again = folder.refused("tokens/admin.token", &create);
    assert!(again.contains("never overwritten"), "{again}");
    folder.ok("mine.token", &["status"]);
    folder.ok("mine.token", &["actors", "list"]);
    let list = folder.ok("tokens/admin.token", &["token", "list"]);
    let line = list.lines().find(|line| line.ends_with("mine")).unwrap();
    assert!(line.contains("until 20"), "{line}");
    let id = line.split_whitespace().next().unwrap();
    let revoked = folder.ok("tokens/admin.token", &["token", "revoke", id]);
    assert!(revoked.contains("is revoked"), "{revoked}");
    let refused = folder.refused("mine.token", &["status"]);
    assert!(refused.contains(&format!("token {id} was revoked")), "{refused}");
    let unknown = folder.refused("tokens/admin.token", &["actors", "purge", "nobody", "--since", "1h"]);
    assert!(unknown.contains("no actor \"nobody\" ever registered"), "{unknown}");
}

#[tokio::test]
async fn a_token_comes_from_the_environment_where_no_file_is_named() {
    let folder = Folder::new();
    let _coordinator = folder.coordinator();
    written(&folder.path("data/coordinator.addr")).await;
    let token = |role: &str| std::fs::read_to_string(folder.path(&format!("tokens/{role}.token"))).unwrap();
    let status = |token: &str, more: &[&str]| {
        let (data, ca) = (folder.text("data"), folder.text("cert.pem"));
        let output = Command::new(program("tengen"))
            .args(["token", "list", "--data", &data, "--ca", &ca])
            .args(more)
            .env("TENGEN_TOKEN", token)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (listed, said) = status(&token("admin"), &[]);
    assert!(listed && said.contains("viewer"), "{said}");
    let (listed, said) = status(&token("viewer"), &[]);
    assert!(
        !listed && said.contains("has the role viewer, this call needs admin"),
        "{said}"
    );
    // A file that is named wins.
    let (listed, said) = status(&token("viewer"), &["--token-file", &folder.text("tokens/admin.token")]);
    assert!(listed, "{said}");
    let (listed, said) = status("no token", &[]);
    assert!(!listed && said.contains("TENGEN_TOKEN"), "{said}");
}

#[tokio::test]
async fn a_real_actor_is_suspended_resumed_and_purged_on_the_command_line() {
    let folder = Folder::new();
    let _coordinator = folder.coordinator();
    written(&folder.path("data/coordinator.addr")).await;
    let actors = |words: &[&str]| folder.ok("tokens/admin.token", &[&["actors"][..], words].concat());
    let mut actor = folder.actor();
    folder.more_games_than(0).await;
    let list = actors(&["list"]);
    let id = list.lines().nth(1).unwrap().split_whitespace().next().unwrap();

    let suspended = actors(&["suspend", id, "--reason", "clock is wrong"]);
    assert!(
        suspended.contains(&format!("actor {id} is suspended since 20")),
        "{suspended}"
    );
    // Its standard input is held, so that only the refusal can end it.
    let lifeline = actor.stdin.take();
    assert!(!actor.wait().unwrap().success());
    drop(lifeline);
    let list = actors(&["list"]);
    assert!(list.contains("suspended 20"), "{list}");

    let resumed = actors(&["resume", id]);
    assert!(resumed.contains(&format!("actor {id} is served again")), "{resumed}");
    let stored = folder.number("games");
    let mut actor = folder.actor();
    folder.more_games_than(stored).await;
    drop(actor.stdin.take());
    assert!(actor.wait().unwrap().success());
    let list = actors(&["list"]);
    assert!(list.lines().count() == 2 && !list.contains("suspended"), "{list}");

    let stored = folder.number("games");
    let none = actors(&["purge", id, "--since", "2100-01-01T00:00:00Z"]);
    assert!(none.starts_with("0 self-play games"), "{none}");
    let purged = actors(&["purge", id, "--since", "ever"]);
    assert!(
        purged.starts_with(&format!("{stored} self-play games with ")),
        "{purged}"
    );
    assert_eq!((folder.number("window_positions"), folder.number("games")), (0, stored));
}

#[test]
fn a_whole_cluster_runs_over_tls_with_the_token_it_is_given() {
    let folder = Folder::new();
    let up = |more: &[&str]| {
        let (run, data, config) = (
            folder.text("run.toml"),
            folder.text("data"),
            folder.text("coordinator.toml"),
        );
        let args = [
            "up",
            "--run",
            &run,
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
            "--coordinator-config",
            &config,
        ];
        tengen(args.iter().chain(more))
    };
    let ca = folder.text("cert.pem");
    let without_ca = up(&[]);
    let said = String::from_utf8_lossy(&without_ca.stderr).into_owned();
    assert!(!without_ca.status.success() && said.contains("--ca FILE"), "{said}");
    let viewer = folder.text("tokens/viewer.token");
    let refused = up(&["--ca", &ca, "--token-file", &viewer]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("which must be an admin's"),
        "{said}"
    );

    let admin = folder.text("tokens/admin.token");
    let ran = up(&["--ca", &ca, "--token-file", &admin, "--until-games", "40"]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(shown.contains("coordinator https://127.0.0.1:"), "{shown}");
    // At rest it is read from its files, which asks for no token.
    let data = folder.text("data");
    let status = tengen_ok(["status", "--data", &data]);
    assert!(status.contains("guarded"), "{status}");
    for part in ["coordinator", "learner", "actor-0"] {
        let log = std::fs::read_to_string(folder.path("data/logs").join(format!("{part}.log"))).unwrap();
        let secret = std::fs::read_to_string(folder.path("tokens/admin.token")).unwrap();
        let secret = secret.trim().rsplit('_').next().unwrap();
        assert!(!log.contains(secret), "the log of {part} holds a secret");
    }
}
