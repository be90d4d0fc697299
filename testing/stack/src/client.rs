//! Connecting with a kubeconfig file of the stack.

use std::path::Path;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};

pub(crate) async fn connect(kubeconfig: &Path) -> Result<kube::Client> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read the kubeconfig `{}`", kubeconfig.display()))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .context("cannot use the kubeconfig of the stack")?;
    kube::Client::try_from(config).context("cannot make a client for the stack")
}
