//! The Go toolchain: where it is, and whether it is new enough.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What the newest of the modules asks for.
const WANTED: (u32, u32) = (1, 26);

pub(super) struct Go {
    program: PathBuf,
    /// As `go env GOVERSION` prints it, for instance `go1.26.8`.
    pub(super) version: String,
}

impl Go {
    pub(super) fn find() -> Result<Self> {
        let Some(program) = locate() else {
            bail!(
                "the real stack is built from Go modules, and there is no `go` on the PATH: install Go {}.{} or newer",
                WANTED.0,
                WANTED.1
            );
        };
        let output = Command::new(&program)
            .args(["env", "GOVERSION"])
            .env("GOTOOLCHAIN", "local")
            .output()
            .with_context(|| format!("cannot run `{}`", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if parse(&version).is_none_or(|found| found < WANTED) {
            bail!(
                "the real stack needs Go {}.{} or newer, and `{}` is {version}",
                WANTED.0,
                WANTED.1,
                program.display()
            );
        }
        Ok(Self { program, version })
    }

    /// A `go` command whose result does not depend on the caller's settings.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("nice");
        command
            .args(["-n", "5"])
            .arg(&self.program)
            .env("CGO_ENABLED", "0")
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=readonly")
            .env("GOWORK", "off");
        command
    }
}

fn locate() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/local/go/bin")])
        .map(|dir| dir.join("go"))
        .find(|candidate| candidate.is_file())
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("go")?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_go_prints_them() {
        assert_eq!(parse("go1.26.8"), Some((1, 26)));
        assert_eq!(parse("go1.27rc1"), Some((1, 27)));
        assert_eq!(parse("devel"), None);
    }

    #[test]
    fn only_the_end_of_a_long_error_is_kept() {
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }
}
