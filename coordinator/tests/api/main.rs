//! The coordinator over its real wire: a server on a loopback port, real clients, records of random games.

mod database;
mod disk;
mod gates;
mod models;
mod protocol;
mod records;
mod redis;
mod retention;
mod rig;
mod runs;
mod window;
