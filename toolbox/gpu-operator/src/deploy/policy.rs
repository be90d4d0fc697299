//! The ClusterPolicy to create: found by kind in the examples that the installed version brings.

use serde_json::Value;
use toolbox_core::engine::{Cause, FailureVerdict};

use super::patch;

/// Why no ClusterPolicy can be made from a CSV's examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicyCause {
    /// The annotation is absent.
    NoExamples,
    /// The annotation is no JSON list.
    NotJson { problem: String },
    /// None of the examples is a ClusterPolicy; these kinds are there.
    NotAmong { kinds: Vec<String> },
}

impl Cause for PolicyCause {
    fn code(&self) -> &'static str {
        match self {
            PolicyCause::NoExamples => "no-examples",
            PolicyCause::NotJson { .. } => "bad-examples",
            PolicyCause::NotAmong { .. } => "no-cluster-policy-example",
        }
    }

    fn text(&self) -> String {
        match self {
            PolicyCause::NoExamples => "has no examples (annotation alm-examples)".to_owned(),
            PolicyCause::NotJson { problem } => {
                format!("its examples (annotation alm-examples) cannot be read: {problem}")
            }
            PolicyCause::NotAmong { kinds } => format!(
                "no ClusterPolicy among its examples (annotation alm-examples has {})",
                if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
            ),
        }
    }

    fn next(&self) -> String {
        "choose another version: this bundle is not complete".to_owned()
    }

    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Product
    }
}

/// The ClusterPolicy among a CSV's examples, with the user's patch applied.
pub(crate) fn from_examples(examples: Option<&str>, change: Option<&Value>) -> Result<Value, PolicyCause> {
    let text = examples.ok_or(PolicyCause::NoExamples)?;
    let parsed: Value =
        serde_json::from_str(text).map_err(|error| PolicyCause::NotJson { problem: error.to_string() })?;
    let Some(list) = parsed.as_array() else {
        return Err(PolicyCause::NotJson { problem: "it is no list".to_owned() });
    };
    let is_policy = |example: &&Value| {
        let field = |name: &str| example.get(name).and_then(Value::as_str).unwrap_or("");
        field("kind") == "ClusterPolicy" && field("apiVersion").starts_with("nvidia.com/")
    };
    let Some(found) = list.iter().find(is_policy) else {
        let kind = |example: &Value| example.get("kind").and_then(Value::as_str).map(str::to_owned);
        return Err(PolicyCause::NotAmong { kinds: list.iter().filter_map(kind).collect() });
    };
    let mut policy = found.clone();
    if let Some(change) = change {
        patch::merge(&mut policy, change);
    }
    if let Some(fields) = policy.as_object_mut() {
        fields.remove("status");
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_policy_is_found_by_kind_and_group_not_by_position() {
        let examples = json!([
            {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "driver"}},
            {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "theirs"}},
            {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu-cluster-policy"}, "spec": {"dcgm": {"enabled": true}}, "status": {"state": "ready"}},
        ])
        .to_string();
        let policy = from_examples(Some(&examples), Some(&json!({"spec": {"dcgm": {"enabled": false}}}))).unwrap();
        assert_eq!(
            policy,
            json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu-cluster-policy"}, "spec": {"dcgm": {"enabled": false}}})
        );
    }

    #[test]
    fn examples_without_a_policy_say_what_they_have() {
        let examples = json!([{"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver"}]).to_string();
        let cause = from_examples(Some(&examples), None).unwrap_err();
        assert!(cause.text().contains("NVIDIADriver"));
        assert_eq!(from_examples(None, None), Err(PolicyCause::NoExamples));
        assert!(matches!(from_examples(Some("{"), None), Err(PolicyCause::NotJson { .. })));
    }
}
