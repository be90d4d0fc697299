//! The workspace's own commands: `cargo xtask test`, `ci`, `tidy`, `fmt`, …
//!
//! Nothing here is shipped. Each command is one file.

mod bench;
mod cargo;
mod ci;
mod generate;
mod record;
mod stack;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::Parser;

/// Commands for people who work on this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Format the sources, or check that they are formatted.
    Fmt {
        /// Only check.
        #[arg(long)]
        check: bool,
    },
    /// Check what the compiler cannot: who may depend on whom, file sizes, forgotten files.
    Tidy,
    /// Write the generated files again, or check that they are up to date.
    Generate {
        /// Only check.
        #[arg(long)]
        check: bool,
    },
    /// Run all tests. Sets up what they need.
    Test(test::TestArgs),
    /// Everything CI checks, cheap things first.
    Ci,
    /// Start and stop the real stack: a control plane and operators as processes on this machine.
    Stack(stack::StackArgs),
    /// Record the real server's types for the rehearsal, from a stack that is up.
    RecordTypes(record::RecordArgs),
    /// Measure start-up, sizes, requests, memory and the rehearsal's speed, as ratios and counts.
    Bench,
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Fmt { check } => cargo::fmt(check),
        Command::Generate { check } => generate::run(check),
        Command::Tidy => tidy::run(),
        Command::Test(args) => test::run(&args),
        Command::Ci => ci::run(),
        Command::Stack(args) => stack::run(args),
        Command::RecordTypes(args) => record::run(&args),
        Command::Bench => bench::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            cargo::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
