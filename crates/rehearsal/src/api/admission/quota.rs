//! Quotas: what a namespace may hold, and what it holds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{is_pod, quantity::Quantity};
use crate::{
    api::{kinds::KindDef, server::State, status::ApiError},
    store::{
        Resource,
        object::{at, meta_str, set_at},
    },
};

type Amounts = BTreeMap<String, Quantity>;

/// What every container must say when a quota counts it.
const COMPUTE: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Kinds with a count under their own name.
const COUNTED: [&str; 6] =
    ["configmaps", "secrets", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "services"];

fn amounts(object: &Value, path: &str) -> Amounts {
    let map = at(object, path).and_then(Value::as_object).into_iter().flatten();
    map.map(|(name, value)| (name.clone(), Quantity::of(value))).collect()
}

fn print<'a>(amounts: impl IntoIterator<Item = (&'a String, Quantity)>) -> String {
    let parts: Vec<String> = amounts.into_iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    parts.join(",")
}

/// Refuses an object that a quota leaves no room for.
pub(super) fn check(state: &State, kind: &KindDef, object: &Value) -> Result<(), ApiError> {
    let namespace = meta_str(object, "namespace");
    if namespace.is_empty() {
        return Ok(());
    }
    let usage = usage(&kind.group, &kind.plural, object);
    let refuse = |detail: String| Err(ApiError::forbidden(&kind.resource(), meta_str(object, "name"), &detail));
    for (key, quota) in state.store.list(&Resource::new("", "resourcequotas"), Some(namespace)) {
        let (hard, used) = (amounts(&quota, "status.hard"), amounts(&quota, "status.used"));
        if is_pod(kind) {
            let unsaid = unsaid(object, &hard);
            if !unsaid.is_empty() {
                return refuse(format!("failed quota: {}: must specify {}", key.name, unsaid.join("; ")));
            }
        }
        let of = |map: &Amounts, name: &String| map.get(name).copied().unwrap_or_default();
        let over: Vec<&String> = usage
            .iter()
            .filter(|(name, amount)| {
                let limit = hard.get(*name);
                !amount.is_zero() && limit.is_some_and(|limit| of(&used, name) + **amount > *limit)
            })
            .map(|(name, _)| name)
            .collect();
        if !over.is_empty() {
            let list = |map: &Amounts| print(over.iter().map(|name| (*name, of(map, name))));
            return refuse(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                key.name,
                list(&usage),
                list(&used),
                list(&hard)
            ));
        }
    }
    Ok(())
}

fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    at(pod, &format!("spec.{list}")).and_then(Value::as_array).into_iter().flatten()
}

/// What a quota counts and some container does not say: `limits.memory for: main,side`.
fn unsaid(pod: &Value, hard: &Amounts) -> Vec<String> {
    let mut out = Vec::new();
    for wanted in hard.keys().filter(|name| COMPUTE.contains(&name.as_str())) {
        let path = if wanted.contains('.') { wanted.clone() } else { format!("requests.{wanted}") };
        let all = containers(pod, "containers").chain(containers(pod, "initContainers"));
        let silent: Vec<&str> = all
            .filter(|container| at(container, &format!("resources.{path}")).is_none())
            .filter_map(|container| container.get("name")?.as_str())
            .collect();
        if !silent.is_empty() {
            out.push(format!("{wanted} for: {}", silent.join(",")));
        }
    }
    out
}

/// What an object uses of everything that can be counted.
fn usage(group: &str, plural: &str, object: &Value) -> Amounts {
    let mut out = Amounts::new();
    let one = Quantity::whole(1);
    let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    out.insert(format!("count/{qualified}"), one);
    if !group.is_empty() {
        return out;
    }
    if COUNTED.contains(&plural) {
        out.insert(plural.to_owned(), one);
    }
    let text = |path: &str| at(object, path).and_then(Value::as_str).unwrap_or_default();
    match plural {
        "pods" if !["Succeeded", "Failed"].contains(&text("status.phase")) => {
            out.insert("pods".to_owned(), one);
            resources(object, &mut out);
        }
        "services" => {
            let ports = at(object, "spec.ports").and_then(Value::as_array).map_or(0, Vec::len);
            if ["NodePort", "LoadBalancer"].contains(&text("spec.type")) {
                out.insert("services.nodeports".to_owned(), Quantity::whole(ports));
            }
            if text("spec.type") == "LoadBalancer" {
                out.insert("services.loadbalancers".to_owned(), one);
            }
        }
        "persistentvolumeclaims" => {
            if let Some(size) = at(object, "spec.resources.requests.storage") {
                out.insert("requests.storage".to_owned(), Quantity::of(size));
            }
        }
        _ => {}
    }
    out
}

/// A pod's requests and limits: those of its containers together, or of the greediest one that only starts it.
fn resources(pod: &Value, out: &mut Amounts) {
    for list in ["requests", "limits"] {
        let own = |container: &Value| amounts(container, &format!("resources.{list}"));
        let mut sum = Amounts::new();
        for (name, amount) in containers(pod, "containers").flat_map(own) {
            let entry = sum.entry(name).or_default();
            *entry = *entry + amount;
        }
        for (name, amount) in containers(pod, "initContainers").flat_map(own) {
            let entry = sum.entry(name).or_default();
            *entry = (*entry).max(amount);
        }
        for (name, amount) in sum {
            if list == "requests" && ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) {
                out.insert(name.clone(), amount);
            }
            out.insert(format!("{list}.{name}"), amount);
        }
    }
}

/// Counts again what the quotas of a namespace count.
pub(super) fn count(state: &mut State, namespace: &str) {
    let quotas = Resource::new("", "resourcequotas");
    let found = state.store.list(&quotas, Some(namespace));
    if found.is_empty() {
        return;
    }
    let mut total = Amounts::new();
    for resource in state.store.resources() {
        for (_, object) in state.store.list(&resource, Some(namespace)) {
            for (name, amount) in usage(&resource.group, &resource.plural, &object) {
                let entry = total.entry(name).or_default();
                *entry = *entry + amount;
            }
        }
    }
    for (_, quota) in found {
        let Some(hard) = at(&quota, "spec.hard").and_then(Value::as_object) else { continue };
        let of = |name: &String| total.get(name).copied().unwrap_or_default().to_string().into();
        let used: serde_json::Map<String, Value> = hard.keys().map(|name| (name.clone(), of(name))).collect();
        let status = json!({"hard": hard, "used": used});
        if quota.get("status") != Some(&status) {
            let mut new = Value::clone(&quota);
            set_at(&mut new, "status", status);
            state.store.put(&quotas, new);
        }
    }
}
