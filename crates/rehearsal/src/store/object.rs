//! Reading and writing the metadata of an object kept as JSON.

use serde_json::{Map, Value};

/// Where an object lives inside its table. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key an object claims in its own metadata.
    pub fn of(object: &Value) -> Self {
        Self::new(meta_str(object, "namespace"), meta_str(object, "name"))
    }
}

/// One field of the metadata.
pub fn meta<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field)
}

/// One text field of the metadata, empty when absent.
pub fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    meta(object, field).and_then(Value::as_str).unwrap_or_default()
}

/// The metadata as a map, made when it is missing or of another type.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_mut(child_mut(object, "metadata"))
}

/// Sets one field of the metadata; null removes it.
pub fn set_meta(object: &mut Value, field: &str, value: Value) {
    let meta = meta_mut(object);
    if value.is_null() {
        meta.shift_remove(field);
    } else {
        meta.insert(field.to_owned(), value);
    }
}

/// A child of a map, made when missing.
pub fn child_mut<'a>(value: &'a mut Value, field: &str) -> &'a mut Value {
    map_mut(value).entry(field.to_owned()).or_insert(Value::Null)
}

/// The value as a map; anything else is replaced by an empty one.
pub fn map_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("invariant: made an object just above")
}

/// The resource version as a number; 0 when absent.
pub fn revision(object: &Value) -> u64 {
    meta_str(object, "resourceVersion").parse().unwrap_or(0)
}

/// The finalizers, in order.
pub fn finalizers(object: &Value) -> Vec<String> {
    let list = meta(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether the object waits for its finalizers or its grace period.
pub fn is_deleting(object: &Value) -> bool {
    meta(object, "deletionTimestamp").is_some_and(|v| !v.is_null())
}

/// The owner references.
pub fn owners(object: &Value) -> &[Value] {
    meta(object, "ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The value at a dotted path such as `spec.nodeName`.
pub fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(object, |value, part| value.get(part))
}

/// Sets the value at a dotted path, making the maps on the way.
pub fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut here = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        here = child_mut(here, part);
    }
    *here = value;
}
