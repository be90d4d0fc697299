//! Limit ranges: what containers get that say nothing, and what they may say.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::quantity::Quantity;
use crate::{
    api::{server::State, status::ApiError},
    store::{
        Resource,
        object::{at, child_mut, map_mut, meta, meta_str, set_meta},
    },
};

/// What is not said of a range follows from what is.
pub(super) fn complete(range: &mut Value) {
    let items = range.get_mut("spec").and_then(|spec| spec.get_mut("limits")).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if item.get("type").and_then(Value::as_str) != Some("Container") {
            continue;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let Some(known) = item.get(from).and_then(Value::as_object).cloned() else { continue };
            let own = map_mut(child_mut(item, to));
            for (name, value) in known {
                own.entry(name).or_insert(value);
            }
        }
    }
}

/// The items for containers of all ranges of a pod's namespace.
fn items(state: &State, pod: &Value) -> Vec<Value> {
    let ranges = state.store.list(&Resource::new("", "limitranges"), Some(meta_str(pod, "namespace")));
    let limits = ranges.iter().filter_map(|(_, range)| at(range, "spec.limits")?.as_array());
    let items = limits.flatten().filter(|item| item.get("type").and_then(Value::as_str) == Some("Container"));
    items.cloned().collect()
}

fn map<'a>(value: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// Gives containers what they do not say, and notes it on the pod.
pub(super) fn apply(state: &State, pod: &mut Value) {
    let items = items(state, pod);
    let mut notes = Vec::new();
    for list in ["initContainers", "containers"] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let role = if list == "containers" { "container" } else { "init container" };
            for (own, default, word) in [("requests", "defaultRequest", "request"), ("limits", "default", "limit")] {
                let mut given = BTreeSet::new();
                for (resource, amount) in items.iter().filter_map(|item| map(item, default)).flatten() {
                    let mine = map_mut(child_mut(child_mut(container, "resources"), own));
                    if !mine.contains_key(resource) {
                        mine.insert(resource.clone(), amount.clone());
                        given.insert(resource.clone());
                    }
                }
                if !given.is_empty() {
                    let given: Vec<String> = given.into_iter().collect();
                    notes.push(format!("{} {word} for {role} {name}", given.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let mut annotations = meta(pod, "annotations").cloned().unwrap_or_else(|| json!({}));
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        map_mut(&mut annotations).insert("kubernetes.io/limit-ranger".into(), note.into());
        set_meta(pod, "annotations", annotations);
    }
}

/// Refuses containers that ask for less or more than they may.
pub(super) fn check(state: &State, pod: &Value) -> Result<(), ApiError> {
    let mut wrong = Vec::new();
    for item in items(state, pod) {
        for list in ["containers", "initContainers"] {
            for container in at(pod, &format!("spec.{list}")).and_then(Value::as_array).into_iter().flatten() {
                for (resource, bound) in map(&item, "min").into_iter().flatten() {
                    wrong.extend(below(container, resource, bound));
                }
                for (resource, bound) in map(&item, "max").into_iter().flatten() {
                    wrong.extend(above(container, resource, bound));
                }
            }
        }
    }
    let detail = match wrong.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    Err(ApiError::forbidden(&Resource::new("", "pods"), meta_str(pod, "name"), &detail))
}

fn said(container: &Value, list: &str, resource: &str) -> Option<Quantity> {
    map(container, &format!("resources.{list}"))?.get(resource).map(Quantity::of)
}

fn below(container: &Value, resource: &str, bound: &Value) -> Option<String> {
    let least = Quantity::of(bound);
    let text = format!("minimum {resource} usage per Container is {least}");
    let (request, limit) = (said(container, "requests", resource), said(container, "limits", resource));
    match (request, limit) {
        (None, _) => Some(format!("{text}.  No request is specified")),
        (Some(request), _) if request < least => Some(format!("{text}, but request is {request}")),
        (_, Some(limit)) if limit < least => Some(format!("{text}, but limit is {limit}")),
        _ => None,
    }
}

fn above(container: &Value, resource: &str, bound: &Value) -> Option<String> {
    let most = Quantity::of(bound);
    let text = format!("maximum {resource} usage per Container is {most}");
    let (request, limit) = (said(container, "requests", resource), said(container, "limits", resource));
    match (request, limit) {
        (_, None) => Some(format!("{text}.  No limit is specified")),
        (_, Some(limit)) if limit > most => Some(format!("{text}, but limit is {limit}")),
        (Some(request), _) if request > most => Some(format!("{text}, but request is {request}")),
        _ => None,
    }
}
