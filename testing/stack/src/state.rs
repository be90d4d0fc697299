//! The files in the folder of one stack.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::build::Built;
use crate::process::Identity;

/// Names in the folder of one stack.
#[derive(Clone, Debug)]
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.join("logs")
    }

    /// Kubeconfig of an administrator, for programs outside.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.join("kubeconfig")
    }

    /// Kubeconfig of a user who may do nothing.
    pub(crate) fn kubeconfig_without_rights(&self) -> PathBuf {
        self.join("kubeconfig-without-rights")
    }

    /// Kubeconfig of an administrator, for programs inside the stack's network.
    pub(crate) fn kubeconfig_inside(&self) -> PathBuf {
        self.join("kubeconfig-inside")
    }

    /// Where the supervisor listens for requests.
    pub(crate) fn control(&self) -> PathBuf {
        self.join("control.sock")
    }

    /// Through which the API server is reached from outside its network.
    pub(crate) fn gate(&self) -> PathBuf {
        self.join("api.sock")
    }

    pub(crate) fn supervisor_log(&self) -> PathBuf {
        self.logs().join("supervisor.log")
    }
}

/// What must be known of a stack to find it again and to stop it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) keeper: Identity,
    /// The process that holds the namespaces: once it is gone, so is everything in them.
    pub(crate) namespaces: Identity,
    /// Port of the API server on this machine's loopback.
    pub(crate) port: u16,
    pub(crate) built: Built,
}

impl State {
    const FILE: &str = "state.json";

    pub(crate) fn read(dir: &Dir) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(dir.join(Self::FILE)).ok()?).ok()
    }

    pub(crate) fn write(&self, dir: &Dir) -> Result<()> {
        write_json(&dir.join(Self::FILE), self)
    }

    pub(crate) fn alive(&self) -> bool {
        self.keeper.alive() && self.namespaces.alive()
    }
}

/// Writes a file so that a reader sees all of it or nothing.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, serde_json::to_vec_pretty(value)?)
        .and_then(|()| std::fs::rename(&temporary, path))
        .with_context(|| format!("cannot write `{}`", path.display()))
}
