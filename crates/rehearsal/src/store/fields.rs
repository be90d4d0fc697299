//! Sets of fields, as `metadata.managedFields` holds them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{Shape, Type, identity};

/// A set of fields of an object. A node is in the set itself, or has members below it, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Whether the node itself is a member.
    pub here: bool,
    /// What is below: `f:name`, `k:{"name":"x"}` or `v:"x"` as in the wire format.
    pub below: BTreeMap<String, FieldSet>,
}

/// Metadata that nobody owns.
const UNOWNED: [&str; 11] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "generation",
    "managedFields",
    "selfLink",
    "generateName",
];

impl FieldSet {
    fn leaf() -> Self {
        Self { here: true, below: BTreeMap::new() }
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        !self.here && self.below.is_empty()
    }

    /// All fields of an object except those that nobody owns.
    pub fn of_object(object: &Value, root: &Type<'_>) -> Self {
        Self::walk_object(object, root, false)
    }

    fn walk_object(object: &Value, root: &Type<'_>, updated: bool) -> Self {
        let mut out = Self::default();
        for (name, value) in object.as_object().into_iter().flatten() {
            match name.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    let mut node = Self::default();
                    let here = root.field("metadata");
                    for (name, value) in value.as_object().into_iter().flatten() {
                        if !UNOWNED.contains(&name.as_str()) && !value.is_null() {
                            node.below.insert(format!("f:{name}"), Self::walk_value(value, &here.field(name), updated));
                        }
                    }
                    if !node.is_empty() {
                        out.below.insert("f:metadata".into(), node);
                    }
                }
                _ if value.is_null() => {}
                _ => {
                    out.below.insert(format!("f:{name}"), Self::walk_value(value, &root.field(name), updated));
                }
            }
        }
        out
    }

    /// All fields of a value.
    pub fn of_value(value: &Value, here: &Type<'_>) -> Self {
        Self::walk_value(value, here, false)
    }

    /// All fields of an object as a plain update owns them: maps and lists that were absent before are members too.
    pub fn of_update(object: &Value, root: &Type<'_>) -> Self {
        Self::walk_object(object, root, true)
    }

    fn walk_value(value: &Value, here: &Type<'_>, updated: bool) -> Self {
        match (value, here.shape(value)) {
            (Value::Object(map), Shape::Granular) if !map.is_empty() => Self {
                here: updated && here.is_optional(),
                below: map
                    .iter()
                    .map(|(name, value)| (format!("f:{name}"), Self::walk_value(value, &here.field(name), updated)))
                    .collect(),
            },
            (Value::Array(items), Shape::Set) => Self {
                here: updated && here.is_optional(),
                below: items.iter().map(|item| (format!("v:{item}"), Self::leaf())).collect(),
            },
            (Value::Array(items), Shape::Keyed(keys)) => {
                let mut out = Self { here: updated && here.is_optional(), below: BTreeMap::new() };
                for item in items {
                    let mut node = Self::walk_value(item, &here.items(), updated);
                    node.here = true;
                    out.below.insert(format!("k:{}", identity(item, &keys)), node);
                }
                out
            }
            _ => Self::leaf(),
        }
    }

    /// Reads the wire format (`fieldsV1`).
    pub fn from_wire(wire: &Value) -> Self {
        let Some(map) = wire.as_object() else { return Self::leaf() };
        if map.is_empty() {
            return Self::leaf();
        }
        let mut out = Self::default();
        for (name, value) in map {
            if name == "." {
                out.here = true;
            } else {
                out.below.insert(name.clone(), Self::from_wire(value));
            }
        }
        out
    }

    /// Writes the wire format.
    pub fn to_wire(&self) -> Value {
        let mut map = Map::new();
        if self.here && !self.below.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        for (name, node) in &self.below {
            map.insert(name.clone(), node.to_wire());
        }
        Value::Object(map)
    }

    /// Adds the members of another set.
    pub fn union(&mut self, other: &Self) {
        self.here |= other.here;
        for (name, node) in &other.below {
            self.below.entry(name.clone()).or_default().union(node);
        }
    }

    /// Takes the members of another set away.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut out = Self { here: self.here && !other.here, below: BTreeMap::new() };
        for (name, node) in &self.below {
            let rest = other.below.get(name).map_or_else(|| node.clone(), |other| node.minus(other));
            if !rest.is_empty() {
                out.below.insert(name.clone(), rest);
            }
        }
        out
    }

    /// Takes away the members of another set and everything below them.
    #[must_use]
    pub fn minus_subtrees(&self, other: &Self) -> Self {
        if other.here && other.below.is_empty() {
            return Self::default();
        }
        let mut out = Self { here: self.here && !other.here, below: BTreeMap::new() };
        for (name, node) in &self.below {
            let rest = other.below.get(name).map_or_else(|| node.clone(), |other| node.minus_subtrees(other));
            if !rest.is_empty() {
                out.below.insert(name.clone(), rest);
            }
        }
        out
    }

    /// Keeps only what is under these top-level fields, or everything but them.
    pub fn retain_top(&mut self, keep: impl Fn(&str) -> bool) {
        self.below.retain(|name, _| keep(name.strip_prefix("f:").unwrap_or(name)));
    }

    /// The members as printable paths such as `.spec.replicas`.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.walk("", &mut out);
        out
    }

    fn walk(&self, prefix: &str, out: &mut Vec<String>) {
        if self.here {
            out.push(prefix.to_owned());
        }
        for (name, node) in &self.below {
            node.walk(&format!("{prefix}{}", printable(name)), out);
        }
    }
}

fn printable(element: &str) -> String {
    if let Some(name) = element.strip_prefix("f:") {
        return format!(".{name}");
    }
    if let Some(value) = element.strip_prefix("v:") {
        return format!("[={value}]");
    }
    let keys: Map<String, Value> =
        element.strip_prefix("k:").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("[{}]", pairs.join(","))
}
