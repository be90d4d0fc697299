//! Folders of the module cache that hold what the stack reads at run time: CRDs, stages, bundles.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::toolchain::{Go, last_lines};

/// Read-only folders in Go's module cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Modules {
    /// `sigs.k8s.io/kwok`: its CRDs and the stages of nodes and pods.
    pub(crate) kwok: PathBuf,
    /// `github.com/operator-framework/api`: OLM's CRDs.
    pub(crate) olm_api: PathBuf,
    /// `github.com/openshift/api`: CRDs of machines and of the cluster's configuration.
    pub(crate) openshift_api: PathBuf,
    /// `sigs.k8s.io/node-feature-discovery`: its CRDs.
    pub(crate) nfd: PathBuf,
    /// `github.com/NVIDIA/gpu-operator`: published bundles, and the manifests the operator applies.
    pub(crate) gpu_operator: PathBuf,
}

impl Modules {
    /// Asks Go where the modules are; the answer is kept, and believed while the folders exist.
    pub(super) fn locate(go: &Go, source: &Path, cache: &Path) -> Result<(Self, bool)> {
        let mut hash = Sha256::new();
        for module in ["kwok", "main", "gpu-operator"] {
            let path = source.join(module).join("go.sum");
            hash.update(fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?);
        }
        let kept = cache.join(format!("modules-{}.json", super::short(hash)));
        if let Some(found) = fs::read(&kept).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok())
            && found.all().iter().all(|dir| dir.is_dir())
        {
            return Ok((found, false));
        }
        let find = |folder: &str, module: &str| download(go, &source.join(folder), module);
        let found = Self {
            kwok: find("kwok", "sigs.k8s.io/kwok")?,
            olm_api: find("main", "github.com/operator-framework/api")?,
            openshift_api: find("main", "github.com/openshift/api")?,
            nfd: find("main", "sigs.k8s.io/node-feature-discovery")?,
            gpu_operator: find("gpu-operator", "github.com/NVIDIA/gpu-operator")?,
        };
        fs::write(&kept, serde_json::to_vec_pretty(&found)?).context("cannot keep the places of the modules")?;
        Ok((found, true))
    }

    fn all(&self) -> [&Path; 5] {
        [&self.kwok, &self.olm_api, &self.openshift_api, &self.nfd, &self.gpu_operator]
    }
}

fn download(go: &Go, dir: &Path, module: &str) -> Result<PathBuf> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        dir: PathBuf,
    }
    let output = go
        .command()
        .args(["mod", "download", "-json", module])
        .current_dir(dir)
        .output()
        .context("cannot run `go mod download`")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        bail!("`go mod download {module}` failed:\n{}", last_lines(&text, 10));
    }
    let answer: Answer = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("`go mod download -json {module}` gave no folder"))?;
    Ok(answer.dir)
}
