//! A bound on the memory that a process may still take. Where this machine lets us make a memory control group, the kernel
//! kills the process that goes beyond; elsewhere its address space is bounded, and its own allocator gives up.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the control groups, the file with the bound, and the file that counts kills: of version 2, and of version 1.
const VERSIONS: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup", "memory.max", "memory.events"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
];

/// The bound; it is taken away when this is dropped.
#[derive(Debug)]
pub struct Cage {
    process: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// What the process has it keeps; what it takes from now on counts.
    Group {
        folder: PathBuf,
        kills: PathBuf,
    },
    AddressSpace,
}

impl Cage {
    /// Lets `process` take so many bytes more.
    ///
    /// # Panics
    /// When there is neither a way to make a control group nor the program `prlimit`.
    pub fn around(process: u32, more_bytes: u64) -> Cage {
        let group = VERSIONS
            .iter()
            .find_map(|version| group(*version, process, more_bytes).ok());
        let kind = group.unwrap_or_else(|| {
            let bound = address_space(process) + more_bytes;
            let bounded = Command::new("prlimit")
                .args([format!("--pid={process}"), format!("--as={bound}")])
                .status();
            assert!(bounded.is_ok_and(|status| status.success()), "prlimit");
            Kind::AddressSpace
        });
        Cage { process, kind }
    }

    /// Processes that the kernel has killed for going beyond; none where it does not.
    ///
    /// # Panics
    /// When the kernel's count cannot be read.
    pub fn kernel_kills(&self) -> Option<u64> {
        let Kind::Group { kills, .. } = &self.kind else {
            return None;
        };
        let text = std::fs::read_to_string(kills).expect("the group is there");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        Some(count.expect("the kernel counts").trim().parse().expect("a number"))
    }
}

impl fmt::Display for Cage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Group { .. } => "the kernel's out-of-memory killer, in a memory control group",
            Kind::AddressSpace => "its own allocator, which aborts at the bound of its address space",
        })
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        let Kind::Group { folder, .. } = &self.kind else {
            return;
        };
        // A process that is alive still goes back to where everybody is; a group with nobody in it can be removed, once
        // the kernel has done away with the dead.
        let everybody = folder.parent().map(|parent| parent.join("cgroup.procs"));
        let _left = everybody.map(|file| write(&file, &self.process.to_string()));
        for _ in 0..10_000 {
            if std::fs::remove_dir(folder).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// Makes a group with this bound and puts the process into it.
fn group((base, bound, kills): (&str, &str, &str), process: u32, more_bytes: u64) -> io::Result<Kind> {
    let folder = Path::new(base).join(format!("tengen-test-{process}"));
    std::fs::create_dir(&folder)?;
    let made = write(&folder.join(bound), &more_bytes.to_string())
        .and_then(|()| write(&folder.join("cgroup.procs"), &process.to_string()));
    if let Err(error) = made {
        let _empty = std::fs::remove_dir(&folder);
        return Err(error);
    }
    Ok(Kind::Group {
        kills: folder.join(kills),
        folder,
    })
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    // Never creates a file: in a folder that is no control group there is none.
    let mut file = std::fs::OpenOptions::new().write(true).open(file)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Bytes of address space that a process has.
fn address_space(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = kib.and_then(|text| text.trim().strip_suffix("kB"));
    let kib: u64 = kib.and_then(|text| text.trim().parse().ok()).expect("the kernel tells");
    kib * 1_024
}
