//! Rights from roles and the bindings that give them to users.

mod grant;
mod roles;

use std::sync::Arc;

use serde_json::{Value, json};

pub(super) use self::{
    grant::check as check_grant,
    roles::{aggregate, defaults},
};
use super::access::{Asked, Decision, User};
use crate::store::{
    Resource, Store,
    object::{Key, at},
};

const GROUP: &str = "rbac.authorization.k8s.io";

fn resource(plural: &str) -> Resource {
    Resource::new(GROUP, plural)
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The rules that a user has, and what they come from.
struct Granted {
    role: Arc<Value>,
    reason: String,
}

impl Granted {
    fn rules(&self) -> &[Value] {
        self.role.get("rules").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// The roles bound to a user, everywhere first, then in the namespace; and the bindings whose role is not there.
fn granted(store: &Store, user: &User, namespace: &str) -> (Vec<Granted>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let mut look = |plural: &str, within: Option<&str>| {
        for (key, binding) in store.list(&resource(plural), within) {
            let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
            let Some(subject) = subjects.into_iter().find(|subject| is(subject, user, &key.namespace)) else {
                continue;
            };
            let (kind, name) = (text(&binding, "roleRef.kind"), text(&binding, "roleRef.name"));
            match role(store, kind, name, &key.namespace) {
                Some(role) => {
                    found.push(Granted { role, reason: describe(&key, kind, name, subject) });
                }
                None => missing.push(format!("{}.{GROUP} {name:?} not found", kind.to_lowercase())),
            }
        }
    };
    look("clusterrolebindings", None);
    if !namespace.is_empty() {
        look("rolebindings", Some(namespace));
    }
    (found, missing)
}

/// The role that a binding in a namespace refers to.
fn role(store: &Store, kind: &str, name: &str, namespace: &str) -> Option<Arc<Value>> {
    match kind {
        "ClusterRole" => store.get(&resource("clusterroles"), &Key::new("", name)),
        _ => store.get(&resource("roles"), &Key::new(namespace, name)),
    }
}

fn is(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = text(subject, "name");
    match text(subject, "kind") {
        "User" => name == user.name,
        "Group" => user.groups.iter().any(|group| group == name),
        "ServiceAccount" => {
            let own = text(subject, "namespace");
            let own = if own.is_empty() { namespace } else { own };
            user.name == format!("system:serviceaccount:{own}:{name}")
        }
        _ => false,
    }
}

fn describe(binding: &Key, kind: &str, role: &str, subject: &Value) -> String {
    let who = match text(subject, "kind") {
        "ServiceAccount" => {
            let name = format!("{}/{}", text(subject, "name"), text(subject, "namespace"));
            format!("ServiceAccount {name:?}")
        }
        kind => format!("{kind} {:?}", text(subject, "name")),
    };
    let what = if binding.namespace.is_empty() {
        format!("ClusterRoleBinding {:?}", binding.name)
    } else {
        format!("RoleBinding {:?}", format!("{}/{}", binding.name, binding.namespace))
    };
    format!("RBAC: allowed by {what} of {kind} {role:?} to {who}")
}

/// Whether the roles bound to a user allow something.
pub(super) fn decide(store: &Store, user: &User, asked: &Asked<'_>) -> Decision {
    let (found, missing) = granted(store, user, asked.namespace);
    if let Some(found) = found.into_iter().find(|one| one.rules().iter().any(|rule| allows(rule, asked))) {
        return Decision { allowed: true, reason: found.reason };
    }
    let reason = match missing.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        several => format!("RBAC: [{}]", several.join(", ")),
    };
    Decision { allowed: false, reason }
}

fn allows(rule: &Value, asked: &Asked<'_>) -> bool {
    let has = |field: &str, value: &str| texts(rule, field).iter().any(|own| *own == "*" || *own == value);
    if !has("verbs", asked.verb) {
        return false;
    }
    if !asked.url.is_empty() {
        return texts(rule, "nonResourceURLs").iter().any(|own| covers_url(own, asked.url));
    }
    let names = texts(rule, "resourceNames");
    has("apiGroups", asked.group)
        && texts(rule, "resources").iter().any(|own| covers_resource(own, &asked.resource()))
        && (names.is_empty() || names.contains(&asked.name))
}

fn covers_url(own: &str, asked: &str) -> bool {
    own == asked || own.strip_suffix('*').is_some_and(|prefix| asked.starts_with(prefix))
}

/// Whether a rule's `pods`, `pods/log`, `*/log` or `*` covers a resource.
fn covers_resource(own: &str, asked: &str) -> bool {
    own == "*"
        || own == asked
        || asked.split_once('/').is_some_and(|(_, sub)| own.strip_prefix("*/").is_some_and(|one| one == sub))
}

/// All rules of a user in a namespace, as a review tells them.
pub(super) fn rules_review(store: &Store, user: &User, namespace: &str) -> Value {
    let (found, missing) = granted(store, user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in found.iter().flat_map(Granted::rules) {
        let mut out = json!({"verbs": rule.get("verbs")});
        let is_path = rule.get("nonResourceURLs").is_some();
        for field in ["apiGroups", "resources", "resourceNames", "nonResourceURLs"] {
            if let Some(value) = rule.get(field) {
                out[field] = value.clone();
            }
        }
        if is_path { paths.push(out) } else { resources.push(out) }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    if !missing.is_empty() {
        status["evaluationError"] = missing.join(", ").into();
    }
    status
}
