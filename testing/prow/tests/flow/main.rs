//! The main job as a CI meets it, in one process on a simulated cluster: killed, interrupted, repeated, taken back.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod again;
mod interrupted;
mod killed;
mod makespan;
mod secrets;
mod support;
mod undone;
