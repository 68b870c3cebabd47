//! `tengen games` on files: what it writes, prints and refuses, and how it ends. Runs are in the whole-system tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tengen_service::files::write_atomic;

/// Exit status, standard output and standard error of `tengen games ARGS...`.
fn games(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tengen"))
        .arg("games")
        .args(args)
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().expect("an exit status"),
        text(output.stdout),
        text(output.stderr),
    )
}

fn ok(args: &[&str]) -> String {
    let (status, out, error) = games(args);
    assert_eq!(status, 0, "{args:?}: {out}{error}");
    out
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        write_atomic(&path, text.as_bytes()).expect("a file");
        path.display().to_string()
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A game with an offer, with its choices and its result in the way `tengen` writes them.
const OFFER: &str = "(;FF[4]GM[4]SZ[15]RU[Caro5]GN[sample]PB[chooser]PW[opener]RE[B+Five];B[hh];W[ih];B[jj];DECISION[offer]W[ii];\
                     B[ig];DECISION[take-white]W[gi];B[jg];W[aa];B[kg];W[ca];B[lg];W[ea];B[mg])\n";

#[test]
fn a_game_goes_from_one_format_into_the_others() {
    let folder = Folder::new();
    let sgf = folder.write("offer.sgf", OFFER);
    let psq = ok(&["export", "--from", &sgf, "--format", "psq", "--limit", "1"]);
    let stones = "8,8,0\n9,8,0\n10,10,0\n9,9,0\n9,7,0\n7,9,0\n10,7,0\n1,1,0\n11,7,0\n3,1,0\n12,7,0\n5,1,0\n13,7,0\n";
    // Black's name comes first, as black begins.
    let names = "chooser\nopener\n";
    assert_eq!(psq, format!("Piskvorky 15x15, 0:0, 0\n{stones}{names}-1\n"));

    let document: Value =
        serde_json::from_str(&ok(&["export", "--from", &sgf, "--format", "json"])).expect("an object");
    assert_eq!(document["opening"]["phase1Decision"], "offer");
    assert_eq!(
        (&document["winner"], &document["moveCount"]),
        (&Value::from(1), &Value::from(13))
    );
    let json = folder.write("offer.json", &document.to_string());
    let again = ok(&["export", "--from", &json, "--format", "sgf"]);
    for part in [
        "GM[4]",
        "RU[Caro5]",
        "RE[B+Five]",
        "PB[chooser]",
        "DECISION[offer]W[ii]",
        "DECISION[take-white]W[gi]",
    ] {
        assert!(again.contains(part), "{part}: {again}");
    }
    let records = folder.path("offer.binpb").display().to_string();
    ok(&["export", "--from", &json, "--format", "protobuf", "--out", &records]);
    assert_eq!(ok(&["export", "--from", &records, "--format", "sgf"]), again);
    let lines = ok(&["export", "--from", &json, "--format", "datapoints"]);
    assert_eq!(lines.lines().count(), 8, "the stones behind the opening");
    assert!(lines.lines().all(|line| line.ends_with(";0")), "black won");
}

#[test]
fn a_game_is_shown_with_its_board_at_any_ply() {
    let folder = Folder::new();
    let sgf = folder.write("offer.sgf", OFFER);
    let text = ok(&["show", "--file", &sgf]);
    for part in [
        "of caro5",
        "seat 0 opener",
        "seat 1 chooser",
        "seat 1 won (line) after 15 plies",
        "1. h8  2. i8  3. j6  4. offer",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown: Value =
        serde_json::from_str(&ok(&["show", "1", "--file", &sgf, "--ply", "3", "--json"])).expect("an object");
    assert_eq!(shown["plies_shown"], 3);
    assert_eq!(shown["record"]["game"], "caro5");
    assert_eq!(shown["record"]["plies"].as_array().map(Vec::len), Some(15));
    assert_eq!(shown["moves"][6], "take-white");
    let (status, _, error) = games(&["show", "2", "--file", &sgf]);
    assert_eq!(status, 1);
    assert!(error.contains("has 1 games and none with number 2"), "{error}");
    let (status, _, error) = games(&["show", "--file", &sgf, "--ply", "16"]);
    assert_eq!(status, 1);
    assert!(error.contains("the game has 15 plies, not 16"), "{error}");
}

/// By the bytes of the archive; `make cross-check` loads one with numpy.
#[test]
fn positions_are_written_as_arrays_of_the_stated_shapes() {
    let folder = Folder::new();
    let sgf = folder.write("offer.sgf", OFFER);
    let out = folder.path("positions.npz");
    ok(&[
        "export",
        "--from",
        &sgf,
        "--format",
        "npz",
        "--out",
        &out.display().to_string(),
    ]);
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(read(&out))).expect("an archive");
    let mut array = |name: &str| {
        let mut bytes = Vec::new();
        let mut entry = archive.by_name(&format!("{name}.npy")).expect("an array");
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("its bytes");
        let len = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let head = String::from_utf8_lossy(&bytes[10..len]).into_owned();
        (head, bytes[len..].to_vec())
    };
    let (planes, policy, value) = (array("planes"), array("policy"), array("value"));
    assert!(
        planes.0.contains("'|u1'") && planes.0.contains("(15, 13, 15, 15,)"),
        "{}",
        planes.0
    );
    assert_eq!(planes.1.len(), 15 * 13 * 15 * 15);
    assert!(policy.0.contains("(15, 228,)"));
    let policy: Vec<f32> = floats(&policy.1);
    assert!(policy.chunks(228).all(|row| row.iter().sum::<f32>() == 1.0));
    // Seat 1 wins: the opener's first three stones are lost for the one who placed them.
    assert_eq!(floats(&value.1)[..5], [-1.0, -1.0, -1.0, 1.0, 1.0]);
    assert_eq!(floats(&array("weight").1), [1.0; 15]);
    assert_eq!(floats(&array("scale").1).len(), 13);
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&four| f32::from_le_bytes(four))
        .collect()
}

#[test]
fn files_are_prepared_for_training_and_what_is_no_game_is_named() {
    let folder = Folder::new();
    let rif = folder.write(
        "hand.rif",
        "<database><games>\n<game id=\"7\" bresult=\"1\"><move>h8 h9 i10 g7</move></game>\n<game id=\"8\" \
         bresult=\"0\"><move>h8 h8</move></game>\n<game id=\"7\" bresult=\"1\"><move>h8 h9 i10 g7</move></game>\n</games></database>\n",
    );
    let sgf = folder.write("offer.sgf", OFFER);
    let cut = folder.write("cut.sgf", "(;FF[4]GM[4]\n;B[hh");
    let out = folder.path("sets");
    let text = ok(&[
        "import",
        &rif,
        &sgf,
        &cut,
        "--out",
        &out.display().to_string(),
        "--augment",
    ]);
    assert!(
        text.contains("hand.rif:3: game 8: record rejected (illegal-action): ply 1 (h8): the cell is taken"),
        "{text}"
    );
    assert!(
        text.contains("cut.sgf:2: the file: line 2, column 3: a value without `]`"),
        "{text}"
    );
    assert!(text.contains("3 games read, 2 refused"), "{text}");
    let manifest: Value =
        serde_json::from_slice(&read(&out.join("HD2,AUG,TS0.95,renju/manifest.json"))).expect("an object");
    let part = |name: &str| manifest[name]["games"].as_u64().expect("a number");
    assert_eq!(part("train") + part("validation"), 1, "the same game counts once");
    assert_eq!(
        (&manifest["duplicates"], &manifest["augmentation"]),
        (&1.into(), &true.into())
    );
    assert_eq!(
        (&manifest["history"], &manifest["rulesets"][0]),
        (&"2".into(), &"renju".into())
    );
    assert_eq!(manifest["sources"][0]["refused"], 1);
    let caro5 = out.join("HD2,AUG,TS0.95,caro5");
    let parts = ["train.binpb", "validation.binpb"].map(|name| caro5.join(name).display().to_string());
    assert!(ok(&["verify", &parts[0], &parts[1]]).starts_with("1 games checked"));
    let (status, _, error) = games(&["import", &cut, "--out", &out.display().to_string()]);
    assert_eq!(status, 1);
    assert!(error.contains("no game could be read"), "{error}");
}

#[test]
fn verify_ends_with_status_1_when_something_is_wrong() {
    let folder = Folder::new();
    let sgf = folder.write("offer.sgf", OFFER);
    let good: Value = serde_json::from_str(&ok(&["verify", &sgf, "--json"])).expect("an object");
    assert_eq!((&good["games"], &good["reasons"]["line"]), (&1.into(), &1.into()));
    let other = folder.write("other.sgf", &OFFER.replace("RE[B+Five]", "RE[W+Five]"));
    let (status, out, error) = games(&["verify", &sgf, &other]);
    assert_eq!(status, 1);
    assert!(
        out.contains("the file states a win of seat 0, the rules say a win of seat 1 (line)"),
        "{out}"
    );
    assert!(error.contains("1 of 2 games are wrong"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let hex = folder.write("hex.sgf", "(;FF[4]GM[11]SZ[3]RE[B+];B[b1];W[a1];B[b2];W[a2];B[b3])");
    let refused = |args: &[&str]| {
        let (status, _, error) = games(args);
        assert_ne!(status, 0, "{args:?}");
        error
    };
    assert!(
        refused(&["export", "--from", &hex, "--format", "json"]).contains("json has no place for a game of hex?size=3")
    );
    assert!(refused(&["export", "--from", &hex, "--format", "npz"]).contains("say --out FILE"));
    let psq = folder.write("a.psq", "Piskvorky 15x15, 0:0, 0\n8,8,0\n-1\n");
    assert!(refused(&["verify", &psq]).contains("1 of 1 games are wrong"));
    assert!(games(&["verify", &psq]).1.contains("name it with --game"));
    assert!(games(&["verify", &psq, "--game", "renju"]).1.contains("(unfinished)"));
    let text = folder.write("a.txt", "x");
    assert!(refused(&["verify", &text]).contains("say --input-format"));
    assert!(refused(&["replay", "--file", &hex]).contains("its searches cannot be run again"));
}

#[test]
fn a_game_is_stepped_through_from_the_keyboard() {
    use std::io::Write;
    use std::process::Stdio;
    let folder = Folder::new();
    let sgf = folder.write("offer.sgf", OFFER);
    let mut process = Command::new(env!("CARGO_BIN_EXE_tengen"))
        .args(["games", "replay", "--step", "--file", &sgf])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    process
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"\n\nb\nq\n")
        .expect("keys");
    let output = process.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let plies: Vec<&str> = text.split("[ply ").skip(1).map(|part| &part[..1]).collect();
    assert_eq!(plies, ["0", "1", "2", "1"]);
    assert!(text.contains("seat 0 plays h8 (no search)"), "{text}");
}
