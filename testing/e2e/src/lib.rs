//! What is shared by the tests of the tools on the real stack, and by those that compare the rehearsal with it.
//!
//! * [`Target`]: one way to ask either the rehearsal or a real API server.
//! * [`kubectl`]: a session with kubectl, whose output is the same on both.
//! * [`facts`]: what the tools rely on, one small test each, run against every target.
//!
//! Tests on the real stack are in `tests/` and run under `cargo xtask test`, one after the other, not under
//! `cargo xtask test --quick`. Each brings up a stack of its own with `testing_stack::Stack::up(Options::test(NAME))`,
//! which ends with the test's process. `tests/rehearsal.rs` needs no stack.

pub mod facts;
pub mod kubectl;
mod target;

pub use target::{Answer, Ask, Events, Target};
