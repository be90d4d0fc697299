//! Controllers of the kinds that make pods.

mod daemonset;
mod deployment;
mod job;
mod replicaset;

pub(crate) use daemonset::DaemonSets;
pub(crate) use deployment::Deployments;
pub(crate) use job::Jobs;
pub(crate) use replicaset::ReplicaSets;

use kube::core::DynamicObject;
use serde_json::Value;

use super::kit::{Kind, POD, Read, owner_reference};

/// A pod from a template, owned by the object that holds it.
fn pod_from(kind: Kind, owner: &DynamicObject, template: &Value) -> DynamicObject {
    let mut pod = POD.object(owner.namespace(), "");
    pod.metadata.name = None;
    pod.metadata.generate_name = Some(format!("{}-", owner.name()));
    pod.metadata.owner_references = Some(vec![owner_reference(kind, owner)]);
    pod.metadata.labels = serde_json::from_value(template["metadata"]["labels"].clone()).ok();
    pod.metadata.annotations = serde_json::from_value(template["metadata"]["annotations"].clone()).ok();
    pod.data = serde_json::json!({"spec": template["spec"]});
    pod
}

/// Whether a pod is Ready.
fn is_ready(pod: &DynamicObject) -> bool {
    super::kit::is_true(pod, "Ready")
}

/// Whether a pod has ended, well or badly.
fn is_finished(pod: &DynamicObject) -> bool {
    matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
}

/// A short stable text for a template, as the `pod-template-hash` label is.
fn template_hash(template: &Value) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let number = crate::scenario::Dice::new(0).number("template", &template.to_string());
    (0..10).map(|n| ALPHABET[(number >> (n * 6)) as usize % ALPHABET.len()] as char).collect()
}
