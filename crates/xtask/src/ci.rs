//! Everything CI checks, cheap things first, so that a slip is told within a minute.

use anyhow::{Context, Result};

use crate::{cargo, generate, test, tidy};

/// The version of cargo-deny that CI uses.
const CARGO_DENY: &str = "0.20";

pub(crate) fn run() -> Result<()> {
    cargo::fmt(true)?;
    tidy::run()?;
    generate::run(true)?;
    cargo::cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    test::run(&test::TestArgs { quick: false })?;
    cargo::run("cargo", &["doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    deny()
}

/// Bans, licences and sources of the dependencies. Installs cargo-deny when the machine has none.
fn deny() -> Result<()> {
    if which::which("cargo-deny").is_err() {
        cargo::cargo(&["install", "cargo-deny", "--locked", "--version", CARGO_DENY])
            .context("cargo-deny is needed and cannot be installed")?;
    }
    cargo::cargo(&["deny", "check", "bans", "licenses", "sources"])
}
