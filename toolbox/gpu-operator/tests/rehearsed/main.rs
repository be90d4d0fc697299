//! The verbs on a rehearsed cluster.

#![expect(clippy::panic, reason = "helpers of tests fail by panicking")]

mod deploy;
mod namespaces;
mod stack;
mod support;
