//! The command line as a user, a CI and a terminal meet it: a spawned program.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod common;
mod runs;
mod scenarios;
mod served;
mod signals;
mod wrong;
