//! What a structural schema makes of an object: unknown fields go, defaults come, required, type and enum are checked.

use serde_json::{Map, Value};

use super::status::Cause;

/// Removes members whose value is null, at any depth.
pub(super) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Removes fields that the schema does not know and returns their paths. The top level keeps what every object has.
pub(super) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    prune_at(schema, object, "", &mut pruned);
    pruned
}

fn prune_at(schema: &Value, value: &mut Value, path: &str, pruned: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let additional = schema.get("additionalProperties");
            let keep = flag(schema, "x-kubernetes-preserve-unknown-fields") || additional == Some(&Value::Bool(true));
            let embedded = path.is_empty() || flag(schema, "x-kubernetes-embedded-resource");
            map.retain(|name, value| {
                if embedded && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                    return true;
                }
                let property = properties.and_then(|properties| properties.get(name));
                let known = property.or_else(|| additional.filter(|additional| additional.is_object()));
                let path = join(path, name);
                if let Some(schema) = known {
                    prune_at(schema, value, &path, pruned);
                } else if !keep {
                    pruned.push(path);
                    return false;
                }
                true
            });
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_at(schema, item, &format!("{path}[{index}]"), pruned);
                }
            }
        }
        _ => {}
    }
}

/// Fills in the schema's defaults.
pub(super) fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if !map.contains_key(name)
                    && let Some(value) = property.get("default")
                {
                    map.insert(name.clone(), value.clone());
                }
                if let Some(child) = map.get_mut(name) {
                    default(property, child);
                }
            }
            if let Some(additional) = schema.get("additionalProperties").filter(|additional| additional.is_object()) {
                let known = schema.get("properties").and_then(Value::as_object);
                let unknown = map.iter_mut().filter(|(name, _)| !known.is_some_and(|known| known.contains_key(*name)));
                unknown.for_each(|(_, child)| default(additional, child));
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    default(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// What is wrong with an object, by the schema.
pub(super) fn validate(schema: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check_map(schema, object.as_object(), "", &mut causes);
    causes
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn check_map(schema: &Value, map: Option<&Map<String, Value>>, path: &str, causes: &mut Vec<Cause>) {
    let Some(map) = map else { return };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !map.contains_key(name) {
            causes.push(Cause::required(join(path, name), ""));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties").filter(|additional| additional.is_object());
    let mut sorted: Vec<(&String, &Value)> = map.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (name, value) in sorted {
        if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        if let Some(schema) = properties.and_then(|properties| properties.get(name)).or(additional) {
            check(schema, value, &join(path, name), causes);
        }
    }
}

fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && flag(schema, "nullable") {
        return;
    }
    let (found, fits) = fits(schema, value);
    if !fits {
        let wanted = schema.get("type").and_then(Value::as_str).unwrap_or("integer,string");
        let detail = format!("{path} in body must be of type {wanted}: {found:?}");
        causes.push(Cause::type_invalid(path, &Value::String(found.to_owned()), &detail));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<String> =
            allowed.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
        causes.push(Cause::unsupported(path, value, &allowed));
    }
    if !fits {
        return;
    }
    bounds(schema, value, path, causes);
    match value {
        Value::Object(map) => check_map(schema, Some(map), path, causes),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &format!("{path}[{index}]"), causes);
                }
            }
        }
        _ => {}
    }
}

fn fits(schema: &Value, value: &Value) -> (&'static str, bool) {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if flag(schema, "x-kubernetes-int-or-string") {
        return (found, found == "integer" || found == "string");
    }
    let Some(wanted) = schema.get("type").and_then(Value::as_str) else { return (found, true) };
    (found, wanted == found || (wanted == "number" && found == "integer"))
}

fn bounds(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let number = value.as_f64();
    if let (Some(number), Some(minimum)) = (number, schema.get("minimum").and_then(Value::as_f64))
        && number < minimum
    {
        let detail = format!("{path} in body should be greater than or equal to {minimum}");
        causes.push(Cause::invalid(path, value, &detail));
    }
    if let (Some(number), Some(maximum)) = (number, schema.get("maximum").and_then(Value::as_f64))
        && number > maximum
    {
        let detail = format!("{path} in body should be less than or equal to {maximum}");
        causes.push(Cause::invalid(path, value, &detail));
    }
    let length = value.as_str().map(|text| text.chars().count() as u64);
    if let (Some(length), Some(minimum)) = (length, schema.get("minLength").and_then(Value::as_u64))
        && length < minimum
    {
        causes.push(Cause::invalid(path, value, &format!("{path} in body should be at least {minimum} chars long")));
    }
    if let (Some(length), Some(maximum)) = (length, schema.get("maxLength").and_then(Value::as_u64))
        && length > maximum
    {
        causes.push(Cause::invalid(path, value, &format!("{path} in body should be at most {maximum} chars long")));
    }
}
