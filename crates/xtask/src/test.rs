//! All tests: unit, rehearsal in process, spawned binaries, doctests, and the real stack.

use anyhow::Result;
use clap::Args;

use crate::cargo;

/// Which tests to run.
#[derive(Args)]
pub(crate) struct TestArgs {
    /// Leave out the tests on the real stack.
    #[arg(long)]
    pub(crate) quick: bool,
}

pub(crate) fn run(args: &TestArgs) -> Result<()> {
    // Binaries first: tests that spawn them must find the present ones.
    cargo::cargo(&["build", "--workspace", "--bins", "--locked"])?;
    cargo::cargo(&["test", "--workspace", "--exclude", "testing-e2e", "--locked"])?;
    if args.quick {
        cargo::say("left out: the tests on the real stack (cargo xtask test runs them)");
        return Ok(());
    }
    cargo::cargo(&["test", "--package", "testing-e2e", "--locked", "--", "--test-threads=1"])
}
