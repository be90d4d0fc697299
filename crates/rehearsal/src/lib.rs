//! The simulated cluster.

pub mod scenario;
