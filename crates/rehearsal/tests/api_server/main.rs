//! The API server, as clients see it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod apply;
mod common;
mod crd;
mod discovery;
mod faults;
mod gc;
mod objects;
mod pods;
mod rights;
mod serve;
mod types;
mod watch;
