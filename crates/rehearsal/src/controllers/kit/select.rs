//! Label selectors, node selectors, taints and tolerations.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::Value;

use super::Read;

/// Whether `labels` match a LabelSelector (`matchLabels` and `matchExpressions`). A null selector matches nothing.
pub(crate) fn selector_matches(selector: &Value, labels: Option<&BTreeMap<String, String>>) -> bool {
    if !selector.is_object() {
        return false;
    }
    let get = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let plain = selector["matchLabels"].as_object().into_iter().flatten();
    plain.into_iter().all(|(key, value)| get(key) == value.as_str())
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|term| expression(term, &get))
}

fn expression<'a>(term: &Value, get: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let found = get(term["key"].as_str().unwrap_or_default());
    let among =
        || found.is_some_and(|found| term["values"].as_array().into_iter().flatten().any(|value| value == found));
    match term["operator"].as_str().unwrap_or_default() {
        "In" => among(),
        "NotIn" => !among(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

/// Whether a pod's node selector and required node affinity accept `node`.
pub(crate) fn selects_node(pod_spec: &Value, node: &DynamicObject) -> bool {
    let wanted = pod_spec["nodeSelector"].as_object().into_iter().flatten();
    if !wanted.into_iter().all(|(key, value)| node.label(key) == value.as_str()) {
        return false;
    }
    let required = &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let Some(terms) = required["nodeSelectorTerms"].as_array() else { return true };
    let by_field = |name: &str| (name == "metadata.name").then(|| node.name());
    terms.iter().any(|term| {
        let labels = term["matchExpressions"].as_array().into_iter().flatten();
        let fields = term["matchFields"].as_array().into_iter().flatten();
        labels.into_iter().all(|term| expression(term, &|key| node.label(key)))
            && fields.into_iter().all(|term| expression(term, &by_field))
    })
}

/// The first taint of `node` with one of `effects` that no toleration of the pod accepts.
pub(crate) fn untolerated<'a>(pod_spec: &Value, node: &'a DynamicObject, effects: &[&str]) -> Option<&'a Value> {
    node.list("/spec/taints").iter().find(|taint| {
        effects.iter().any(|effect| taint["effect"] == *effect)
            && !pod_spec["tolerations"].as_array().into_iter().flatten().any(|toleration| tolerates(toleration, taint))
    })
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let effect = text(&toleration["effect"]);
    let key = text(&toleration["key"]);
    let exists = toleration["operator"] == "Exists";
    (effect.is_empty() || effect == text(&taint["effect"]))
        && ((key.is_empty() && exists) || key == text(&taint["key"]))
        && (exists || text(&toleration["value"]) == text(&taint["value"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(labels: Value, taints: Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints},
        }))
        .unwrap()
    }

    #[test]
    fn selectors_affinity_and_taints() {
        let gpu = node(json!({"gpu": "true"}), json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]));
        assert!(selects_node(&json!({"nodeSelector": {"gpu": "true"}}), &gpu));
        assert!(!selects_node(&json!({"nodeSelector": {"gpu": "false"}}), &gpu));
        let pinned = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}});
        assert!(selects_node(&pinned, &gpu));
        assert!(untolerated(&json!({}), &gpu, &["NoSchedule"]).is_some());
        assert!(
            untolerated(
                &json!({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}),
                &gpu,
                &["NoSchedule"]
            )
            .is_none()
        );
        assert!(untolerated(&json!({"tolerations": [{"operator": "Exists"}]}), &gpu, &["NoSchedule"]).is_none());
        assert!(selector_matches(
            &json!({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}),
            gpu.metadata.labels.as_ref()
        ));
        assert!(!selector_matches(&Value::Null, gpu.metadata.labels.as_ref()));
    }
}
