//! Where things are: the sources in the checkout, the cache and the state outside of it.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The folder with the Go modules, in this checkout.
pub(crate) fn go_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("go")
}

/// `$XDG_CACHE_HOME/toolbox-stack`, or the same under `~/.cache`: built programs, shared by every checkout.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    let base = if let Some(dir) = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        PathBuf::from(dir)
    } else {
        let home = std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?;
        PathBuf::from(home).join(".cache")
    };
    Ok(base.join("toolbox-stack"))
}

/// The folder of one running stack: data, logs, sockets, kubeconfig files.
pub(crate) fn state_dir(name: &str) -> PathBuf {
    // A Unix socket's path has at most 107 bytes, which a deep TMPDIR would exceed.
    PathBuf::from(format!("/tmp/toolbox-stack-{}", nix::unistd::getuid())).join(name)
}
