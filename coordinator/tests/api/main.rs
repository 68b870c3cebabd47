//! The coordinator over its real wire: a server on a loopback port, real clients, records of random games.

mod gates;
mod models;
mod protocol;
mod records;
mod rig;
mod runs;
mod window;
