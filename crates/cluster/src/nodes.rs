//! What nodes say about themselves: features that NFD found, GPUs, role, instance type, taints.

use crate::Object;

/// The prefix of everything that NFD says about a node.
pub const NFD_PREFIX: &str = "feature.node.kubernetes.io/";

/// The label that NFD gives every node that it has looked at; its value is the system, `rhcos` on OpenShift.
pub const NFD_OS: &str = "feature.node.kubernetes.io/system-os_release.ID";

/// How NFD says that a node has an NVIDIA device: by vendor, or by class and vendor (3D or VGA controller), depending on
/// its configuration. Any one of them on a node will do.
pub const GPU_LABELS: [&str; 3] = [
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
];

/// The label that the GPU Operator gives the nodes it works on.
pub const GPU_PRESENT: &str = "nvidia.com/gpu.present";

/// Whether NFD has looked at the node.
pub fn has_nfd_labels(node: &Object) -> bool {
    node.label(NFD_OS).is_some()
}

/// The label by which NFD says that the node has an NVIDIA GPU.
pub fn gpu_label(node: &Object) -> Option<&'static str> {
    GPU_LABELS.into_iter().find(|label| node.label(label).is_some_and(|value| value != "false"))
}

/// Whether NFD says that the node has an NVIDIA GPU.
pub fn is_gpu_node(node: &Object) -> bool {
    gpu_label(node).is_some()
}

/// Whether the node is for work and not for the control plane.
pub fn is_worker(node: &Object) -> bool {
    let control =
        ["master", "control-plane"].iter().any(|role| node.label(&format!("node-role.kubernetes.io/{role}")).is_some());
    !control || node.label("node-role.kubernetes.io/worker").is_some()
}

/// The instance type that the cloud says it is.
pub fn instance_type(node: &Object) -> Option<&str> {
    node.label("node.kubernetes.io/instance-type").or_else(|| node.label("beta.kubernetes.io/instance-type"))
}

/// The zone it is in.
pub fn zone(node: &Object) -> Option<&str> {
    node.label("topology.kubernetes.io/zone").or_else(|| node.label("failure-domain.beta.kubernetes.io/zone"))
}

/// The taints that keep pods off a node, as `key=value:effect`. Those that the node controller sets while a node is
/// coming up or away are left out: they say the same as its conditions.
pub fn taints(node: &Object) -> Vec<String> {
    node.list("/spec/taints")
        .iter()
        .filter(|taint| taint["effect"] != "PreferNoSchedule")
        .filter_map(|taint| {
            let key = taint["key"].as_str()?;
            if key.starts_with("node.kubernetes.io/") || key.starts_with("node-role.kubernetes.io/") {
                return None;
            }
            let effect = taint["effect"].as_str().unwrap_or_default();
            Some(match taint["value"].as_str().unwrap_or_default() {
                "" => format!("{key}:{effect}"),
                value => format!("{key}={value}:{effect}"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(labels: serde_json::Value) -> Object {
        Object::new(json!({"kind": "Node", "metadata": {"name": "worker-gpu-1", "labels": labels}}))
    }

    #[test]
    fn any_of_the_three_spellings_is_a_gpu() {
        for label in GPU_LABELS {
            let node = node(json!({ label: "true" }));
            assert_eq!(gpu_label(&node), Some(label));
        }
        assert!(!is_gpu_node(&node(json!({"feature.node.kubernetes.io/pci-1013.present": "true"}))));
        assert!(!is_gpu_node(&node(json!({"feature.node.kubernetes.io/pci-10de.present": "false"}))));
    }

    #[test]
    fn a_single_node_cluster_works_too() {
        assert!(is_worker(&node(json!({}))));
        assert!(!is_worker(&node(json!({"node-role.kubernetes.io/master": ""}))));
        assert!(is_worker(&node(json!({"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/worker": ""}))));
    }

    #[test]
    fn only_taints_of_people_count() {
        let node = Object::new(json!({"spec": {"taints": [
            {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
            {"key": "team", "value": "a", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            {"key": "soft", "effect": "PreferNoSchedule"}]}}));
        assert_eq!(taints(&node), ["nvidia.com/gpu:NoSchedule", "team=a:NoExecute"]);
    }
}
