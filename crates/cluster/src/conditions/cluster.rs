//! Nodes, definitions, and custom resources that report conditions.

use toolbox_engine::{Cause, FailureVerdict, ObjectRef, Verdict, Why};

use serde_json::Value;

use super::present;
use crate::object::Object;

/// Why a definition will not be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionCause {
    /// Its names are taken by another definition.
    NamesTaken {
        /// The server's words.
        message: String,
    },
}

impl Cause for DefinitionCause {
    fn code(&self) -> &'static str {
        "names-taken"
    }
    fn text(&self) -> String {
        let DefinitionCause::NamesTaken { message } = self;
        format!("its names are taken: {message}")
    }
    fn next(&self) -> String {
        "find the other definition of this kind, and decide which one stays".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
}

/// Whether a node is ready. Gone while it is waited for is pending: nodes come back.
pub fn node_ready(found: Option<&Object>, meant: &ObjectRef) -> Verdict<Object> {
    let anonymous = ObjectRef { uid: None, ..meant.clone() };
    present(found, &anonymous).and_then(|node| {
        let pending = |text: String| Verdict::Pending(Why::waiting(node.refer(), "node-not-ready", text));
        match node.condition("Ready") {
            Some(ready) if ready.is_true() => Verdict::Done(node.clone()),
            Some(ready) => pending(format!("is not ready: {}", ready.text())),
            None => pending("has not reported yet".to_owned()),
        }
    })
}

/// Whether a definition is established, so that objects of its kind can be made.
pub fn crd_established(found: Option<&Object>, meant: &ObjectRef) -> Verdict<Object> {
    present(found, meant).and_then(|definition| {
        if definition.is_deleting() {
            let text = "is being deleted";
            return Verdict::Pending(Why::waiting(definition.refer(), "being-deleted", text));
        }
        if definition.condition("Established").is_some_and(|condition| condition.is_true()) {
            return Verdict::Done(definition.clone());
        }
        match definition.condition("NamesAccepted") {
            Some(names) if names.is_false() => {
                let cause = DefinitionCause::NamesTaken { message: names.message.to_owned() };
                Verdict::Failed(Why::new(definition.refer(), &cause))
            }
            _ => Verdict::Pending(Why::waiting(definition.refer(), "not-established", "is not established yet")),
        }
    })
}

/// Whether one of these definitions is established and serves a version.
pub(crate) fn crd_serves(definitions: &[Object], version: &str) -> bool {
    definitions.iter().any(|definition| {
        let established = definition.condition("Established");
        let serves = |served: &Value| served["name"] == version && served["served"] == true;
        established.is_some_and(|condition| condition.is_true()) && definition.list("/spec/versions").iter().any(serves)
    })
}

/// Whether a condition is true and speaks of the present object.
pub fn condition_true(found: Option<&Object>, meant: &ObjectRef, kind: &str) -> Verdict<Object> {
    present(found, meant).and_then(|object| {
        let pending = |text: String| Verdict::Pending(Why::waiting(object.refer(), "condition", text));
        let Some(condition) = object.condition(kind) else {
            return pending(format!("does not say yet whether it is {kind}"));
        };
        let about_now = condition.observed_generation.is_none_or(|seen| seen >= object.generation());
        if !about_now || !object.is_observed() {
            return pending("its controller has not seen the latest change yet".to_owned());
        }
        if condition.is_true() {
            return Verdict::Done(object.clone());
        }
        pending(format!("{kind} is {}: {}", condition.status, condition.text()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_that_is_not_ready_says_why() {
        let node = |conditions: Value| {
            Object::new(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-gpu-1", "uid": "1"},
                "status": {"conditions": conditions}}))
        };
        let not = node(
            json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "kubelet is quiet"}]),
        );
        let Verdict::Pending(why) = node_ready(Some(&not), &not.refer()) else { panic!() };
        assert_eq!(why.cause, "is not ready: NodeStatusUnknown: kubelet is quiet");
        let ready = node(json!([{"type": "Ready", "status": "True"}]));
        assert!(matches!(node_ready(Some(&ready), &not.refer()), Verdict::Done(_)));
        assert!(matches!(node_ready(None, &not.refer()), Verdict::Pending(_)));
    }

    #[test]
    fn a_condition_about_an_older_generation_is_not_believed() {
        let object = |seen: i64| {
            Object::new(json!({"metadata": {"name": "x", "generation": 2}, "status": {"conditions": [
                {"type": "Ready", "status": "True", "observedGeneration": seen}]}}))
        };
        let meant = object(1).refer();
        assert!(matches!(condition_true(Some(&object(1)), &meant, "Ready"), Verdict::Pending(_)));
        assert!(matches!(condition_true(Some(&object(2)), &meant, "Ready"), Verdict::Done(_)));
    }

    #[test]
    fn a_definition_whose_names_are_taken_fails() {
        let crd = |conditions: Value| {
            Object::new(json!({"kind": "CustomResourceDefinition", "metadata": {"name": "x.example.test"},
                "spec": {"versions": [{"name": "v1", "served": true}, {"name": "v1beta1", "served": false}]},
                "status": {"conditions": conditions}}))
        };
        let taken =
            crd(json!([{"type": "NamesAccepted", "status": "False", "message": "\"Policy\" is already in use"}]));
        assert!(
            matches!(crd_established(Some(&taken), &taken.refer()), Verdict::Failed(why) if why.code == "names-taken")
        );
        let good = crd(json!([{"type": "Established", "status": "True"}]));
        assert!(matches!(crd_established(Some(&good), &good.refer()), Verdict::Done(_)));
        assert!(crd_serves(std::slice::from_ref(&good), "v1"));
        assert!(!crd_serves(&[good], "v1beta1"));
    }
}
