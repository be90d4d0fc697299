//! Plans, wait verdicts, causes, the clock and the run directory.
//!
//! This crate must not know Kubernetes' client or the command line: no kube, no clap.

pub mod clock;

pub use clock::Clock;
