//! The simulated cluster as an observer sees it, in virtual time.

mod happy;
mod support;
