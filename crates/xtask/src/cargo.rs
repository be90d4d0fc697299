//! Running cargo and other programs from the repository's root, with the command shown.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Tells the developer something.
#[expect(clippy::print_stderr, reason = "xtask talks to a developer's terminal")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Runs a program to its end; its failure is an error that shows the command.
pub(crate) fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let shown = format!("{program} {}", arguments.join(" "));
    say(&format!("$ {shown}"));
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs cargo, the one that runs this program.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run(&cargo, arguments, &[])
}

/// A program's standard output.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !output.status.success() {
        bail!("`{program} {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Formats the sources, or checks that they are formatted.
pub(crate) fn fmt(check: bool) -> Result<()> {
    if check { cargo(&["fmt", "--all", "--check"]) } else { cargo(&["fmt", "--all"]) }
}
