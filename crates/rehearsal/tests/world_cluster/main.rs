//! The simulated cluster as an observer sees it, in virtual time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "helpers of tests fail by panicking; times are drawn in tenths and compared exactly"
)]

mod faults;
mod floor;
mod happy;
mod moments;
mod sequences;
mod support;
