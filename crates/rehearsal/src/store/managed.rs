//! Field management: who owns which field, what an apply changes, and where two appliers conflict.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    fields::FieldSet,
    object::{meta, set_meta},
    shape::{Shape, Type, identity},
};

/// Who writes, and through what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer<'a> {
    /// The field manager's name.
    pub manager: &'a str,
    /// The version in which the writer sees the object.
    pub api_version: &'a str,
    /// The subresource written to, empty for the object itself.
    pub subresource: &'a str,
    /// The present moment in the server's format.
    pub time: &'a str,
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner's name.
    pub manager: String,
    /// Text such as `conflict with "kubectl" using apps/v1`.
    pub message: String,
    /// The field, as `.spec.replicas`.
    pub field: String,
}

#[derive(Clone, Debug)]
struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: String,
    set: FieldSet,
}

fn read(object: &Value) -> Vec<Entry> {
    let list = meta(object, "managedFields").and_then(Value::as_array);
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    list.into_iter()
        .flatten()
        .map(|entry| Entry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: text(entry, "time"),
            set: entry.get("fieldsV1").map(FieldSet::from_wire).unwrap_or_default(),
        })
        .collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    // Appliers first, then by age and name: the order in which servers keep them.
    entries.sort_by(|left, right| {
        let key = |entry: &Entry| {
            (
                entry.operation.clone(),
                entry.time.clone(),
                entry.manager.clone(),
                entry.api_version.clone(),
                entry.subresource.clone(),
            )
        };
        key(left).cmp(&key(right))
    });
    let list: Vec<Value> = entries
        .into_iter()
        .filter(|entry| !entry.set.is_empty())
        .map(|entry| {
            let mut map = Map::new();
            map.insert("manager".into(), entry.manager.into());
            map.insert("operation".into(), entry.operation.into());
            map.insert("apiVersion".into(), entry.api_version.into());
            map.insert("time".into(), entry.time.into());
            map.insert("fieldsType".into(), "FieldsV1".into());
            map.insert("fieldsV1".into(), entry.set.to_wire());
            if !entry.subresource.is_empty() {
                map.insert("subresource".into(), entry.subresource.into());
            }
            Value::Object(map)
        })
        .collect();
    set_meta(object, "managedFields", if list.is_empty() { Value::Null } else { list.into() });
}

fn is_mine(entry: &Entry, writer: &Writer<'_>, operation: &str) -> bool {
    entry.manager == writer.manager
        && entry.operation == operation
        && entry.subresource == writer.subresource
        && entry.api_version == writer.api_version
}

/// Records a create, update or patch: what changed now belongs to the writer, what went belongs to nobody.
///
/// `new` must carry the managed fields of `old`.
pub fn record_update(old: Option<&Value>, new: &mut Value, root: &Type<'_>, writer: &Writer<'_>) {
    let empty = json!({});
    let before = old.unwrap_or(&empty);
    let set_before = FieldSet::of_update(before, root);
    let set_after = FieldSet::of_update(new, root);
    let removed = set_before.minus(&set_after);
    let mut changed = set_after.minus(&set_before);
    changed.union(&differing(before, new, &set_after, root));
    if changed.is_empty() && removed.is_empty() {
        return;
    }
    let mut entries = read(new);
    for entry in &mut entries {
        entry.set = entry.set.minus(&removed);
        if !is_mine(entry, writer, "Update") {
            entry.set = entry.set.minus(&changed);
        }
    }
    if let Some(mine) = entries.iter_mut().find(|entry| is_mine(entry, writer, "Update")) {
        mine.set.union(&changed);
        writer.time.clone_into(&mut mine.time);
    } else {
        entries.push(entry(writer, "Update", changed));
    }
    write(new, entries);
}

fn entry(writer: &Writer<'_>, operation: &str, set: FieldSet) -> Entry {
    Entry {
        manager: writer.manager.to_owned(),
        operation: operation.to_owned(),
        api_version: writer.api_version.to_owned(),
        subresource: writer.subresource.to_owned(),
        time: writer.time.to_owned(),
        set,
    }
}

/// Merges an applied configuration into the live object.
///
/// Returns the conflicts when another manager owns a field with another value and `force` is not set.
pub fn apply(
    live: &Value,
    config: &Value,
    root: &Type<'_>,
    writer: &Writer<'_>,
    force: bool,
    ignore: &dyn Fn(&str) -> bool,
) -> Result<Value, Vec<Conflict>> {
    let mut wanted = FieldSet::of_object(config, root);
    wanted.retain_top(|name| !ignore(name));
    let mut entries = read(live);
    let differing = differing(live, config, &wanted, root);
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !is_mine(entry, writer, "Apply")) {
        let clash = intersection(&differing, &entry.set);
        if clash.is_empty() {
            continue;
        }
        if force {
            entry.set = entry.set.minus(&clash);
        } else {
            let using = if entry.operation == "Update" && !entry.api_version.is_empty() {
                format!(" using {}", entry.api_version)
            } else {
                String::new()
            };
            let part = if entry.subresource.is_empty() {
                String::new()
            } else {
                format!(" with subresource {:?}", entry.subresource)
            };
            for field in clash.paths() {
                conflicts.push(Conflict {
                    manager: entry.manager.clone(),
                    message: format!("conflict with {:?}{part}{using}", entry.manager),
                    field,
                });
            }
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let mut merged = live.clone();
    merge_top(&mut merged, config, root, ignore);
    let old = entries.iter().position(|entry| is_mine(entry, writer, "Apply")).map(|index| entries.remove(index));
    if let Some(old) = &old {
        let mut others = FieldSet::default();
        for entry in &entries {
            others.union(&entry.set);
        }
        let gone = old.set.minus(&wanted);
        prune(&mut merged, &gone, &others, &wanted, root);
    }
    let mut mine = entry(writer, "Apply", wanted);
    if let Some(old) = old.filter(|old| old.set == mine.set) {
        mine.time = old.time;
    }
    entries.push(mine);
    write(&mut merged, entries);
    Ok(merged)
}

fn merge_top(live: &mut Value, config: &Value, root: &Type<'_>, ignore: &dyn Fn(&str) -> bool) {
    for (name, value) in config.as_object().into_iter().flatten() {
        if ignore(name) {
            continue;
        }
        let slot = super::object::child_mut(live, name);
        if name == "metadata" {
            for (name, value) in value.as_object().into_iter().flatten() {
                if name != "managedFields" {
                    let here = root.field("metadata").field(name);
                    merge(super::object::child_mut(slot, name), value, &here);
                }
            }
        } else {
            merge(slot, value, &root.field(name));
        }
    }
}

/// Merges a value into another by the rules of their type.
pub fn merge(live: &mut Value, config: &Value, here: &Type<'_>) {
    match (here.shape(config), config) {
        (Shape::Granular, Value::Object(map)) if live.is_object() => {
            for (name, value) in map {
                merge(super::object::child_mut(live, name), value, &here.field(name));
            }
        }
        (Shape::Set, Value::Array(items)) if live.is_array() => {
            if let Some(list) = live.as_array_mut() {
                for item in items {
                    if !list.contains(item) {
                        list.push(item.clone());
                    }
                }
            }
        }
        (Shape::Keyed(keys), Value::Array(items)) if live.is_array() => {
            if let Some(list) = live.as_array_mut() {
                for item in items {
                    let id = identity(item, &keys);
                    match list.iter_mut().find(|other| identity(other, &keys) == id) {
                        Some(other) => merge(other, item, &here.items()),
                        None => list.push(item.clone()),
                    }
                }
            }
        }
        _ => *live = config.clone(),
    }
}

fn children<'a>(value: &'a Value, here: &Type<'_>) -> BTreeMap<String, &'a Value> {
    match (value, here.shape(value)) {
        (Value::Object(map), Shape::Granular) => map.iter().map(|(name, value)| (format!("f:{name}"), value)).collect(),
        (Value::Array(items), Shape::Set) => items.iter().map(|item| (format!("v:{item}"), item)).collect(),
        (Value::Array(items), Shape::Keyed(keys)) => {
            items.iter().map(|item| (format!("k:{}", identity(item, &keys)), item)).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn descend<'t>(here: &Type<'t>, element: &str) -> Type<'t> {
    element.strip_prefix("f:").map_or_else(|| here.items(), |name| here.field(name))
}

/// The members of `set` whose values in the two objects differ (absent differs from present).
fn differing(left: &Value, right: &Value, set: &FieldSet, here: &Type<'_>) -> FieldSet {
    let mut out = FieldSet::default();
    let (in_left, in_right) = (children(left, here), children(right, here));
    for (element, node) in &set.below {
        let (a, b) = (in_left.get(element).copied(), in_right.get(element).copied());
        let next = descend(here, element);
        let mut child = match (a, b) {
            (Some(a), Some(b)) if a == b => FieldSet::default(),
            (Some(a), Some(b)) if !node.below.is_empty() => differing(a, b, node, &next),
            _ => node.clone(),
        };
        // An item of a list exists on both sides: that it exists is no difference.
        if a.is_some() && b.is_some() && !node.below.is_empty() {
            child.here = false;
        }
        if !child.is_empty() {
            out.below.insert(element.clone(), child);
        }
    }
    out
}

fn intersection(left: &FieldSet, right: &FieldSet) -> FieldSet {
    let mut out = FieldSet { here: left.here && right.here, below: BTreeMap::new() };
    for (name, node) in &left.below {
        if let Some(other) = right.below.get(name) {
            let both = intersection(node, other);
            if !both.is_empty() {
                out.below.insert(name.clone(), both);
            }
        }
    }
    out
}

/// Removes what the applier no longer mentions and nobody else owns.
fn prune(value: &mut Value, gone: &FieldSet, others: &FieldSet, wanted: &FieldSet, here: &Type<'_>) {
    let nothing = FieldSet::default();
    for (element, node) in &gone.below {
        let other = others.below.get(element).unwrap_or(&nothing);
        let still = wanted.below.get(element).unwrap_or(&nothing);
        if node.here && other.is_empty() && still.is_empty() {
            remove(value, element, here);
            continue;
        }
        let next = descend(here, element);
        let mut emptied = false;
        if let Some(child) = child_of(value, element, here) {
            prune(child, node, other, still, &next);
            emptied = child.as_object().is_some_and(Map::is_empty) || child.as_array().is_some_and(Vec::is_empty);
        }
        if emptied && other.is_empty() && still.is_empty() {
            remove(value, element, here);
        }
    }
}

fn child_of<'a>(value: &'a mut Value, element: &str, here: &Type<'_>) -> Option<&'a mut Value> {
    if let Some(name) = element.strip_prefix("f:") {
        return value.get_mut(name);
    }
    let Shape::Keyed(keys) = here.shape(value) else { return None };
    let id = element.strip_prefix("k:")?;
    value.as_array_mut()?.iter_mut().find(|item| identity(item, &keys) == id)
}

fn remove(value: &mut Value, element: &str, here: &Type<'_>) {
    let shape = here.shape(value);
    match value {
        Value::Object(map) => {
            if let Some(name) = element.strip_prefix("f:") {
                map.shift_remove(name);
            }
        }
        Value::Array(items) => items.retain(|item| match &shape {
            Shape::Keyed(keys) => element.strip_prefix("k:") != Some(identity(item, keys).as_str()),
            _ => element.strip_prefix("v:") != Some(item.to_string().as_str()),
        }),
        _ => {}
    }
}
