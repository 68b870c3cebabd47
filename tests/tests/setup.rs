//! What `make setup` says when it cannot fetch the runtimes: one sentence about what is wrong, and the way out. The script
//! runs on a machine made of stubs, so nothing is fetched, installed or filled.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a stub need not survive a crash")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;
use tengen_system_tests::cluster::repository;

/// What the script takes from any machine.
const TOOLS: [&str; 10] = [
    "cat",
    "cut",
    "dirname",
    "flock",
    "grep",
    "mkdir",
    "mv",
    "rm",
    "sha256sum",
    "tail",
];

/// A pip that writes this line into its log and fails.
fn failing_pip(log: &str) -> String {
    format!(
        r#"case "$*" in
*"pip --version") echo "pip 19.0 from nowhere" ;;
*" download "*)
    while [ "$1" != --log ]; do shift; done
    echo '{log}' >"$2"
    exit 1
    ;;
esac"#
    )
}

/// A machine as the script sees it: the programs it finds, and an empty place for what it fetches.
struct Machine {
    folder: TempDir,
}

impl Machine {
    /// One that lacks nothing but a network.
    fn new() -> Machine {
        let machine = Machine {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(machine.path("bin")).unwrap();
        for tool in TOOLS {
            symlink(found(tool), machine.path("bin").join(tool)).unwrap();
        }
        machine.stub("uname", "case $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac");
        machine.stub("id", "echo 1000");
        machine.stub("c++", "exit 1");
        machine.stub("df", "echo Avail; echo 9000M");
        machine.stub("python3", &failing_pip("NewConnectionError: [Errno 101]"));
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a program in place, instead of what has its name.
    fn stub(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Takes a program away.
    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path("bin").join(name)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(found("bash"))
            .arg(repository().join("scripts/fetch-runtimes"))
            .args(arguments)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.folder.path())
            .output()
            .unwrap()
    }

    /// Runs the script, which must fail, say each of `parts` and leave no stamp. Returns what else it said.
    fn fails(&self, parts: &[&str]) -> String {
        let (into, cache) = (self.path("into"), self.path("cache"));
        let output = self.run(&["--into", into.to_str().unwrap(), "--cache", cache.to_str().unwrap()]);
        assert_refusal(&output, parts);
        assert!(!into.join("stamp").exists(), "the stamp vouches for nothing");
        assert!(!cache.join(".partial").exists(), "half a download is left");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Where this machine has a program.
fn found(name: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").expect("there is a PATH");
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(name));
    places
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("{name} is needed"))
}

fn assert_refusal(output: &Output, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("fetch-runtimes: "), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} in\n{said}");
    }
}

#[test]
fn an_unknown_machine_is_named() {
    let machine = Machine::new();
    machine.stub("uname", "case $1 in -s) echo Linux ;; -m) echo aarch64 ;; esac");
    machine.fails(&[
        "Linux on aarch64 is not supported yet",
        "build on an x86_64 Linux machine",
    ]);
}

#[test]
fn everything_that_is_missing_is_named_at_once_with_the_command_that_installs_it() {
    let machine = Machine::new();
    machine.remove("c++");
    machine.remove("python3");
    machine.fails(&[
        "missing on this machine: a C++ compiler (c++), python3, pip\n",
        "sudo apt-get update && sudo apt-get install -y g++ python3-pip\n",
    ]);

    let machine = Machine::new();
    machine.stub("id", "echo 0");
    machine.stub("python3", "exit 1");
    machine.fails(&[
        "missing on this machine: pip for ",
        "on Debian or Ubuntu: apt-get update && apt-get install -y python3-pip\n",
    ]);
}

#[test]
fn a_disk_without_room_is_named_with_what_is_needed() {
    let machine = Machine::new();
    machine.stub("df", "echo Avail; echo 100M");
    machine.fails(&[
        "not enough disk space at ",
        "/into: 100 MB free, about 1500 MB needed",
        "--into DIR --cache DIR",
    ]);
    // Room for the layout, and none for the wheels.
    machine.stub(
        "df",
        "for place; do :; done; echo Avail; case $place in */cache) echo 2000M ;; *) echo 9000M ;; esac",
    );
    machine.fails(&["/cache: 2000 MB free, about 3000 MB needed", "--into DIR --cache DIR"]);

    let machine = Machine::new();
    machine.stub("python3", &failing_pip("OSError: [Errno 28] No space left on device"));
    let said = machine.fails(&[
        "the disk filled up while downloading torch==",
        "name another place with --cache DIR",
        "wheels that are complete are kept in ",
    ]);
    assert!(!said.contains("trying again"), "{said}");
}

#[test]
fn a_network_that_is_not_there_is_named_with_the_way_around_it_and_not_tried_again() {
    let machine = Machine::new();
    let said = machine.fails(&[
        "the Python package index could not be reached for torch==",
        "https_proxy",
        "without a network: copy the wheels that scripts/runtimes.txt names into ",
        "pip's own words: ",
    ]);
    assert!(!said.contains("trying again"), "{said}");
    let log = std::fs::read_to_string(machine.path("cache/last-failure.log")).unwrap();
    assert!(log.contains("NewConnectionError"), "{log}");
}

#[test]
fn a_wheel_with_another_hash_and_whatever_else_pip_says_is_tried_three_times() {
    let machine = Machine::new();
    machine.stub(
        "python3",
        &failing_pip("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE"),
    );
    let said = machine.fails(&[
        "arrived with another hash than scripts/runtimes.txt pins",
        "served another file",
    ]);
    assert!(said.contains("(2 of 3)") && said.contains("(3 of 3)"), "{said}");

    machine.stub("python3", &failing_pip("something else"));
    machine.fails(&[
        "pip could not download torch==",
        "pip needs version 20.3 or newer; this is: pip 19.0\n",
    ]);
}

#[test]
fn openvino_is_fetched_alone_and_only_when_it_is_asked_for() {
    let machine = Machine::new();
    // It builds nothing.
    machine.remove("c++");
    let (into, cache) = (machine.path("into"), machine.path("cache"));
    let (into_text, cache_text) = (into.to_str().unwrap(), cache.to_str().unwrap());
    assert_refusal(
        &machine.run(&["--openvino", "--into", into_text, "--cache", cache_text]),
        &[
            "could not be reached for onnxruntime-openvino==",
            "copy the wheels that scripts/runtimes-openvino.txt names into ",
        ],
    );
    assert!(!into.join("stamp-openvino").exists(), "the stamp vouches for nothing");
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let machine = Machine::new();
    let refused = |arguments: &[&str], part: &str| {
        assert_refusal(&machine.run(arguments), &[part, "see: scripts/fetch-runtimes --help"]);
    };
    refused(&["--onto", "x"], "unknown argument '--onto'");
    refused(&["--into"], "--into needs a folder");
    let help = machine.run(&["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--cache DIR"));
}
