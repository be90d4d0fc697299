//! Tests of the tools on the real stack: one per flow, in `tests/`.
//!
//! They run under `cargo xtask test`, one after the other, and not under `cargo xtask test --quick`. Each brings
//! up a stack of its own with `testing_stack::Stack::up(Options::test(NAME))`, which ends with the test's process.
