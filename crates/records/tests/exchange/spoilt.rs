//! Spoilt files: 100,000 of each format, and no reader panics, loses its place or believes a game that is none.

use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_records::exchange::{Format, datapoints, delimited, json, psq, sgf};
use tengen_records::testing::exchange::{Readers, spoil};
use tengen_records::{Record, SearchBlock};

use super::records;

pub(crate) const SPOILT: u32 = 100_000;

/// Searches of few actions: a file that is nothing but lists of visits is spoilt in nothing else.
fn thin(record: &mut Record) {
    let mut kept = 0;
    for ply in &mut record.plies {
        let Some(SearchBlock {
            visits, policy_target, ..
        }) = &mut ply.search
        else {
            continue;
        };
        kept += 1;
        if kept > 3 {
            ply.search = None;
            continue;
        }
        visits.truncate(3);
        let sum: u32 = visits.iter().map(|&(_, visits)| visits).sum();
        *policy_target = visits
            .iter()
            .map(|&(action, visits)| (action, visits as f32 / sum as f32))
            .collect();
    }
}

fn thin_records(id: &str, seed: u64) -> Vec<Record> {
    let mut records = records(id, 2, seed);
    records.iter_mut().for_each(thin);
    records
}

/// Spoils `honest` files; at least one game in a thousand files must still be read, or nothing was tried.
fn hammer(format: Format, honest: &[Vec<u8>]) {
    let mut readers = Readers::new(format);
    let read: usize = honest.iter().map(|file| readers.judge(file)).sum();
    assert!(
        read >= honest.len(),
        "honest files are read: {read} of {}",
        honest.len()
    );
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut survived = 0;
    for _ in 0..SPOILT {
        let input = spoil(pick(honest, &mut rng), pick(honest, &mut rng), &mut rng);
        survived += readers.judge(&input);
    }
    assert!(survived > SPOILT as usize / 1_000, "only {survived} games were read");
}

pub(crate) fn pick<'a, R: Rng>(files: &'a [Vec<u8>], rng: &mut R) -> &'a [u8] {
    &files[rng.random_range(0..files.len())]
}

/// The kept inputs of the fuzz target `parse_*` of a format.
fn kept(format: Format) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/seeds/parse_{}", format.as_str()));
    let files = std::fs::read_dir(folder).expect("a folder of kept inputs");
    files
        .map(|file| std::fs::read(file.expect("an entry").path()).expect("a kept input"))
        .collect()
}

#[test]
fn every_kept_input_holds_a_game() {
    for format in [Format::Json, Format::Sgf, Format::Psq, Format::Datapoints, Format::Rif] {
        let mut readers = Readers::new(format);
        for (n, input) in kept(format).iter().enumerate() {
            assert!(readers.judge(input) >= 1, "{} {n}", format.as_str());
        }
    }
}

#[test]
fn no_spoilt_json_breaks_a_promise() {
    let records =
        ["caro5?size=5", "gomoku-standard?size=5", "renju?size=6&opening=swap2"].map(|id| thin_records(id, 1));
    let text = |record: &Record| serde_json::to_vec(&json::export(record).expect("it fits")).expect("a document");
    let honest: Vec<Vec<u8>> = records.iter().flatten().map(text).collect();
    hammer(Format::Json, &honest);
}

#[test]
fn no_spoilt_sgf_breaks_a_promise() {
    let games = [
        "caro5?size=6",
        "gomoku-freestyle?size=9",
        "hex?size=4",
        "go?size=3",
        "amazons?size=4",
    ];
    let records = games.map(|id| records(id, 2, 2));
    let text = |record: &Record| sgf::export(record).expect("it fits").into_bytes();
    let honest: Vec<Vec<u8>> = records.iter().flatten().map(text).collect();
    hammer(Format::Sgf, &honest);
}

#[test]
fn no_spoilt_psq_breaks_a_promise() {
    let records = ["gomoku-freestyle?size=9", "renju"].map(|id| records(id, 2, 3));
    let text = |record: &Record| psq::export(record).expect("it fits").into_bytes();
    let honest: Vec<Vec<u8>> = records.iter().flatten().map(text).collect();
    hammer(Format::Psq, &honest);
}

#[test]
fn no_spoilt_datapoint_breaks_a_promise() {
    let records = records("gomoku-freestyle", 2, 4);
    let lines = records
        .iter()
        .map(|record| datapoints::export(record).expect("it fits"));
    // A handful of lines a file.
    let honest: Vec<Vec<u8>> = lines
        .flat_map(|text| {
            let lines: Vec<&str> = text.lines().take(12).collect();
            lines
                .chunks(3)
                .map(|lines| lines.join("\n").into_bytes())
                .collect::<Vec<_>>()
        })
        .filter(|file| !file.is_empty())
        .collect();
    hammer(Format::Datapoints, &honest);
}

#[test]
fn no_spoilt_rif_breaks_a_promise() {
    let file = |moves: &str, result: &str| {
        format!(
            "<?xml version=\"1.0\"?>\n<database><games>\n<game id=\"1\" rule=\"1\" black=\"1\" white=\"2\" bresult=\"{result}\" \
             opening=\"1\"><move>{moves}</move></game>\n<game id=\"2\" bresult=\"0.5\"><move>h8 a1 o15</move></game>\n\
             </games></database>\n"
        )
        .into_bytes()
    };
    let honest = [
        file("h8 h9 i10 g7", "1"),
        file("h8 i9 i7 g7 g9 k3", "0"),
        file("a1 b2 c3 d4 e5 f6 g7", "0.5"),
    ];
    hammer(Format::Rif, &honest);
}

#[test]
fn no_spoilt_file_of_records_breaks_a_promise() {
    let records = ["caro5?size=5", "tic-tac-toe", "connect-four"].map(|id| thin_records(id, 5));
    let honest: Vec<Vec<u8>> = records
        .iter()
        .map(|records| {
            let mut bytes = Vec::new();
            records
                .iter()
                .take(2)
                .for_each(|record| delimited::append(record, &mut bytes));
            bytes
        })
        .collect();
    hammer(Format::Protobuf, &honest);
}
