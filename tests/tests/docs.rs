//! The map must not lie: every path in backticks in `docs/ARCHITECTURE.md` exists in the repository, and so does
//! everything that README and docs link to. Calls that the docs show exist.

use std::collections::BTreeSet;
use std::path::Path;

use prost::Message;
use prost_types::FileDescriptorSet;

const MAP: &str = "docs/ARCHITECTURE.md";

/// A word without a slash counts as a path only with one of these endings; it is then looked up from the root.
const FILE_ENDINGS: [&str; 4] = [".md", ".proto", ".rs", ".toml"];

#[test]
fn every_path_on_the_map_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository");
    let map = std::fs::read_to_string(root.join(MAP)).unwrap_or_else(|error| panic!("{MAP} is the map: {error}"));
    let ignored = ignored_folders(root);
    let paths: Vec<&str> = quoted(&map)
        .into_iter()
        .filter(|word| is_path(word) && !ignored.iter().any(|folder| word.starts_with(folder.as_str())))
        .collect();
    assert!(!paths.is_empty(), "{MAP} names no path at all");
    let missing: Vec<&str> = paths.into_iter().filter(|path| !root.join(path).exists()).collect();
    assert!(missing.is_empty(), "{MAP} names paths that do not exist: {missing:?}");
}

#[test]
fn the_page_about_the_api_is_what_the_protos_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository");
    let page = std::fs::read_to_string(root.join("docs/api.md")).unwrap_or_default();
    assert!(
        page == tengen_system_tests::api_docs::page(),
        "docs/api.md is not current: cargo run -p tengen-system-tests --example api_docs"
    );
}

#[test]
fn links_of_the_readme_and_the_docs_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository");
    let docs = std::fs::read_dir(root.join("docs")).expect("there are docs");
    let mut pages: Vec<_> = docs.flatten().map(|entry| entry.path()).collect();
    pages.push(root.join("README.md"));
    let mut links = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            // A link within its page leads to a heading.
            if !target.starts_with("http") && !target.starts_with('#') {
                links += 1;
                let path = page.parent().expect("a page lies in a folder").join(target);
                assert!(
                    path.exists(),
                    "{} links to {target}, which does not exist",
                    page.display()
                );
            }
        }
    }
    assert!(links > 0, "no page links to another");
}

/// What somebody copies from a page into `grpcurl` is there.
#[test]
fn every_call_that_the_docs_show_is_one_of_the_services() {
    let set = FileDescriptorSet::decode(tengen_proto::DESCRIPTOR_SET).expect("the descriptors of this build");
    let calls: BTreeSet<String> = set
        .file
        .iter()
        .flat_map(|file| file.service.iter().map(move |service| (file.package(), service)))
        .flat_map(|(package, service)| {
            let calls = service.method.iter();
            calls.map(move |call| format!("{package}.{}/{}", service.name(), call.name()))
        })
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository");
    let docs = std::fs::read_dir(root.join("docs")).expect("there are docs");
    let mut pages: Vec<_> = docs.flatten().map(|entry| entry.path()).collect();
    pages.push(root.join("README.md"));
    let mut shown = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        let is_call = |letter: char| letter.is_ascii_alphanumeric() || "._/".contains(letter);
        let words = text.split(|letter: char| !is_call(letter));
        for call in words.filter(|word| word.starts_with("tengen.v1.") && word.contains('/')) {
            assert!(
                calls.contains(call),
                "{} shows {call}, which is no call",
                page.display()
            );
            shown += 1;
        }
    }
    assert!(shown > 3, "{shown} calls are shown");
}

/// Each row of the table names files of tests and, behind each, tests that are in it.
#[test]
fn every_fault_of_other_programs_has_the_tests_that_its_row_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository");
    let page = std::fs::read_to_string(root.join("docs/rules.md")).expect("docs/rules.md is there");
    let (_, table) = page
        .split_once("## Faults of other programs")
        .expect("docs/rules.md has the table");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    for row in rows {
        let mut source = None;
        let mut tests = 0;
        for word in quoted(row) {
            if is_path(word) {
                source =
                    Some(std::fs::read_to_string(root.join(word)).unwrap_or_else(|error| panic!("{word}: {error}")));
            } else {
                let source = source
                    .as_ref()
                    .unwrap_or_else(|| panic!("no file before {word}: {row}"));
                assert!(
                    source.contains(&format!("fn {word}(")),
                    "there is no test {word}: {row}"
                );
                tests += 1;
            }
        }
        assert!(tests > 0, "a row without a test: {row}");
    }
}

/// Whoever has a row of `make bench` finds out what it is, and no row on the page is one that nothing writes.
#[test]
fn the_page_about_benchmarks_has_a_line_for_every_row_of_the_benches() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository");
    let page = std::fs::read_to_string(root.join("docs/benchmarks.md")).expect("docs/benchmarks.md is there");
    // Names of rows are words with underscores; the first cells of other tables are games and sentences.
    let is_row = |name: &str| {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        name.contains('_') && name.chars().all(plain)
    };
    let first_cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let named: Vec<&str> = first_cells.map(|(name, _)| name).filter(|name| is_row(name)).collect();
    assert_eq!(named, tengen_faults::bench::ROWS, "in the order of the list");
}

#[test]
fn only_words_that_look_like_paths_are_looked_up() {
    for word in ["crates/games", "docs/records.md", "Cargo.toml", "proto/", ".ci/run"] {
        assert!(is_path(word), "{word} is a path");
    }
    for word in [
        "tengen up",
        "u8 [N,C,H,W]",
        "std::fs",
        "runs/NAME.toml",
        "/metrics",
        "crates/*",
        "tengen-games",
        "model.onnx",
    ] {
        assert!(!is_path(word), "{word} is no path of the repository");
    }
}

#[test]
fn fenced_blocks_are_not_read_as_paths() {
    assert_eq!(
        quoted("see `a/b`\n```\n`c/d`\n```\nand `e/f`, `g/h`"),
        ["a/b", "e/f", "g/h"]
    );
}

/// The words in single backticks, fenced blocks apart.
fn quoted(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            words.extend(line.split('`').skip(1).step_by(2));
        }
    }
    words
}

/// A placeholder is written in capitals (`runs/NAME.toml`) and is no path; neither is what starts at `/`.
fn is_path(word: &str) -> bool {
    let plain = word
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "._-/".contains(letter));
    let placeholder = word.split(['/', '.']).any(|part| part == "NAME" || part == "DIR");
    let shaped = word.contains('/') || FILE_ENDINGS.iter().any(|ending| word.ends_with(ending));
    plain && !placeholder && shaped && !word.starts_with('/') && !word.contains("//")
}

/// Folders that git ignores (`/target/`): they come and go and are not checked.
fn ignored_folders(root: &Path) -> Vec<String> {
    let rules = std::fs::read_to_string(root.join(".gitignore")).expect("the repository has a .gitignore");
    rules
        .lines()
        .filter_map(|rule| rule.strip_prefix('/').map(str::to_owned))
        .filter(|rule| rule.ends_with('/'))
        .collect()
}
