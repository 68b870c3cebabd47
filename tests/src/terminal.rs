//! A pseudo-terminal with a program in it: what a person would see and type.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// The program's side of the terminal stays open here too, so that its settings can be read when it has ended.
pub struct Terminal {
    process: Child,
    master: File,
    slave: OwnedFd,
    before: Termios,
    screen: String,
}

impl Terminal {
    /// Starts `command` in a terminal of 100 columns and 30 rows.
    pub fn start(mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("its other side");
        unlockpt(&master).expect("its other side");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let slave = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other side");
        let size = Winsize {
            ws_row: 30,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).expect("a size");
        let before = tcgetattr(&slave).expect("its settings");
        let side = || Stdio::from(slave.try_clone().expect("its other side"));
        let process = command
            .env("TERM", "xterm-256color")
            .stdin(side())
            .stdout(side())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program can be started");
        Terminal {
            process,
            master: File::from(master),
            slave,
            before,
            screen: String::new(),
        }
    }

    /// Reads until the program has written `part`.
    pub fn wait_for(&mut self, part: &str) {
        let mut bytes = [0; 4_096];
        while !self.screen.contains(part) {
            self.wait_for_output(part);
            let read = self.master.read(&mut bytes).expect("the terminal is open");
            self.screen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    /// Waits until there is something to read; fails when there never will be.
    fn wait_for_output(&mut self, part: &str) {
        loop {
            let ended = self.process.try_wait().expect("it can be waited for");
            let mut wanted = [PollFd::new(&self.master, PollFlags::IN)];
            let look = Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            if poll(&mut wanted, Some(&look)).expect("the terminal is open") > 0 {
                return;
            }
            assert!(
                ended.is_none(),
                "it ended ({ended:?}) before it wrote {part:?}: {:?}",
                self.screen
            );
        }
    }

    /// Forgets what was read: what is waited for from now on comes later.
    pub fn forget(&mut self) {
        self.screen.clear();
    }

    /// Types.
    pub fn write(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal is open");
    }

    /// The program's id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the end of a program that took the whole screen; the terminal must be as it was before it.
    pub fn ended_well(mut self) -> ExitStatus {
        // Leaving the other screen and showing the cursor are the last things written.
        self.wait_for("\u{1b}[?1049l");
        self.wait_for("\u{1b}[?25h");
        self.ended()
    }

    /// Waits for the end of a program that has written all but its last words; the terminal must be as it was before it.
    pub fn ended(mut self) -> ExitStatus {
        let status = self.process.wait().expect("it can be waited for");
        let after = tcgetattr(&self.slave).expect("its settings");
        let lines = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        assert_eq!(
            after.local_modes & lines,
            self.before.local_modes & lines,
            "the terminal is not as it was"
        );
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Gone already, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
