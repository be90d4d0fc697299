//! The roles that a server has from the start, and those that collect the rules of others.

use serde_json::{Value, json};

use super::{GROUP, resource, text};
use crate::{
    api::{server::State, version::KubeVersion},
    store::{
        object::{Key, meta},
        select::LabelSelector,
    },
};

/// As the servers of these versions have them.
const OLD: &str = include_str!("clusterroles-1.24.json");
const NEW: &str = include_str!("clusterroles-1.34.json");

/// Which role is bound to which groups from the start.
const BINDINGS: [(&str, &[&str]); 4] = [
    ("cluster-admin", &["system:masters"]),
    ("system:basic-user", &["system:authenticated"]),
    ("system:discovery", &["system:authenticated"]),
    ("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
];

/// The roles and bindings that a server makes when it starts.
pub(in crate::api) fn defaults(version: KubeVersion) -> Vec<(&'static str, Value)> {
    let source = if version.minor < 30 { OLD } else { NEW };
    let roles: Vec<Value> = serde_json::from_str(source).expect("invariant: the embedded file is JSON");
    let metadata = |name: &str, labels: Option<&Value>| {
        let mut metadata = json!({
            "name": name,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        });
        for (label, value) in labels.and_then(Value::as_object).into_iter().flatten() {
            metadata["labels"][label] = value.clone();
        }
        metadata
    };
    let api_version = format!("{GROUP}/v1");
    let roles = roles.into_iter().map(|role| {
        let mut out = json!({
            "apiVersion": api_version, "kind": "ClusterRole",
            "metadata": metadata(text(&role, "name"), role.get("labels")),
        });
        for field in ["aggregationRule", "rules"] {
            if let Some(value) = role.get(field) {
                out[field] = value.clone();
            }
        }
        ("clusterroles", out)
    });
    let bindings = BINDINGS.into_iter().map(|(role, groups)| {
        let subjects: Vec<Value> =
            groups.iter().map(|group| json!({"apiGroup": GROUP, "kind": "Group", "name": group})).collect();
        let binding = json!({
            "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": metadata(role, None),
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}, "subjects": subjects,
        });
        ("clusterrolebindings", binding)
    });
    roles.chain(bindings).collect()
}

/// Gives the roles that collect others' rules what those have now.
pub(in crate::api) fn aggregate(state: &mut State) {
    let clusterroles = resource("clusterroles");
    // One that is collected may collect others itself, so it goes on until nothing changes.
    for _ in 0..4 {
        let roles = state.store.list(&clusterroles, None);
        let mut changed = false;
        for (key, role) in &roles {
            let Some(selectors) = role.get("aggregationRule").and_then(|rule| rule.get("clusterRoleSelectors")) else {
                continue;
            };
            let selectors: Vec<LabelSelector> =
                selectors.as_array().into_iter().flatten().map(LabelSelector::from_json).collect();
            let rules = collect(&roles, key, &selectors);
            let own = role.get("rules").filter(|rules| !rules.is_null());
            if own != Some(&rules) && !(own.is_none() && rules == json!([])) {
                let mut new = Value::clone(role);
                new["rules"] = rules;
                state.store.put(&clusterroles, new);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

fn collect(roles: &[(Key, std::sync::Arc<Value>)], own: &Key, selectors: &[LabelSelector]) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let chosen = roles.iter().filter(|(key, role)| key != own && selector.matches_labels(meta(role, "labels")));
        for rule in chosen.filter_map(|(_, role)| role.get("rules")?.as_array()).flatten() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules.into()
}
