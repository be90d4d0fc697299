//! How lists and maps merge: as one value, as a set, or item by item under keys.
//!
//! Custom resources say so in their schema; for the built-in kinds the field's name decides.

use serde_json::Value;

/// How a list or map behaves when two writers meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Maps and scalars: field by field.
    Granular,
    /// One value, replaced as a whole.
    Atomic,
    /// A list of scalars without duplicates.
    Set,
    /// A list of maps, each known by these fields.
    Keyed(Vec<String>),
}

/// Where one is in an object's type.
#[derive(Clone, Debug)]
pub enum Type<'a> {
    /// A built-in kind, with the names of the fields on the way, list items left out.
    Builtin(Vec<String>),
    /// A custom resource's schema at this point, if it has one.
    Custom(Option<&'a Value>),
}

impl<'a> Type<'a> {
    /// The type of an object: by the schema if there is one, else built in.
    pub fn of_object(schema: Option<&'a Value>, custom: bool) -> Self {
        if custom { Self::Custom(schema) } else { Self::Builtin(Vec::new()) }
    }

    /// The type of a field, which is at the top of the object or not.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        match self {
            Self::Builtin(path) => {
                let mut path = path.clone();
                path.push(name.to_owned());
                Self::Builtin(path)
            }
            // Metadata is the same for every kind; a schema says nothing about it.
            Self::Custom(_) if name == "metadata" => Self::Builtin(vec![name.to_owned()]),
            Self::Custom(schema) => Self::Custom(schema.and_then(|schema| {
                let named = schema.get("properties").and_then(|properties| properties.get(name));
                named.or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))
            })),
        }
    }

    /// The type of a list's items.
    #[must_use]
    pub fn items(&self) -> Self {
        match self {
            Self::Builtin(path) => Self::Builtin(path.clone()),
            Self::Custom(schema) => Self::Custom(schema.and_then(|schema| schema.get("items"))),
        }
    }

    /// Whether a map or list of this type may be absent, as opposed to being there and empty.
    pub fn is_optional(&self) -> bool {
        let Self::Builtin(path) = self else { return true };
        !path.last().is_some_and(|last| {
            ["metadata", "spec", "status", "template", "strategy", "updateStrategy", "containers", "loadBalancer"]
                .contains(&last.as_str())
        })
    }

    /// How a value of this type merges.
    pub fn shape(&self, value: &Value) -> Shape {
        match self {
            Self::Builtin(path) => builtin(path, value),
            Self::Custom(schema) => custom(*schema, value),
        }
    }
}

fn custom(schema: Option<&Value>, value: &Value) -> Shape {
    let text = |name: &str| schema.and_then(|schema| schema.get(name)).and_then(Value::as_str);
    match value {
        Value::Array(_) => match text("x-kubernetes-list-type") {
            Some("set") => Shape::Set,
            Some("map") => {
                let keys = schema.and_then(|schema| schema.get("x-kubernetes-list-map-keys"));
                let keys = keys.and_then(Value::as_array).into_iter().flatten();
                Shape::Keyed(keys.filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => Shape::Atomic,
        },
        Value::Object(_) if text("x-kubernetes-map-type") == Some("atomic") => Shape::Atomic,
        _ => Shape::Granular,
    }
}

fn builtin(path: &[String], value: &Value) -> Shape {
    let last = path.last().map_or("", String::as_str);
    let parent = path.len().checked_sub(2).and_then(|index| path.get(index)).map_or("", String::as_str);
    match value {
        Value::Array(_) => list_keys(parent, last),
        Value::Object(_) => match last {
            "selector" | "nodeSelector" | "labelSelector" | "namespaceSelector" | "podSelector" | "secretKeyRef"
            | "configMapKeyRef" | "fieldRef" | "resourceFieldRef" | "roleRef" | "involvedObject" | "scaleTargetRef"
            | "secretRef" | "configMapRef" => Shape::Atomic,
            _ => Shape::Granular,
        },
        _ => Shape::Granular,
    }
}

fn list_keys(parent: &str, last: &str) -> Shape {
    let keys: &[&str] = match last {
        "finalizers" => return Shape::Set,
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "webhooks"
        | "resourceClaims" => &["name"],
        "secrets" if parent.is_empty() => &["name"],
        "conditions" | "addresses" => &["type"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "ports" if parent == "containers" || parent == "initContainers" => &["containerPort", "protocol"],
        "ports" if parent == "spec" => &["port", "protocol"],
        "hostAliases" | "podIPs" | "hostIPs" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        "ownerReferences" => &["uid"],
        _ => return Shape::Atomic,
    };
    Shape::Keyed(keys.iter().map(|key| (*key).to_owned()).collect())
}

/// What a key reads as in an item that leaves it out.
pub fn key_default(key: &str) -> Value {
    if key == "protocol" { "TCP".into() } else { Value::Null }
}

/// The identity of an item of a keyed list, as text that is equal for equal identities.
pub fn identity(item: &Value, keys: &[String]) -> String {
    let mut sorted: Vec<&String> = keys.iter().collect();
    sorted.sort();
    let map: serde_json::Map<String, Value> = sorted
        .into_iter()
        .map(|key| (key.clone(), item.get(key).cloned().unwrap_or_else(|| key_default(key))))
        .filter(|(_, value)| !value.is_null())
        .collect();
    Value::Object(map).to_string()
}
