//! Names that stay the same whatever suffixes the API server generates; times are drawn by them.

use kube::core::DynamicObject;

use super::{Cache, NODE, Read};

/// Annotation that keeps a node's place among its kind, such as `g4dn.xlarge/0`.
pub(crate) const IDENTITY: &str = "rehearsal/identity";

/// Label of burn pods, whatever their names.
pub(crate) const BURN: &str = "gpu-burn";

/// A node by its place among the nodes of its type, else by its name.
pub(crate) fn of_node(node: &DynamicObject) -> String {
    node.annotation(IDENTITY).unwrap_or(node.name()).to_owned()
}

/// What a scenario can call a node: its name, its zone, its instance type.
pub(crate) fn names_of_node(node: &DynamicObject) -> [&str; 3] {
    let label = |key: &str| node.label(key).unwrap_or_default();
    [node.name(), label("topology.kubernetes.io/zone"), label("node.kubernetes.io/instance-type")]
}

/// A pod by its workload, and by its node where every node has its own.
pub(crate) fn of_pod(cache: &Cache, pod: &DynamicObject) -> String {
    if let Some(owner) = pod.owner("DaemonSet") {
        let node = pod.text("/spec/nodeName");
        let node = cache.get(NODE, "", node).map_or_else(|| node.to_owned(), |node| of_node(&node));
        return on_node(&owner.name, &node);
    }
    if pod.label("app") == Some(BURN) {
        let node = pod.text("/spec/nodeName");
        let node = cache.get(NODE, "", node).map_or_else(|| node.to_owned(), |node| of_node(&node));
        return on_node(BURN, &node);
    }
    if let Some(owner) = pod.owner("ReplicaSet") {
        return owner.name.rsplit_once('-').map_or(owner.name.as_str(), |(name, _)| name).to_owned();
    }
    pod.owner("Job").map_or(pod.name(), |owner| owner.name.as_str()).to_owned()
}

/// The identity of a daemon set's pod on a node.
pub(crate) fn on_node(daemon_set: &str, node: &str) -> String {
    format!("{daemon_set}@{node}")
}
