//! A machine set of another instance type, derived from one that works.

use serde_json::{Map, Value, json};

use super::{MachineCause, SET_LABEL, field_of};
use crate::{Object, kinds};

/// Annotations that describe the base's own size or limits.
const DROPPED: [&str; 7] = [
    "machine.openshift.io/vCPU",
    "machine.openshift.io/memoryMb",
    "machine.openshift.io/GPU",
    "kubectl.kubernetes.io/last-applied-configuration",
    "cluster-api-autoscaler-node-group-min-size",
    "cluster-api-autoscaler-node-group-max-size",
    "capacity.cluster-autoscaler.kubernetes.io",
];

/// The manifest of a set named `name` with machines of `instance_type`, at 0 replicas. One name in metadata, selector
/// and template; nothing that the server or an autoscaler wrote; refused if its selector does not match its template.
pub fn derive(base: &Object, name: &str, instance_type: &str) -> Result<Value, MachineCause> {
    let field = field_of(base)?;
    let mut spec = base.at("/spec").cloned().unwrap_or_else(|| json!({}));
    spec["replicas"] = json!(0);
    spec["selector"]["matchLabels"][SET_LABEL] = json!(name);
    spec["template"]["metadata"]["labels"][SET_LABEL] = json!(name);
    spec["template"]["spec"]["providerSpec"]["value"][field.size] = json!(instance_type);
    // A Machine of the template must not carry the identity of another one.
    if let Some(template) = spec["template"]["spec"].as_object_mut() {
        template.remove("providerID");
    }
    matches_itself(&spec)?;
    let mut metadata = json!({"name": name, "namespace": base.namespace().unwrap_or(super::NAMESPACE)});
    let kept = |pointer: &str, drop: &dyn Fn(&str) -> bool| -> Map<String, Value> {
        let map = base.at(pointer).and_then(Value::as_object).cloned();
        map.unwrap_or_default().into_iter().filter(|(key, _)| !drop(key)).collect()
    };
    // Who made the base is not who makes this one.
    let labels = kept("/metadata/labels", &|key| key.starts_with("app.kubernetes.io/"));
    let annotations = kept("/metadata/annotations", &|key| {
        DROPPED.iter().any(|dropped| key.contains(dropped)) || key.starts_with("tbx/")
    });
    for (key, map) in [("labels", labels), ("annotations", annotations)] {
        if !map.is_empty() {
            metadata[key] = Value::Object(map);
        }
    }
    Ok(json!({
        "apiVersion": kinds::MACHINE_SET.api_version(),
        "kind": "MachineSet",
        "metadata": metadata,
        "spec": spec,
    }))
}

/// A set whose selector does not match its template does not see the machines it makes, and makes more at every pass.
fn matches_itself(spec: &Value) -> Result<(), MachineCause> {
    let selector = spec["selector"]["matchLabels"].as_object();
    let labels = &spec["template"]["metadata"]["labels"];
    let mismatch = selector.into_iter().flatten().find(|(key, value)| labels.get(key.as_str()) != Some(*value));
    match mismatch {
        Some((label, _)) => Err(MachineCause::SelectorMismatch { label: label.clone() }),
        None => Ok(()),
    }
}
