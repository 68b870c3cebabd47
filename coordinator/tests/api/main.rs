//! The coordinator over its real wire: a server on a loopback port, real clients, records of random games.

mod audits;
mod audits_elsewhere;
mod database;
mod diagnose;
mod disk;
mod games;
mod gate_kinds;
mod gates;
mod hostile;
mod models;
mod precisions;
mod protocol;
mod ratings;
mod records;
mod redis;
mod redis_faults;
mod retention;
mod rig;
mod runs;
mod settings;
mod steering;
mod watch;
mod window;
