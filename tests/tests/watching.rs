//! A run as people and their tools watch it: one small cluster, looked at from every side.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tengen_system_tests::cluster::{Up, program, repository, signal, tengen, tengen_ok};
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::terminal::Terminal;

/// Tic-tac-toe whose every candidate is promoted.
const RUN: &str = r#"
[run]
name = "watched"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 8
value_hidden = 8
[[schedule]]
from_iteration = 0
games = 60
simulations = 8
[gate]
kind = "none"
[learner]
batch = 32
window_min_positions = 100
checkpoint_every_steps = 50
[actor]
games = 16
batch_max = 16
precision = "fp32"
[cpu]
learner_threads = 1
actor_threads = 1
"#;

fn write_run(folder: &Path) -> PathBuf {
    let path = folder.join("watched.toml");
    std::fs::write(&path, RUN).unwrap();
    path
}

/// What `/metrics` at this address says.
fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address.trim()).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("text/plain"),
        "{head}"
    );
    body.to_owned()
}

/// Names, types and label names of the metrics in an answer; a histogram by its base name.
fn shown(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut shown: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            shown.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        }
    }
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let name = base.filter(|base| shown.contains_key(*base)).unwrap_or(name);
        let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let labels = labels.map_or("", |labels| labels.0);
        let names = labels.split(',').filter_map(|label| label.split_once('='));
        let names = names.map(|(name, _)| name.to_owned()).filter(|name| name != "le");
        shown
            .get_mut(name)
            .unwrap_or_else(|| panic!("{name} has no type"))
            .1
            .extend(names);
    }
    shown
}

/// The tables of `docs/metrics.md`: name, type, labels.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let page = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let plain = |name: &str| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter(|row| row.split_once('`').is_some_and(|(name, _)| plain(name)))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let labels = cells[3].split(',').map(|label| label.trim().trim_matches('`'));
            let labels = labels.filter(|label| !label.is_empty()).map(str::to_owned);
            (
                cells[0].trim_end_matches('`').to_owned(),
                (cells[1].to_owned(), labels.collect()),
            )
        })
        .collect()
}

fn check_metrics(data: &Path) {
    let documented = documented();
    let mut seen = BTreeSet::new();
    for part in ["coordinator", "learner", "actor-0"] {
        let address = std::fs::read_to_string(data.join("metrics").join(format!("{part}.addr"))).unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let text = scrape(&address);
        for (name, (kind, labels)) in shown(&text) {
            let (kind_wanted, labels_wanted) = documented
                .get(&name)
                .unwrap_or_else(|| panic!("{name} is not in docs/metrics.md"));
            assert_eq!(kind, *kind_wanted, "{name}");
            assert!(labels.is_subset(labels_wanted), "{name} has labels {labels:?}");
            seen.insert(name);
        }
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(value.is_finite(), "{line}");
        }
    }
    // The first two appear with a refusal, the third where the system tells, the others with a GPU to compute on.
    let occasional = [
        "tengen_records_rejected_total",
        "tengen_calls_refused_total",
        "tengen_cpu_lacking_cores",
        "tengen_gpu_busy_ratio",
        "tengen_gpu_memory_bytes",
    ];
    let missing: Vec<&String> = documented
        .keys()
        .filter(|name| !seen.contains(*name) && !occasional.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "documented and not shown: {missing:?}");
}

/// `tengen models pull --follow`, whose lines can be waited for.
struct Follower {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Follower {
    fn start(data: &Path, folder: &Path, more: &[&str]) -> Follower {
        let mut process = Command::new(program("tengen"))
            .args(["models", "pull", "--data"])
            .arg(data)
            .arg("--follow")
            .arg(folder)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Follower { process, lines }
    }

    /// The next promotion it has in place.
    fn next(&mut self) -> String {
        self.lines.next().expect("it goes on").unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Gone already, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The generation that the followed folder's link names; its folder must be whole.
fn followed(folder: &Path) -> u64 {
    let champion = folder.join("champion");
    let sums = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&champion)
        .status()
        .unwrap();
    assert!(sums.success());
    let card = std::fs::read_to_string(champion.join("README.md")).unwrap();
    assert!(card.contains("plays tic-tac-toe"), "{card}");
    json(champion.join("model.json"))["generation"].as_u64().unwrap()
}

fn view(data: &Path) -> Terminal {
    let mut command = Command::new(program("tengen"));
    command
        .args(["status", "--watch", "--interval", "100ms", "--data"])
        .arg(data);
    Terminal::start(command)
}

fn look_through_the_terminal(data: &Path) {
    let mut terminal = view(data);
    terminal.wait_for("\u{1b}[?1049h");
    terminal.wait_for("watched");
    terminal.wait_for("evaluations/s");
    // It goes on: the next frames bring what has changed.
    terminal.forget();
    terminal.wait_for("\u{1b}[");
    terminal.write("q");
    assert!(terminal.ended_well().success());

    let mut terminal = view(data);
    terminal.wait_for("q quits");
    terminal.write("\u{3}");
    assert!(terminal.ended_well().success());

    let mut terminal = view(data);
    terminal.wait_for("q quits");
    signal("TERM", terminal.id());
    assert!(terminal.ended_well().success());
}

fn look_with_scripts(data: &Path) {
    let folder = data.to_str().unwrap();
    // Into a pipe a watch is a line at a time.
    let mut watch = Command::new(program("tengen"))
        .args(["status", "--watch", "--json", "--interval", "100ms", "--data", folder])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let games = [0, 1, 2].map(|_| {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["games"].as_u64().unwrap()
    });
    assert!(games.is_sorted() && games[0] > 0, "{games:?}");
    // The actor tells what its network computes in with its next report.
    let told = |line: &Value| line["actors"][0]["precision"] == "fp32";
    while !told(&serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()) {}
    signal("INT", watch.id());
    assert!(watch.wait().unwrap().success());

    let status: Value = serde_json::from_str(&tengen_ok(["status", "--json", "--data", folder])).unwrap();
    assert_eq!(status["run_id"], "watched");
    assert_eq!(status["champion"]["state"], "champion");
    let actor = &status["actors"][0];
    assert_eq!(
        (&actor["device"], &actor["precision"]),
        (&"auto".into(), &"fp32".into())
    );
    assert!(actor["usage"]["resident_bytes"].as_u64().unwrap() > 1 << 20, "{actor}");
    assert!(status["learner"]["usage"]["cpu_cores_available"].as_u64().unwrap() >= 1);
    // All three compute on the CPU, and so tell of no GPU.
    for usage in [&actor["usage"], &status["learner"]["usage"], &status["usage"]] {
        assert!(
            usage["gpu_busy"].is_null() && usage["gpu_memory_bytes"].is_null(),
            "{usage}"
        );
    }
    let page = tengen_ok(["status", "--data", folder]);
    assert!(page.contains("samples a position") && page.contains("cores"), "{page}");

    let lines = tengen_ok(["iterations", "--json", "--limit", "0", "--data", folder]);
    let iterations: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(iterations.last().unwrap()["iteration"], 0);
    assert!(
        iterations.iter().all(|one| one["games"].as_u64() >= Some(60)),
        "{lines}"
    );
    let table = tengen_ok(["iterations", "--limit", "1", "--data", folder]);
    assert_eq!(table.lines().count(), 2, "{table}");
}

fn ask_the_doctor(data: &Path) {
    let folder = data.to_str().unwrap();
    let found: Value = serde_json::from_str(&tengen_ok(["doctor", "--json", "--data", folder])).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let stops = findings.iter().filter(|finding| finding["severity"] == "stops");
    assert_eq!(stops.count(), 0, "{found:#}");
    // The actor and the learner were told `auto`, and this machine's tests compute on the CPU.
    let page = tengen_ok(["doctor", "--data", folder]);
    assert!(page.contains("found no GPU and computes on"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_watched_from_every_side_and_followed_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (data, mirror) = (folder.path().join("data"), folder.path().join("mirror"));
    let run = write_run(folder.path());
    let mut up = Up::start(&run, &data, &["--metrics", "0"]);
    up.wait_for("generation 1: ");
    look_with_scripts(&data);
    check_metrics(&data);
    ask_the_doctor(&data);
    look_through_the_terminal(&data);

    let mut follower = Follower::start(&data, &mirror, &[]);
    follower.next();
    let first = followed(&mirror);
    follower.next();
    assert!(followed(&mirror) > first);
    let (status, _) = up.interrupt();
    assert!(status.success());

    // It waits for the coordinator, which comes back on another port.
    let up = Up::start(&run, &data, &[]);
    let before = followed(&mirror);
    follower.next();
    assert!(followed(&mirror) > before);
    signal("TERM", follower.process.id());
    assert!(follower.process.wait().unwrap().success());

    // Another one goes on with what is there, and ends when it is told to.
    let wanted = (followed(&mirror) + 1).to_string();
    let mut follower = Follower::start(&data, &mirror, &["--until-generation", &wanted]);
    assert!(follower.process.wait().unwrap().success());
    assert!(followed(&mirror) >= wanted.parse().unwrap());
    let (status, _) = up.interrupt();
    assert!(status.success());

    // At rest there is one finding.
    let page = tengen_ok(["doctor", "--data", data.to_str().unwrap()]);
    for part in ["(at-rest)", "no coordinator serves", "tengen up"] {
        assert!(page.contains(part), "{page}");
    }
}

/// In a terminal the progress of a run is bars that are drawn over, and what happens once is a line above them.
#[test]
fn a_run_in_a_terminal_draws_bars() {
    let folder = tempfile::tempdir().unwrap();
    let run = write_run(folder.path());
    let mut command = Command::new(program("tengen"));
    command
        .args(["up", "--listen", "127.0.0.1:0", "--run"])
        .arg(&run)
        .arg("--data")
        .arg(folder.path().join("data"));
    let mut terminal = Terminal::start(command);
    terminal.wait_for(", coordinator http://127.0.0.1:");
    for bar in [
        "games in all, generation",
        "window         [",
        "learner        [",
        "gate           [",
        "none open",
        "evaluations/s",
    ] {
        terminal.wait_for(bar);
    }
    // It goes on: bars grow over the place of those before them.
    terminal.forget();
    terminal.wait_for("\u{1b}[");
    terminal.wait_for("[=");
    terminal.wait_for(" is champion");
    signal("INT", terminal.id());
    terminal.wait_for("draining");
    terminal.wait_for("stopped");
    assert!(terminal.ended().success());
}

/// A view whose coordinator goes away says so and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn the_view_outlives_its_coordinator() {
    let folder = tempfile::tempdir().unwrap();
    let run = write_run(folder.path());
    let coordinator = Coordinator::start(&run, folder.path(), &[]).await;
    let url = format!("http://{}", coordinator.addr());
    let mut command = Command::new(program("tengen"));
    command.args(["status", "--watch", "--interval", "100ms", "--coordinator", &url]);
    let mut terminal = Terminal::start(command);
    terminal.wait_for("no actor is connected");
    coordinator.drain().await;
    terminal.wait_for("away");
    terminal.write("q");
    assert!(terminal.ended_well().success());
}

/// The last event of a log in JSON.
fn last_event(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_else(|| panic!("no event"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A program that cannot do what it is told.
struct Failing<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    /// Who says so to people in a sentence: that is how a command ends. A server ends with an event.
    sentence_of: Option<&'a str>,
}

impl Failing<'_> {
    /// Ends it, with its log in this form. `tengen` is told the form before its subcommand.
    fn end(&self, format: &str) -> Output {
        let form = ["--log-format", format];
        let mut command = Command::new(program(self.name));
        match self.name {
            "tengen" => command.args(form).args(&self.arguments),
            _ => command.args(&self.arguments).args(form),
        };
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{:?} did what it was told", self.arguments);
        output
    }
}

/// A start of every program, and of those that a command becomes, with a run file, a folder, and one that is not there.
fn failing<'a>(run: &'a str, data: &'a str, nothing: &'a str) -> [Failing<'a>; 6] {
    let server = |name, arguments| Failing {
        name,
        arguments,
        sentence_of: None,
    };
    let command = |name, arguments, speaker| Failing {
        name,
        arguments,
        sentence_of: Some(speaker),
    };
    let listen = ["--listen", "192.0.2.1:1", "--insecure"];
    let join = ["--join", "http://127.0.0.1:1", "--onnxruntime", nothing];
    let coordinator = [&["--run", run, "--data", data], &listen[..]].concat();
    [
        server("tengen-coordinator", coordinator),
        server("tengen-actor", [&["--data", data], &join[..]].concat()),
        server("tengen-learner", vec!["--data", data, "--onnxruntime", nothing]),
        command("tengen", vec!["status", "--data", nothing], "tengen"),
        command("tengen", vec!["db", "check", "--data", nothing], "tengen-coordinator"),
        command("tengen-learner", vec!["bench", "--run", nothing], "tengen-learner"),
    ]
}

#[test]
fn the_event_that_ends_a_process_is_fatal_and_has_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (run, data, nothing) = (path("watched.toml"), path("data"), path("nothing"));
    write_run(folder.path());
    for failing in failing(&run, &data, &nothing) {
        let output = failing.end("json");
        let event = last_event(&output);
        assert_eq!(
            (&event["level"], &event["fields"]["fatal"]),
            (&"error".into(), &true.into()),
            "{event}"
        );
        assert_eq!(
            event["fields"]["exit_code"].as_i64(),
            output.status.code().map(i64::from),
            "{event}"
        );
        assert!(!event["fields"]["error"].as_str().unwrap().is_empty());

        let output = failing.end("text");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.lines().last().unwrap();
        match failing.sentence_of {
            Some(speaker) => assert!(last.starts_with(&format!("{speaker}: ")), "{text}"),
            None => assert!(last.contains("fatal=true") && last.contains("exit_code=1"), "{text}"),
        }
    }
    assert!(!tengen(["--log-format", "xml", "version"]).status.success());
}
