//! The objects that a burn makes: two ConfigMaps and one pod per GPU node.

use serde_json::{Value, json};
use toolbox_core::cluster::{Object, nodes};

use super::result::BurnCause;
use crate::names::{BURN_NAMESPACE, GPU_PRESENT, GPU_RESOURCE};

/// Label of everything that a burn makes.
pub(crate) const APP: &str = "gpu-burn";
/// The container.
pub(crate) const CONTAINER: &str = "gpu-burn-ctr";

/// A node to burn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BurnNode {
    pub(crate) name: String,
    /// How many GPUs it offers to pods.
    pub(crate) gpus: u32,
}

/// How many GPUs a node offers to pods.
pub(crate) fn allocatable_gpus(node: &Object) -> u32 {
    let Some(count) = node.at("/status/allocatable/nvidia.com~1gpu") else {
        return 0;
    };
    let number = count.as_u64().and_then(|count| u32::try_from(count).ok());
    number.or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

/// Whether the operator or NFD takes a node for a GPU node.
pub(crate) fn is_gpu_node(node: &Object) -> bool {
    node.label(GPU_PRESENT) == Some("true") || nodes::is_gpu_node(node)
}

/// The nodes to burn: every GPU node, each with all its GPUs. A GPU node that offers none is a failure, not a node less.
pub(crate) fn burn_nodes(nodes: &[Object]) -> Result<Vec<BurnNode>, (Option<Object>, BurnCause)> {
    let mut found = Vec::new();
    for node in nodes.iter().filter(|node| is_gpu_node(node) && !node.is_deleting()) {
        let gpus = allocatable_gpus(node);
        if gpus == 0 {
            return Err((Some(node.clone()), BurnCause::NothingAllocatable));
        }
        found.push(BurnNode { name: node.name().to_owned(), gpus });
    }
    if found.is_empty() {
        return Err((None, BurnCause::NoGpuNode));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The pod's name for a node; as upstream's unless that would be too long for a name.
pub(crate) fn pod_name(node: &str) -> String {
    const LONGEST: usize = 253;
    let name = format!("{APP}-{node}");
    if name.len() <= LONGEST {
        return name;
    }
    // FNV-1a: two long names that begin alike must not become the same pod.
    let hash = node
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let kept: String = name.chars().take(LONGEST - 17).collect();
    format!("{}-{hash:016x}", kept.trim_end_matches(['-', '.']))
}

/// The names of the ConfigMaps of one run. Fixed ones may be somebody else's, or those of a burn that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapNames {
    /// The one with the entry script.
    pub(crate) entrypoint: String,
    /// The one with the program's source.
    pub(crate) source: String,
}

impl MapNames {
    /// Upstream's names, with what tells this run from others.
    pub(crate) fn of(suffix: &str) -> Self {
        Self { entrypoint: format!("{APP}-entrypoint-{suffix}"), source: format!("{APP}-src-{suffix}") }
    }
}

/// The ConfigMap with the entry script.
pub(crate) fn entrypoint(names: &MapNames) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.entrypoint, "namespace": BURN_NAMESPACE, "labels": {"app": APP}},
        "data": {"entrypoint.sh": include_str!("../../assets/entrypoint.sh")},
    })
}

/// The ConfigMap with the program's source.
pub(crate) fn source(names: &MapNames) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.source, "namespace": BURN_NAMESPACE, "labels": {"app": APP}},
        "data": {"burn.cu": include_str!("../../assets/burn.cu")},
    })
}

/// The pod that burns a node's GPUs for `seconds`.
///
/// It asks for all GPUs and is bound by the scheduler, so that a GPU in use by somebody else shows as "cannot be
/// scheduled" instead of as two programs on one card.
pub(crate) fn pod(node: &BurnNode, image: &str, seconds: u64, maps: &MapNames) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod_name(&node.name), "namespace": BURN_NAMESPACE, "labels": {"app": APP}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 5,
            // Should nobody be left to clean up, the GPUs are free again after this.
            "activeDeadlineSeconds": seconds + 3600,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]},
            ]}}},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": CONTAINER,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sh", "/gpu-burn-entrypoint/entrypoint.sh"],
                "env": [{"name": "GPU_BURN_TIME", "value": seconds.to_string()}],
                "resources": {
                    "requests": {GPU_RESOURCE: node.gpus.to_string()},
                    "limits": {GPU_RESOURCE: node.gpus.to_string()},
                },
                "securityContext": {"allowPrivilegeEscalation": false},
                "volumeMounts": [
                    {"name": "entrypoint", "mountPath": "/gpu-burn-entrypoint", "readOnly": true},
                    {"name": "source", "mountPath": "/gpu-burn-src", "readOnly": true},
                ],
            }],
            "volumes": [
                {"name": "entrypoint", "configMap": {"name": maps.entrypoint}},
                {"name": "source", "configMap": {"name": maps.source}},
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, gpus: Value) -> Object {
        Object::new(json!({
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true"}},
            "status": {"allocatable": {"nvidia.com/gpu": gpus}},
        }))
    }

    #[test]
    fn every_gpu_node_is_burnt_with_all_its_gpus() {
        let other = Object::new(json!({"metadata": {"name": "worker"}}));
        let nodes = burn_nodes(&[node("b", json!("4")), other, node("a", json!(1))]).unwrap();
        let found: Vec<(&str, u32)> = nodes.iter().map(|node| (node.name.as_str(), node.gpus)).collect();
        assert_eq!(found, [("a", 1), ("b", 4)]);
        let maps = MapNames::of("1");
        let pod = pod(&nodes[1], "image", 30, &maps);
        assert_eq!(pod.pointer("/spec/volumes/0/configMap/name"), entrypoint(&maps).pointer("/metadata/name"));
        assert_eq!(pod.pointer("/spec/volumes/1/configMap/name"), source(&maps).pointer("/metadata/name"));
        assert_eq!(pod.pointer("/spec/containers/0/resources/requests"), Some(&json!({"nvidia.com/gpu": "4"})));
        assert_eq!(pod.pointer("/spec/nodeName"), None);
    }

    #[test]
    fn a_gpu_node_without_gpus_to_offer_is_a_failure() {
        let (object, cause) = burn_nodes(&[node("a", json!("1")), node("b", json!("0"))]).unwrap_err();
        assert_eq!((object.unwrap().name(), cause), ("b", BurnCause::NothingAllocatable));
        assert_eq!(burn_nodes(&[]).unwrap_err().1, BurnCause::NoGpuNode);
    }

    #[test]
    fn a_long_node_name_gives_a_legal_pod_name_of_its_own() {
        let (a, b) = (format!("{}a", "n".repeat(250)), format!("{}b", "n".repeat(250)));
        assert_eq!(pod_name("n1"), "gpu-burn-n1");
        assert!(pod_name(&a).len() <= 253 && pod_name(&a) != pod_name(&b));
    }
}
