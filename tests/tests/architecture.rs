//! The walls between the parts, read from `cargo metadata` and from the sources: who may import whom, which room alone
//! names a native library, what the pure rooms never touch, and how short a `main.rs` is.
//!
//! A wall is moved by editing the tables below and `docs/ARCHITECTURE.md` in the same commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each part with the parts its normal dependencies may name. Its tests may also name what lies further down.
#[rustfmt::skip] // one row a part
const WALLS: &[(&str, &[&str])] = &[
    ("proto", &[]),
    ("faults", &[]),
    ("games", &[]),
    ("control", &[]),
    ("search", &["games"]),
    ("network", &["games"]),
    ("records", &["games", "proto"]),
    ("inference", &["network"]),
    ("replay", &["games", "records"]),
    ("selfplay", &["games", "search", "records", "network", "inference", "proto"]),
    ("service", &["games", "search", "network", "control", "proto"]),
    ("actor", &["games", "search", "records", "network", "inference", "selfplay", "service", "proto"]),
    ("coordinator", &["games", "search", "records", "network", "control", "replay", "selfplay", "service", "proto"]),
    ("learner", &["games", "records", "network", "inference", "replay", "service", "proto"]),
    ("cli", &["games", "search", "records", "network", "inference", "selfplay", "service", "proto"]),
    ("system-tests", &["games", "search", "records", "network", "control", "inference", "replay", "selfplay", "service", "proto", "faults"]),
];

/// Parts for tests alone, which the tests of every part may name.
const FOR_TESTS: &[&str] = &["faults"];

/// Outside crates with a heavy or native side, each with the one part that may name it.
const OWNERS: &[(&str, &str)] = &[
    ("criterion", "faults"),
    ("nvml-wrapper", "service"),
    ("ort", "inference"),
    ("ort-sys", "inference"),
    ("redis", "replay"),
    ("rusqlite", "coordinator"),
    ("tch", "learner"),
    ("torch-sys", "learner"),
];

/// Whole-system tests read the coordinator's database the way a user would, with a SQLite client of their own.
const OWNER_EXCEPTIONS: &[(&str, &str)] = &[("rusqlite", "system-tests")];

/// Parts without clock, files, network, threads or hidden randomness: time and randomness are arguments.
const PURE: &[&str] = &["games", "search", "control"];

/// Every outside crate that a pure part may name, because none of them does any IO.
const PURE_DEPENDENCIES: &[&str] = &[
    "blake3",
    "hex",
    "rand",
    "rand_xoshiro",
    "serde",
    "serde_json",
    "thiserror",
];

/// What the source of a pure part never says, unit tests apart.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "time::Instant",
    "SystemTime",
    "tokio",
    "rand::rng()",
    "rand::random",
    "SysRng",
];

const BINARIES: &[&str] = &["actor", "coordinator", "learner", "cli"];
const MAIN_LINES_MAX: usize = 40;

/// One workspace member as the manifest states it.
struct Part {
    folder: PathBuf,
    /// Names of the normal and build dependencies.
    normal: BTreeSet<String>,
    dev: BTreeSet<String>,
}

#[test]
fn imports_point_down_only() {
    let parts = parts();
    let mut breaches = Vec::new();
    for (name, part) in &parts {
        let Some(allowed) = allowed(name) else {
            breaches.push(format!(
                "{name} is a new part: give it a row in WALLS and in docs/ARCHITECTURE.md"
            ));
            continue;
        };
        let below = below(name);
        for import in part.normal.iter().filter_map(|dependency| part_name(dependency)) {
            if !allowed.contains(&import) {
                breaches.push(format!(
                    "{name} must not import {import}: it may import only {allowed:?}"
                ));
            }
        }
        for import in part.dev.iter().filter_map(|dependency| part_name(dependency)) {
            if !below.contains(import) && !FOR_TESTS.contains(&import) {
                breaches.push(format!(
                    "the tests of {name} must not import {import}: it does not lie below {name}"
                ));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn the_table_of_walls_has_no_cycle_and_no_stranger() {
    let parts = parts();
    for (name, allowed) in WALLS {
        assert!(
            parts.contains_key(*name),
            "WALLS names {name}, which is no member of the workspace"
        );
        for import in *allowed {
            assert!(
                allowed_is_known(import),
                "WALLS lets {name} import {import}, which has no row of its own"
            );
            assert!(
                !BINARIES.contains(import),
                "WALLS lets {name} import {import}, which is a program"
            );
        }
        assert!(
            !below(name).contains(*name),
            "WALLS lets {name} import itself by way of others"
        );
    }
}

#[test]
fn native_libraries_are_named_in_one_place() {
    let mut breaches = Vec::new();
    for (name, part) in &parts() {
        for (library, owner) in OWNERS {
            let excepted = OWNER_EXCEPTIONS.contains(&(library, name.as_str()));
            if name != owner && !excepted && (part.normal.contains(*library) || part.dev.contains(*library)) {
                breaches.push(format!("{name} must not name {library}: only {owner} does"));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn pure_parts_depend_on_nothing_that_does_io() {
    let parts = parts();
    let mut breaches = Vec::new();
    for name in PURE {
        for dependency in &parts[*name].normal {
            if part_name(dependency).is_none() && !PURE_DEPENDENCIES.contains(&dependency.as_str()) {
                breaches.push(format!(
                    "{name} must not name {dependency}: a pure part names only {PURE_DEPENDENCIES:?}; a crate that \
                     does no IO, keeps no clock and draws no randomness of its own may join that list"
                ));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn pure_parts_touch_no_clock_file_network_or_thread() {
    let parts = parts();
    let mut breaches = Vec::new();
    for name in PURE {
        for path in rust_files(&parts[*name].folder.join("src")) {
            let source = std::fs::read_to_string(&path).expect("a listed source file is readable");
            for (number, word) in impurities(&source) {
                breaches.push(format!("{}:{number} says {word}: {name} is pure", path.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn impurities_are_found_in_every_spelling_of_an_import() {
    let found = |source: &str| impurities(source).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(found("use std::fs::File;"), [1]);
    assert_eq!(found("use std::{\n    fmt,\n    fs,\n};"), [3]);
    assert_eq!(found("use std::time::{Duration, Instant};"), [1]);
    assert_eq!(found("use std::{io, time::{Duration, Instant}};"), [1]);
    assert_eq!(found("let now = std::time::SystemTime::now();"), [1]);
    assert_eq!(found("let x = 1; // std::fs would be wrong here"), [0; 0]);
    assert_eq!(found("use std::{fmt, iter};\nfn fs() {}"), [0; 0]);
    assert_eq!(found("fn f() {}\n#[cfg(test)]\nmod tests { use std::fs; }"), [0; 0]);
}

#[test]
fn every_program_has_a_short_main() {
    let parts = parts();
    for name in BINARIES {
        let path = parts[*name].folder.join("src/main.rs");
        let lines = std::fs::read_to_string(&path)
            .expect("every program has a src/main.rs")
            .lines()
            .count();
        assert!(
            lines <= MAIN_LINES_MAX,
            "{} has {lines} lines, at most {MAIN_LINES_MAX} are wanted: move the rest into the library beside it",
            path.display()
        );
    }
}

/// The members of the workspace by the names WALLS uses.
fn parts() -> BTreeMap<String, Part> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    packages
        .iter()
        .map(|package| (member_name(package), part(package)))
        .collect()
}

fn member_name(package: &Value) -> String {
    let name = package["name"].as_str().expect("a package has a name");
    part_name(name).unwrap_or(name).to_owned()
}

fn part(package: &Value) -> Part {
    let manifest = Path::new(package["manifest_path"].as_str().expect("a package has a manifest"));
    let dependencies = package["dependencies"].as_array().expect("a package has dependencies");
    let names = |wants_dev: bool| {
        dependencies
            .iter()
            .filter(|dependency| (dependency["kind"] == "dev") == wants_dev)
            .map(|dependency| dependency["name"].as_str().expect("a dependency has a name").to_owned())
            .collect()
    };
    Part {
        folder: manifest.parent().expect("a manifest lies in a folder").to_owned(),
        normal: names(false),
        dev: names(true),
    }
}

/// `games` for `tengen-games`, `cli` for `tengen`; nothing for an outside crate.
fn part_name(package: &str) -> Option<&str> {
    if package == "tengen" {
        Some("cli")
    } else {
        package.strip_prefix("tengen-")
    }
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    WALLS
        .iter()
        .find(|(part, _)| *part == name)
        .map(|(_, allowed)| *allowed)
}

fn allowed_is_known(name: &str) -> bool {
    allowed(name).is_some()
}

/// Everything that can be reached from `name` through WALLS.
fn below(name: &str) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&'static str> = allowed(name).unwrap_or_default().to_vec();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(allowed(next).unwrap_or_default());
        }
    }
    reached
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a part has a src folder") {
        let path = entry.expect("a folder's entry is readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Lines (from 1) of `source` that say one of IMPURE, comments and everything from the first `#[cfg(test)]` on apart.
fn impurities(source: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    // Names that stand open in a grouped import, `use std::{time::{` being ["std", "time"].
    let mut groups: Vec<String> = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if code.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let spelled_out = expand_imports(code, &mut groups);
        let said = IMPURE
            .iter()
            .find(|word| code.contains(**word) || spelled_out.iter().any(|path| path.contains(**word)));
        found.extend(said.map(|word| (index + 1, *word)));
    }
    found
}

/// The full paths of the names that one line of a grouped import holds; `groups` carries what stays open to the next.
fn expand_imports(code: &str, groups: &mut Vec<String>) -> Vec<String> {
    let code = code.trim();
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let rest = match code.strip_prefix("use ") {
        Some(rest) => rest,
        None if groups.is_empty() => return Vec::new(),
        None => code,
    };
    let mut paths = Vec::new();
    let mut name = String::new();
    for letter in rest.chars() {
        match letter {
            '{' => groups.push(std::mem::take(&mut name)),
            '}' | ',' | ';' => {
                if !name.is_empty() {
                    paths.push(format!("{}{}", groups.concat(), std::mem::take(&mut name)));
                }
                if letter == '}' {
                    groups.pop();
                }
            }
            letter if letter.is_whitespace() => {}
            letter => name.push(letter),
        }
    }
    paths
}
