//! The words in which Go programs refuse a value of a wrong type.

use serde_json::Value;

use crate::types::Node;

/// What Go's decoder of JSON says. `owner` is the type with the field, `path` the names on the way to it.
pub(super) fn decoder(node: Node<'_>, found: &Value, owner: &str, path: &str) -> String {
    let name = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if node.kind() == "integer" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    let wanted = go_type(node);
    if path.is_empty() {
        format!("json: cannot unmarshal {name} into Go value of type {wanted}")
    } else {
        format!("json: cannot unmarshal {name} into Go struct field {owner}.{path} of type {wanted}")
    }
}

/// What the converter says that strategic merge patches go through.
pub(super) fn converter(node: Node<'_>, found: &Value) -> String {
    let kind = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match node.kind() {
        "array" => format!("cannot restore slice from {kind}"),
        "object" | "" if node.schema().get("properties").is_some() => format!("cannot restore struct from: {kind}"),
        "object" | "" => format!("cannot restore map from {kind}"),
        // Go converts between numbers and from whole numbers to text, and then thinks better of it.
        wanted => match (kind, wanted) {
            ("int64", "string") | ("float64", "integer") => format!("cannot convert {kind} to {}", go_type(node)),
            _ => format!("unrecognized type: {}", go_type(node)),
        },
    }
}

/// What the library says that merges what is applied.
pub(super) fn merger(node: Node<'_>, found: &Value) -> String {
    let value = || print(found);
    match node.kind() {
        "integer" | "number" => {
            let kind = match found {
                Value::Bool(_) => "bool",
                Value::Array(_) => "[]interface {}",
                Value::Object(_) => "map[string]interface {}",
                _ => "string",
            };
            format!("expected numeric (int or float), got {kind}")
        }
        "string" => format!("expected string, got &value.valueUnstructured{{Value:{}}}", value()),
        "boolean" => format!("expected boolean, got &{{{}}}", value()),
        "array" => format!("expected list, got &{{{}}}", value()),
        _ => format!("expected map, got &{{{}}}", value()),
    }
}

/// A value as Go prints it: `map[a:1 b:[x y]]`.
pub(super) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|(name, _)| *name);
            let pairs: Vec<String> =
                pairs.into_iter().map(|(name, value)| format!("{name}:{}", print(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

/// The type's name in Go, as far as a schema tells it.
fn go_type(node: Node<'_>) -> String {
    if !node.name().is_empty() {
        let mut parts = node.name().rsplit('.');
        let last = parts.next().unwrap_or_default();
        return format!("{}.{last}", parts.next().unwrap_or_default());
    }
    match (node.kind(), node.text("format")) {
        ("integer", "") => "int64".into(),
        ("integer", format) => format.into(),
        ("boolean", _) => "bool".into(),
        ("number", _) => "float64".into(),
        ("string", "byte") => "[]uint8".into(),
        ("array", _) => format!("[]{}", node.items().map(go_type).unwrap_or_default()),
        ("object", _) => format!("map[string]{}", node.additional().map(go_type).unwrap_or_default()),
        _ => "string".into(),
    }
}
