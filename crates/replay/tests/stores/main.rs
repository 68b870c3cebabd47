//! The window's stores: one contract that both keep, and what only Redis can do or suffer. Redis is a real server that
//! each test starts for itself.

mod contract;
mod redis;
mod stores;
mod tls;
