//! An actor or a learner alone, on whatever machine and of whatever build a test gives it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cluster::{program, signal};

/// The process. It ends when this is dropped.
pub struct Part(Child);

impl Part {
    /// Starts an actor or a learner as this command says. It drains when the test is gone, however that ended.
    pub fn start(command: &mut Command) -> Part {
        let process = command
            .args(["--log", "error", "--exit-with-parent"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        Part(process)
    }

    /// From now on it does nothing and answers nobody, and its connections stay open.
    pub fn hang(&self) {
        signal("STOP", self.0.id());
    }

    /// kill -9, and its end.
    pub fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it can be waited for");
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command of a small actor on `data` for the coordinator at `url`: `program`, computing on `device`.
pub fn actor(program: &Path, url: &str, data: &Path, device: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--join", url, "--device", device])
        .args(["--games", "16", "--batch-max", "16", "--threads", "1"])
        .arg("--data")
        .arg(data);
    command
}

/// The identity that the actor on `data` has come to the coordinator with.
pub fn actor_id(data: &Path) -> String {
    let id = std::fs::read_to_string(data.join("actor-id")).expect("an actor began on this folder");
    id.trim().to_owned()
}

/// The command of a learner on `data` for the coordinator at `url`, computing where the run's configuration says.
pub fn learner(url: &str, data: &Path) -> Command {
    let mut command = Command::new(program("tengen-learner"));
    command
        .args(["--coordinator", url, "--threads", "1"])
        .arg("--data")
        .arg(data);
    command
}
