//! The simulated cluster as an observer sees it, in virtual time.

mod faults;
mod floor;
mod happy;
mod sequences;
mod support;
