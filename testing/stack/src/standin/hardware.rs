//! What a node is made of: sizes, operating system, GPUs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::supervise::Shared;

/// Kernel of the nodes; their NFD worker reads it as well.
pub(super) const KERNEL: &str = "4.18.0-372.26.1.el8_6.x86_64";
/// Version of the nodes' operating system; the driver toolkit's image stream has a tag of this name.
const RHCOS: &str = "411.86.202210041459-0";
const OS_RELEASE: &str = "NAME=\"Red Hat Enterprise Linux CoreOS\"\n\
    ID=\"rhcos\"\n\
    ID_LIKE=\"rhel fedora\"\n\
    VERSION=\"411.86.202210041459-0\"\n\
    VERSION_ID=\"4.11\"\n\
    OPENSHIFT_VERSION=\"4.11\"\n\
    RHEL_VERSION=\"8.6\"\n\
    OSTREE_VERSION=\"411.86.202210041459-0\"\n\
    PRETTY_NAME=\"Red Hat Enterprise Linux CoreOS 411.86.202210041459-0 (Ootpa)\"\n";

/// Families of instances that have NVIDIA GPUs.
const GPU_FAMILIES: &[&str] = &["g3", "g4dn", "g5", "p2", "p3", "p4d"];

pub(super) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub(super) fn has_gpu(instance_type: &str) -> bool {
    instance_type.split_once('.').is_some_and(|(family, _)| GPU_FAMILIES.contains(&family))
}

/// Whether a node is of a type with a GPU.
pub(super) fn node_has_gpu(node: &Node) -> bool {
    node.labels().get("node.kubernetes.io/instance-type").is_some_and(|name| has_gpu(name))
}

pub(super) fn resources(instance_type: &str) -> Value {
    let (cpu, memory) = match instance_type.rsplit('.').next() {
        Some("large") => ("2", "8Gi"),
        Some("2xlarge") => ("8", "32Gi"),
        Some("4xlarge") => ("16", "64Gi"),
        _ => ("4", "16Gi"),
    };
    json!({ "cpu": cpu, "memory": memory, "ephemeral-storage": "120Gi", "pods": "250" })
}

pub(super) fn node_info(uid: &str) -> Value {
    json!({
        "architecture": "amd64",
        "bootID": uid,
        "containerRuntimeVersion": "cri-o://1.24.2-7.rhaos4.11",
        "kernelVersion": KERNEL,
        "kubeProxyVersion": "v1.24.0+3882f8f",
        "kubeletVersion": "v1.24.0+3882f8f",
        "machineID": uid.replace('-', ""),
        "operatingSystem": "linux",
        "osImage": "Red Hat Enterprise Linux CoreOS 411.86.202210041459-0 (Ootpa)",
        "systemUUID": uid,
    })
}

/// The files that programs on one node see: `/etc`, and the kernel's version.
pub(super) struct NodeFiles {
    root: PathBuf,
}

impl NodeFiles {
    /// Makes them when they are not there yet.
    pub(super) fn of(shared: &Shared, node: &str) -> Result<Self> {
        let files = Self { root: shared.dir.join("nodes").join(node) };
        fs::create_dir_all(files.features())?;
        fs::write(files.etc().join("os-release"), OS_RELEASE)?;
        fs::write(files.kernel(), format!("{KERNEL}\n"))?;
        // OpenShift's build of NFD publishes these from os-release; the upstream one does not.
        let text = lines(
            "feature.node.kubernetes.io/system-os_release.",
            &[("OPENSHIFT_VERSION", "4.11"), ("OSTREE_VERSION", RHCOS), ("RHEL_VERSION", "8.6")],
        );
        fs::write(files.features().join("os"), text)?;
        Ok(files)
    }

    pub(super) fn etc(&self) -> PathBuf {
        self.root.join("etc")
    }

    pub(super) fn kernel(&self) -> PathBuf {
        self.root.join("osrelease")
    }

    fn features(&self) -> PathBuf {
        self.etc().join("kubernetes/node-feature-discovery/features.d")
    }

    /// What NFD finds on the PCI bus of a node with a GPU.
    pub(super) fn announce_gpu(&self) -> Result<()> {
        let found = [("10de.present", "true"), ("0302_10de.present", "true")];
        let text = lines("feature.node.kubernetes.io/pci-", &found);
        fs::write(self.features().join("pci"), text).context("cannot announce a GPU")
    }

    /// What GPU feature discovery writes for NFD to pick up.
    pub(super) fn gpu_features(&self, present: bool) -> Result<()> {
        let path = self.features().join("gfd");
        if !present {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            };
        }
        let labels = [
            ("cuda.driver.major", "515"),
            ("cuda.driver.minor", "65"),
            ("cuda.driver.rev", "01"),
            ("cuda.runtime.major", "11"),
            ("cuda.runtime.minor", "7"),
            ("gfd.timestamp", "1665000000"),
            ("gpu.compute.major", "7"),
            ("gpu.compute.minor", "5"),
            ("gpu.count", "1"),
            ("gpu.family", "turing"),
            ("gpu.machine", "g4dn.xlarge"),
            ("gpu.memory", "15360"),
            ("gpu.product", "Tesla-T4"),
            ("gpu.replicas", "1"),
            ("mig.capable", "false"),
            ("mig.strategy", "single"),
        ];
        let text = lines("nvidia.com/", &labels);
        fs::write(path, text).context("cannot write the GPU's features")
    }
}

/// `prefix` + `name=value`, one per line.
fn lines(prefix: &str, features: &[(&str, &str)]) -> String {
    features.iter().flat_map(|(name, value)| [prefix, name, "=", value, "\n"]).collect()
}

/// What a device plugin reports to its kubelet.
pub(super) async fn set_gpus(client: &Client, node: &str, allocatable: u32) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut status = json!({ "allocatable": { "nvidia.com/gpu": allocatable.to_string() } });
    if allocatable > 0 {
        status["capacity"] = json!({ "nvidia.com/gpu": allocatable.to_string() });
    }
    let patch = json!({ "status": status });
    match nodes.patch_status(node, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Err(error) if !super::cloud::is_missing(&error) => Err(error).context("cannot set the node's GPUs"),
        _ => Ok(()),
    }
}
