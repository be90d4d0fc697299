//! Nobody gives a right that they do not have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{GROUP, covers_resource, covers_url, granted, resource, role, text, texts};
use crate::{
    api::{
        access::{Asked, User},
        kinds::KindDef,
        server::State,
        status::ApiError,
        version::KubeVersion,
    },
    store::object::meta_str,
};

/// Refuses a role with rights that its maker does not have, and a binding to such a role.
pub(in crate::api) fn check(
    state: &State,
    version: KubeVersion,
    user: &User,
    kind: &KindDef,
    old: Option<&Value>,
    new: &Value,
) -> Result<(), ApiError> {
    if kind.group != GROUP || user.is_master() {
        return Ok(());
    }
    let (name, namespace) = (meta_str(new, "name"), meta_str(new, "namespace"));
    let may = |verb: &str, plural: &str, name: &str| {
        let asked = Asked { verb, group: GROUP, plural, name, namespace, ..Asked::default() };
        state.access.decide(&state.store, user, &asked).allowed
    };
    let same = |field: &str| old.is_some_and(|old| old.get(field) == new.get(field));
    let wanted = if ["roles", "clusterroles"].contains(&kind.plural.as_str()) {
        if same("rules") || may("escalate", &kind.plural, name) {
            return Ok(());
        }
        new.get("rules").cloned().unwrap_or_default()
    } else {
        let (of, named) = (text(new, "roleRef.kind"), text(new, "roleRef.name"));
        let plural = if of == "ClusterRole" { "clusterroles" } else { "roles" };
        if same("roleRef") && same("subjects") || may("bind", plural, named) {
            return Ok(());
        }
        let role = role(&state.store, of, named, namespace);
        // Newer servers name the binding's kind with the role's name.
        let missing = if version.minor >= 30 { kind.resource() } else { resource(plural) };
        let role = role.ok_or_else(|| ApiError::not_found(&missing, named))?;
        role.get("rules").cloned().unwrap_or_default()
    };
    let (held, _) = granted(&state.store, user, namespace);
    let held: Vec<&Value> = held.iter().flat_map(super::Granted::rules).collect();
    let missing: Vec<Value> = wanted
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(singles)
        .filter(|single| !held.iter().any(|rule| covers(rule, single)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
    let lines: Vec<String> = compact(missing).into_iter().collect();
    let detail = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        lines.join("\n")
    );
    Err(ApiError::forbidden(&kind.resource(), name, &detail))
}

/// A rule, taken apart into rules of one verb on one thing.
fn singles(rule: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for verb in texts(rule, "verbs") {
        for url in texts(rule, "nonResourceURLs") {
            out.push(json!({"nonResourceURLs": [url], "verbs": [verb]}));
        }
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                let names = texts(rule, "resourceNames");
                let one = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                if names.is_empty() {
                    out.push(one.clone());
                }
                for name in names {
                    let mut one = one.clone();
                    one["resourceNames"] = json!([name]);
                    out.push(one);
                }
            }
        }
    }
    out
}

fn covers(rule: &Value, single: &Value) -> bool {
    let first = |field: &str| texts(single, field).first().copied().unwrap_or_default();
    let has = |field: &str| texts(rule, field).iter().any(|own| *own == "*" || *own == first(field));
    if !has("verbs") {
        return false;
    }
    if single.get("nonResourceURLs").is_some() {
        return texts(rule, "nonResourceURLs").iter().any(|own| covers_url(own, first("nonResourceURLs")));
    }
    let names = texts(rule, "resourceNames");
    has("apiGroups")
        && texts(rule, "resources").iter().any(|own| covers_resource(own, first("resources")))
        && (names.is_empty() || single.get("resourceNames").is_some() && names.contains(&first("resourceNames")))
}

/// The rules as a server prints them, the verbs on one thing together, in order.
fn compact(singles: Vec<Value>) -> BTreeSet<String> {
    let mut by_thing: BTreeMap<String, (Value, Vec<String>)> = BTreeMap::new();
    for mut single in singles {
        let verbs: Vec<String> = texts(&single, "verbs").into_iter().map(str::to_owned).collect();
        single["verbs"] = Value::Null;
        by_thing.entry(single.to_string()).or_insert_with(|| (single, Vec::new())).1.extend(verbs);
    }
    let line = |(mut rule, verbs): (Value, Vec<String>)| {
        rule["verbs"] = json!(verbs);
        let fields = [
            ("APIGroups", "apiGroups"),
            ("Resources", "resources"),
            ("NonResourceURLs", "nonResourceURLs"),
            ("ResourceNames", "resourceNames"),
            ("Verbs", "verbs"),
        ];
        let parts: Vec<String> = fields
            .into_iter()
            .filter(|(_, field)| rule.get(field).is_some())
            .map(|(title, field)| {
                let values: Vec<String> = texts(&rule, field).iter().map(|value| format!("{value:?}")).collect();
                format!("{title}:[{}]", values.join(" "))
            })
            .collect();
        format!("{{{}}}", parts.join(", "))
    };
    by_thing.into_values().map(line).collect()
}
