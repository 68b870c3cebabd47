//! Machines and builds with something wrong about them, which real programs run on and are made of. No program knows of it:
//! what is changed is what it is told by the system, or a text in its own file.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::cluster::{program, repository};

/// What is wrong with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its clock is an hour behind.
    Clock,
    /// What it computes is not the same every time.
    Arithmetic,
}

impl Fault {
    /// The library that makes it so, from `tests/unwell`.
    const fn source(self) -> &'static str {
        match self {
            Fault::Clock => "clock.c",
            Fault::Arithmetic => "arithmetic.c",
        }
    }
}

/// Has a program run on a machine with these faults. What is needed for that is made in `folder`, with the C compiler that
/// Rust links programs with.
pub fn on_machine_with(faults: &[Fault], folder: &Path, command: &mut Command) {
    let sources: Vec<&str> = faults.iter().map(|fault| fault.source()).collect();
    let library = folder.join(format!("{}.so", sources.join("-")));
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-fno-builtin", "-o"])
        .arg(&library)
        .args(&sources)
        .arg("-lm")
        .current_dir(repository().join("tests/unwell"))
        .status();
    assert!(made.expect("cc can be started").success());
    command.env("LD_PRELOAD", library);
}

/// Has a program find no GPU, whatever this machine has.
pub fn without_gpus(command: &mut Command) {
    command.env("CUDA_VISIBLE_DEVICES", "");
}

/// Makes `path` the program `name` as a build would be that has the text `other` where this one has `text`, which is as long.
pub fn other_build(name: &str, text: &str, other: &str, path: &Path) {
    assert!(text.len() == other.len() && text != other, "{text:?} and {other:?}");
    let (ours, text) = (program(name), text.as_bytes());
    let bytes = std::fs::read(&ours).expect("a program can be read");
    let windows = bytes.windows(text.len()).enumerate();
    let found = windows.filter(|(_, window)| window.first() == text.first() && *window == text);
    let places: Vec<usize> = found.map(|(place, _)| place).collect();
    assert!(!places.is_empty(), "{name} holds nothing to put {other:?} in place of");
    std::fs::copy(&ours, path).expect("a program can be copied");
    let copy = OpenOptions::new().write(true).open(path);
    let copy = copy.expect("a copy can be changed");
    for place in places {
        let changed = copy.write_all_at(other.as_bytes(), place as u64);
        changed.expect("a copy can be changed");
    }
}
