//! The cluster crate against the rehearsal's API server, under a paused clock.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod access;
mod common;
mod connecting;
mod rights;
mod troubles;
mod upgrading;
mod watching;
mod writing;
