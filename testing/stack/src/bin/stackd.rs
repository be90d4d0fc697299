//! Holds a stack for a test: see `testing_stack::supervise`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use testing_stack::{Supervise, supervise};

fn main() -> Result<()> {
    let mut args = Supervise { dir: PathBuf::new(), tied: false, inner: false };
    let mut rest = std::env::args_os().skip(1);
    while let Some(arg) = rest.next() {
        match arg.to_str() {
            Some("--dir") => args.dir = rest.next().context("`--dir` needs a folder")?.into(),
            Some("--tied") => args.tied = true,
            Some("--inner") => args.inner = true,
            _ => bail!("unknown argument `{}`", arg.to_string_lossy()),
        }
    }
    if args.dir.as_os_str().is_empty() {
        bail!("`--dir` is missing");
    }
    supervise(args)
}
