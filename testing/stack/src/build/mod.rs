//! Builds the Go programs of the stack, once per machine.
//!
//! Each folder under `go/` is one module; its `go.mod` and `go.sum` pin everything. The binaries
//! land in a cache outside the checkout, in a folder named by a hash of those two files, the build
//! flags and the toolchain, so that a second run only looks whether they are there.

mod modules;
mod toolchain;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::paths;
pub(crate) use modules::Modules;
use toolchain::Go;

/// Which control plane the stack runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Version {
    /// Kubernetes 1.24.17, the control plane of OpenShift 4.11: holds the whole GPU flow.
    #[default]
    V1_24,
    /// Kubernetes 1.34.4: everything but the GPU Operator, which needs an older API.
    V1_34,
}

impl Version {
    /// The version as the API server prints it.
    pub fn git_version(self) -> &'static str {
        match self {
            Self::V1_24 => "v1.24.17",
            Self::V1_34 => "v1.34.4",
        }
    }

    fn module(self) -> &'static str {
        match self {
            Self::V1_24 => "k8s-1.24",
            Self::V1_34 => "main",
        }
    }
}

/// How much of the stack runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Extent {
    /// Everything.
    #[default]
    Everything,
    /// etcd, the API server, its controllers, the scheduler and kwok: for questions to Kubernetes itself.
    ControlPlane,
}

const PLAIN: &str = "-s -w";
const KUBERNETES: &[&str] = &["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// One `go build`: packages of one module that are built with the same flags.
struct Set {
    /// Folder under `go/`.
    module: &'static str,
    /// Name of the folder in the cache, for people who look.
    name: &'static str,
    /// Import paths, and the file name of each binary.
    packages: Vec<(String, &'static str)>,
    tags: &'static str,
    ldflags: String,
}

fn sets(version: Version, extent: Extent) -> Vec<Set> {
    let mut sets = control_plane_sets(version);
    if extent == Extent::Everything {
        sets.extend(operator_sets());
    }
    sets
}

fn control_plane_sets(version: Version) -> Vec<Set> {
    vec![
        Set {
            module: version.module(),
            name: "kubernetes",
            packages: KUBERNETES.iter().map(|name| (format!("k8s.io/kubernetes/cmd/{name}"), *name)).collect(),
            tags: "",
            ldflags: kubernetes_ldflags(version),
        },
        Set {
            module: "kwok",
            name: "kwok",
            packages: vec![("sigs.k8s.io/kwok/cmd/kwok".into(), "kwok")],
            tags: "",
            ldflags: PLAIN.into(),
        },
        Set {
            module: "main",
            name: "etcd",
            packages: vec![("go.etcd.io/etcd/server/v3".into(), "etcd")],
            tags: "",
            ldflags: PLAIN.into(),
        },
        Set {
            module: "main",
            name: "kubectl",
            packages: vec![("k8s.io/kubernetes/cmd/kubectl".into(), "kubectl")],
            tags: "",
            ldflags: kubernetes_ldflags(Version::V1_34),
        },
    ]
}

fn operator_sets() -> Vec<Set> {
    let olm = "github.com/operator-framework/operator-lifecycle-manager/cmd";
    let nfd = "sigs.k8s.io/node-feature-discovery/cmd";
    vec![
        Set {
            module: "main",
            name: "operators",
            packages: vec![
                (format!("{olm}/olm"), "olm"),
                (format!("{olm}/catalog"), "catalog"),
                (format!("{olm}/package-server"), "package-server"),
                ("github.com/openshift/machine-api-operator/cmd/machineset".into(), "machineset"),
                (format!("{nfd}/nfd-master"), "nfd-master"),
                (format!("{nfd}/nfd-worker"), "nfd-worker"),
            ],
            tags: "",
            ldflags: format!("{PLAIN} -X sigs.k8s.io/node-feature-discovery/pkg/version.version=v0.18.3"),
        },
        Set {
            module: "main",
            name: "opm",
            packages: vec![("github.com/operator-framework/operator-registry/cmd/opm".into(), "opm")],
            tags: "containers_image_openpgp,json1",
            ldflags: PLAIN.into(),
        },
        Set {
            module: "gpu-operator",
            name: "gpu-operator",
            packages: vec![("github.com/NVIDIA/gpu-operator".into(), "gpu-operator")],
            tags: "",
            ldflags: PLAIN.into(),
        },
    ]
}

/// A server linked without a version says `v0.0.0-master+$Format:%H$`, which its clients cannot parse.
fn kubernetes_ldflags(version: Version) -> String {
    let (minor, commit) = match version {
        Version::V1_24 => ("24", "22a9682c8fe855c321be75c5faacde343f909b04"),
        Version::V1_34 => ("34", "0000000000000000000000000000000000000000"),
    };
    let values = [
        ("gitVersion", version.git_version()),
        ("gitMajor", "1"),
        ("gitMinor", minor),
        ("gitTreeState", "clean"),
        ("gitCommit", commit),
        ("buildDate", "1970-01-01T00:00:00Z"),
    ];
    let mut flags = vec![String::from("-s -w")];
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        flags.extend(values.iter().map(|(name, value)| format!("-X {package}.{name}={value}")));
    }
    flags.join(" ")
}

/// Where every program and every module folder of the stack is.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Built {
    /// The control plane these programs make up.
    pub(crate) version: Version,
    /// How much of the stack they are for.
    pub(crate) extent: Extent,
    binaries: std::collections::BTreeMap<String, PathBuf>,
    /// Folders of the modules whose files are needed at run time.
    pub(crate) modules: Modules,
}

impl Built {
    /// The path of a program.
    pub(crate) fn binary(&self, name: &str) -> Result<PathBuf> {
        self.binaries.get(name).cloned().with_context(|| format!("no program `{name}` was built"))
    }
}

/// Builds what is missing and says where everything is. `say` gets one line per part that took time.
pub(crate) fn build(version: Version, extent: Extent, say: &dyn Fn(&str, Duration)) -> Result<Built> {
    let cache = paths::cache_dir()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create `{}`", cache.display()))?;
    // Two builds at once would do everything twice; the second waits for the first.
    let lock = File::create(cache.join("lock")).context("cannot create the lock of the build cache")?;
    lock.lock().context("cannot lock the build cache")?;

    let go = Go::find()?;
    let source = paths::go_dir();
    let mut binaries = std::collections::BTreeMap::new();
    for set in sets(version, extent) {
        let dir = cache.join(key(&source, &set, &go)?);
        if !dir.join("complete").exists() {
            let started = Instant::now();
            run_set(&go, &source, &set, &dir)?;
            say(&format!("built {}", set.name), started.elapsed());
        }
        for (_, name) in &set.packages {
            binaries.insert((*name).to_owned(), dir.join(name));
        }
    }
    let started = Instant::now();
    let (modules, fresh) = Modules::locate(&go, &source, &cache)?;
    if fresh {
        say("located module files", started.elapsed());
    }
    Ok(Built { version, extent, binaries, modules })
}

fn key(source: &Path, set: &Set, go: &Go) -> Result<String> {
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = source.join(set.module).join(file);
        hash.update(fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?);
    }
    for part in [set.ldflags.as_str(), set.tags, go.version.as_str()] {
        hash.update(part);
        hash.update([0]);
    }
    for (package, name) in &set.packages {
        hash.update(format!("{package}={name}\n"));
    }
    Ok(format!("{}-{}", set.name, short(hash)))
}

/// Enough of a hash to tell builds apart, short enough for a folder's name.
fn short(hash: Sha256) -> String {
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    format!("{:016x}", u64::from_be_bytes(first))
}

fn run_set(go: &Go, source: &Path, set: &Set, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
    let common = |command: &mut Command| {
        command
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &set.ldflags])
            .current_dir(source.join(set.module));
        if !set.tags.is_empty() {
            command.args(["-tags", set.tags]);
        }
    };
    // `-o FOLDER/` names each binary after its package; only a single package can be renamed.
    let mut command = go.command();
    common(&mut command);
    if let [(package, name)] = set.packages.as_slice() {
        command.arg("-o").arg(dir.join(name)).arg(package);
    } else {
        let mut folder = OsString::from(dir);
        folder.push("/");
        command.arg("-o").arg(folder).args(set.packages.iter().map(|(package, _)| package));
    }
    let output = command.output().context("cannot run `go build`")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("`go build` of {} failed ({}):\n{}", set.name, output.status, toolchain::last_lines(&text, 30));
    }
    fs::write(dir.join("complete"), "").context("cannot mark the build as complete")
}
