//! A file system of its own for one program, for the fixed paths that operators read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

/// What a program sees besides nothing: folders and files of the machine, at paths of our choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrivateRoot {
    binds: Vec<(PathBuf, String)>,
}

impl PrivateRoot {
    pub(crate) fn bind(mut self, source: impl Into<PathBuf>, target: impl Into<String>) -> Self {
        self.binds.push((source.into(), target.into()));
        self
    }

    /// The same path inside and outside.
    pub(crate) fn keep(self, path: &Path) -> Self {
        let target = path.to_string_lossy().into_owned();
        self.bind(path, target)
    }

    /// `program` in a mount namespace of its own, with an empty file system at `scratch` as its root.
    pub(super) fn command(
        &self,
        scratch: &Path,
        program: &Path,
        args: &[OsString],
        env: &BTreeMap<String, String>,
    ) -> Result<Command> {
        std::fs::create_dir_all(scratch).with_context(|| format!("cannot create `{}`", scratch.display()))?;
        let mut script =
            String::from("set -e\nR=$1; shift\nmount -t tmpfs -o size=8m tmpfs \"$R\"\nmkdir \"$R/tmp\"\n");
        for (source, target) in &self.binds {
            let source = quote(&source.to_string_lossy());
            let target = quote(target);
            write!(
                script,
                "if [ -d {source} ]; then mkdir -p \"$R\"{target}; \
                 elif [ ! -e \"$R\"{target} ]; then mkdir -p \"$(dirname \"$R\"{target})\"; : > \"$R\"{target}; fi\n\
                 mount --rbind {source} \"$R\"{target}\n"
            )?;
        }
        // `env` sets names that a shell would drop, and needs not exist inside.
        script.push_str("exec env \"$@\"\n");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", &script, "sh"]).arg(scratch);
        command.args(env.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg("chroot").arg(scratch).arg(program).args(args);
        Ok(command)
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
