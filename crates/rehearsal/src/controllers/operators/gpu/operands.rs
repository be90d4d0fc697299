//! The operands' DaemonSets: their images, their init containers and the nodes they select.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controllers::kit::{CLUSTER_POLICY, Context, DAEMON_SET, Read, owner_reference};

/// One operand.
struct Operand {
    /// Name of the DaemonSet and value of its `app` label.
    name: &'static str,
    /// Field of the ClusterPolicy that describes it.
    field: &'static str,
    /// Short name of its image.
    image: &'static str,
    /// Name of its container.
    container: &'static str,
    /// Init containers, all but the first operand's of the validator's image.
    init: &'static [&'static str],
    /// Suffix of the node label `nvidia.com/gpu.deploy.…` that selects its nodes.
    deploy: &'static str,
}

const OPERANDS: &[Operand] = &[
    Operand {
        name: "nvidia-driver-daemonset",
        field: "driver",
        image: "driver",
        container: "nvidia-driver-ctr",
        init: &["k8s-driver-manager"],
        deploy: "driver",
    },
    Operand {
        name: "nvidia-container-toolkit-daemonset",
        field: "toolkit",
        image: "toolkit",
        container: "nvidia-container-toolkit-ctr",
        init: &["driver-validation"],
        deploy: "container-toolkit",
    },
    Operand {
        name: "nvidia-operator-validator",
        field: "validator",
        image: "validator",
        container: "nvidia-operator-validator",
        init: &["driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"],
        deploy: "operator-validator",
    },
    Operand {
        name: "nvidia-device-plugin-daemonset",
        field: "devicePlugin",
        image: "device-plugin",
        container: "nvidia-device-plugin",
        init: &["toolkit-validation"],
        deploy: "device-plugin",
    },
    Operand {
        name: "nvidia-dcgm",
        field: "dcgm",
        image: "dcgm",
        container: "nvidia-dcgm-ctr",
        init: &["toolkit-validation"],
        deploy: "dcgm",
    },
    Operand {
        name: "nvidia-dcgm-exporter",
        field: "dcgmExporter",
        image: "dcgm-exporter",
        container: "nvidia-dcgm-exporter",
        init: &["toolkit-validation"],
        deploy: "dcgm-exporter",
    },
    Operand {
        name: "gpu-feature-discovery",
        field: "gfd",
        image: "gfd",
        container: "gpu-feature-discovery",
        init: &["toolkit-validation"],
        deploy: "gpu-feature-discovery",
    },
    Operand {
        name: "nvidia-mig-manager",
        field: "migManager",
        image: "mig-manager",
        container: "nvidia-mig-manager",
        init: &["toolkit-validation"],
        deploy: "mig-manager",
    },
    Operand {
        name: "nvidia-node-status-exporter",
        field: "nodeStatusExporter",
        image: "validator",
        container: "nvidia-node-status-exporter",
        init: &[],
        deploy: "node-status-exporter",
    },
];

/// Annotation by which the operator sees that a DaemonSet is as it wants it, whatever the server has added.
pub(super) const HASH: &str = "nvidia.com/last-applied-hash";

/// The DaemonSets that a policy asks for, in a namespace.
pub(super) fn wanted(context: &Context, policy: &DynamicObject, namespace: &str) -> Vec<DynamicObject> {
    let enabled =
        |operand: &&Operand| policy.at("/spec").get(operand.field).is_none_or(|part| part["enabled"] != false);
    OPERANDS.iter().filter(enabled).map(|operand| daemon_set(context, policy, namespace, operand)).collect()
}

fn daemon_set(context: &Context, policy: &DynamicObject, namespace: &str, operand: &Operand) -> DynamicObject {
    let validator = image(context, policy, "validator", "validator");
    let init: Vec<Value> = operand.init.iter().map(|name| json!({"name": name, "image": validator})).collect();
    let mut set = DAEMON_SET.object(namespace, operand.name);
    set.metadata.owner_references = Some(vec![owner_reference(CLUSTER_POLICY, policy)]);
    set.metadata.labels = Some([("app".to_owned(), operand.name.to_owned())].into());
    let mut tolerations = policy.list("/spec/daemonsets/tolerations").to_vec();
    if tolerations.is_empty() {
        tolerations.push(json!({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}));
    }
    let label = format!("nvidia.com/gpu.deploy.{}", operand.deploy);
    let mut pod = json!({
        "serviceAccountName": operand.name.trim_end_matches("-daemonset"),
        "priorityClassName": "system-node-critical",
        "nodeSelector": {label: "true"},
        "tolerations": tolerations,
        "containers": [{"name": operand.container, "image": image(context, policy, operand.field, operand.image)}],
    });
    if !init.is_empty() {
        pod["initContainers"] = init.into();
    }
    let hash = context.dice.number("operand", &pod.to_string());
    set.metadata.annotations = Some([(HASH.to_owned(), format!("{hash:x}"))].into());
    let update = if operand.field == "driver" { "OnDelete" } else { "RollingUpdate" };
    set.data = json!({"spec": {
        "selector": {"matchLabels": {"app": operand.name}},
        "template": {"metadata": {"labels": {"app": operand.name}}, "spec": pod},
        "updateStrategy": {"type": update},
    }});
    set
}

/// The image that a policy names for a part, else the scenario's.
fn image(context: &Context, policy: &DynamicObject, field: &str, name: &str) -> String {
    let part = &policy.at("/spec")[field];
    let text = |key: &str| part[key].as_str().unwrap_or_default();
    if !text("repository").is_empty() && !text("image").is_empty() && !text("version").is_empty() {
        let joint = if text("version").starts_with("sha256:") { "@" } else { ":" };
        return format!("{}/{}{joint}{}", text("repository"), text("image"), text("version"));
    }
    context.scenario.images.get(name).map(|image| image.reference.clone()).unwrap_or_default()
}

/// Labels that the operator puts on a GPU node so that its operands go there.
pub(super) fn node_labels(mig: bool) -> Value {
    let mut labels = json!({"nvidia.com/gpu.present": "true"});
    for operand in OPERANDS.iter().filter(|operand| mig || operand.deploy != "mig-manager") {
        labels[format!("nvidia.com/gpu.deploy.{}", operand.deploy)] = "true".into();
    }
    labels
}
