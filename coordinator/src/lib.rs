//! The coordinator: owns a run's truth and serves it.
//!
//! It checks every game against the rules and stores it before it says so, hands out work, decides gates, changes the
//! champion, keeps the window, and tells how the run is doing. What happens next in a run is decided by
//! `tengen-control`, a pure state machine; this crate gives it events, carries out its effects in SQLite, and speaks
//! gRPC. **It plays no game**, and no verdict or decision waits for a network: one thread evaluates some positions of
//! stored games again, to find actors whose network is not the one they name.

mod access;
mod archive;
mod audit;
pub mod cli;
mod clock;
mod config;
mod cores;
mod db;
mod diagnose;
mod disk;
mod facts;
mod failpoint;
mod feed;
mod files;
mod game;
mod gate_rules;
mod init;
mod messages;
pub mod metrics;
mod read_only;
mod replay_config;
mod retention;
mod run;
mod runs;
mod server;
mod services;
mod settings;
mod setup;
pub mod store;
mod take_up;
mod window;

pub use access::{
    Limits, NewToken, NoRandomness, NoSuchRole, NoTokenId, Role, TlsConfig, TlsError, TokenHash, TokenId,
};
pub use audit::{AuditConfig, AuditStartError};
pub use config::Config;
pub use disk::DiskConfig;
pub use disk::file_system::FileSystemError;
pub use failpoint::DieAt;
pub use init::{InitError, init};
pub use read_only::{ReadOnly, ReadOnlyOptions};
pub use replay_config::{ReplayConfigError, ReplayStore};
pub use retention::RetentionConfig;
pub use server::{Coordinator, CoordinatorError, LiveKeys, Options};
pub use settings::{Change, SettingsFault};
pub use setup::SetupError;
