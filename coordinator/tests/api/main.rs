//! The coordinator over its real wire: a server on a loopback port, real clients, records of random games.

mod audits;
mod gates;
mod hostile;
mod models;
mod records;
mod rig;
mod runs;
mod window;
