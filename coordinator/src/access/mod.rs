//! Who may do what, and how much of it: tokens and their roles, TLS, connections, rates.
//!
//! Tokens are rows of the database, written by the run's owner; here is what every request is held against. Nothing here
//! stores anything, and no secret is kept: only hashes come in.

mod accept;
mod book;
mod bucket;
mod config;
mod connection;
mod layer;
mod role;
mod throttle;
mod tls;
mod token;
mod unfinished;

pub use config::{Limits, TlsConfig};
pub use role::{NoSuchRole, Role};
pub use tls::TlsError;
pub use token::{NewToken, NoRandomness, NoTokenId, TokenHash, TokenId};

pub(crate) use accept::{Incoming, Listening, listen};
pub(crate) use book::{Access, Caller, OtherToken, Refused, caller};
pub(crate) use config::seconds;
pub(crate) use layer::AccessLayer;
pub(crate) use tls::acceptor;
pub(crate) use token::reveal;
