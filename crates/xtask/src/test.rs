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
    // What compares the rehearsal with real servers has a half that needs none.
    cargo::cargo(&["test", "--package", "testing-e2e", "--lib", "--test", "rehearsal", "--locked"])?;
    if args.quick {
        cargo::say("left out: the tests on the real stack (cargo xtask test runs them)");
        return Ok(());
    }
    for suite in ["facts", "kubectl", "stack", "tools", "flow"] {
        real_stack(suite)?;
    }
    Ok(())
}

fn real_stack(suite: &str) -> Result<()> {
    cargo::cargo(&["test", "--package", "testing-e2e", "--test", suite, "--locked", "--", "--test-threads=1"])
}
