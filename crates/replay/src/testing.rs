//! What tests of several crates share: the [`contract`] of the window's stores, and a Redis server of a test's own. It is
//! on a free loopback port, in a folder of its own, and ended when dropped. Tests of every crate that meets Redis start
//! theirs here; none ever uses a server that happens to run.
//!
//! Not for programs: it panics when the server cannot be started.

mod cage;
pub mod contract;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

pub use cage::Cage;

/// How often another port is tried when somebody was quicker to take the one that was free.
const PORTS_TRIED: u32 = 20;

/// What a server may still take that is to run out of memory.
const MEMORY_LEFT_BYTES: u64 = 8 << 20;

/// A server process.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    folder: PathBuf,
    arguments: Vec<String>,
    port: u16,
}

impl RedisServer {
    /// Starts a server that keeps its files in `folder`, with `noeviction` and these arguments besides.
    ///
    /// # Panics
    /// When there is no `redis-server`, or it does not start.
    pub fn start(folder: &Path, arguments: &[&str]) -> RedisServer {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        for _ in 0..PORTS_TRIED {
            let port = free_port();
            if let Some(process) = launch(folder, port, &arguments) {
                return RedisServer {
                    process,
                    folder: folder.to_owned(),
                    arguments,
                    port,
                };
            }
        }
        panic!("redis-server did not start on {PORTS_TRIED} ports that were free");
    }

    /// Starts a server that is a cluster of one node, which owns every slot.
    ///
    /// # Panics
    /// As [`RedisServer::start`], and when the server is older than 7.0.
    pub fn start_cluster(folder: &Path) -> RedisServer {
        // The port of the cluster's bus is its own port and 10,000: a port too high for that is one more that is not free.
        let server = RedisServer::start(folder, &["--cluster-enabled", "yes"]);
        server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        // A node serves no key in its first two seconds. Waiting for a replica that never comes passes a tenth of one.
        while server
            .ask(&["EXISTS", "key"])
            .is_some_and(|answer| answer.starts_with("-CLUSTERDOWN"))
        {
            server.command(&["WAIT", "1", "100"]);
        }
        server
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as `kill -9` does: nothing is written any more.
    pub fn kill(&mut self) {
        let _gone = self.process.kill();
        let _status = self.process.wait();
    }

    /// Starts it again after [`RedisServer::kill`], on the same port and folder.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.process = launch(&self.folder, self.port, &self.arguments).expect("the port is still ours");
    }

    /// Freezes it: connections stay open and nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on after [`RedisServer::freeze`].
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Lets it run out of memory: somebody else's data fills what it may still take. Returns how it ended, and what ended
    /// it.
    ///
    /// # Panics
    /// When it does not die of that.
    pub fn run_out_of_memory(&mut self) -> (ExitStatus, Cage) {
        let cage = Cage::around(self.process.id(), MEMORY_LEFT_BYTES);
        let beyond = (8 * MEMORY_LEFT_BYTES).to_string();
        let answer = self.ask(&["SETRANGE", "somebody-else", &beyond, "x"]);
        assert!(answer.as_ref().is_none_or(String::is_empty), "it lives on: {answer:?}");
        (self.process.wait().expect("it can be waited for"), cage)
    }

    /// Runs a command given in words and returns the first line of the answer.
    ///
    /// # Panics
    /// When the server does not answer, or answers with an error.
    pub fn command(&self, words: &[&str]) -> String {
        let answer = self.ask(words).expect("the server answers");
        assert!(!answer.is_empty() && !answer.starts_with('-'), "{words:?}: {answer}");
        answer.trim_end().to_owned()
    }

    /// The first line of the answer to a command; empty, or nothing, when the server ends instead.
    fn ask(&self, words: &[&str]) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).ok()?;
        Some(answer)
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .arg(signal)
            .arg(self.process.id().to_string())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
    listener
        .local_addr()
        .as_ref()
        .map(SocketAddr::port)
        .expect("it is bound")
}

/// Starts the process and returns once it accepts connections; `None` when it ended before that.
fn launch(folder: &Path, port: u16, arguments: &[String]) -> Option<Child> {
    let mut process = Command::new("redis-server")
        .current_dir(folder)
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir", "."])
        .args([
            "--save",
            "",
            "--maxmemory-policy",
            "noeviction",
            "--daemonize",
            "no",
            "--logfile",
            "",
        ])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("redis-server: {error} (Debian, Ubuntu: apt-get install redis-server)"));
    let output = process.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let ready = lines.any(|line| line.contains("Ready to accept connections"));
    if !ready {
        let _status = process.wait();
        return None;
    }
    // What it says later is read and dropped, so that it never waits for us. The thread ends with the process.
    let drain = std::thread::Builder::new().name("redis-output".to_owned());
    drain.spawn(move || lines.for_each(drop)).expect("a thread");
    Some(process)
}
