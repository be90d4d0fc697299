//! An object without what is secret, what is noise, and what only its own cluster understands.

use serde_json::Value;
use toolbox_engine::Redactor;

/// What of an object goes into a recording.
pub(super) fn clean(object: &Value, redactor: &Redactor) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in ["managedFields", "resourceVersion", "selfLink"] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !is_noise(key));
        }
    }
    if object["kind"] == "Node"
        && let Some(status) = object["status"].as_object_mut()
    {
        for key in ["images", "volumesInUse", "volumesAttached"] {
            status.remove(key);
        }
    }
    quiet(&mut object);
    redactor.json(&mut object);
    object
}

/// Annotations that hold whole manifests again, or credentials.
fn is_noise(key: &str) -> bool {
    let key = key.to_lowercase();
    key.ends_with("last-applied-configuration") || ["token", "secret", "password"].iter().any(|word| key.contains(word))
}

/// Takes out the values of environment variables, which may be anything, and the heartbeats of conditions.
fn quiet(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("lastHeartbeatTime");
            for (key, value) in map.iter_mut() {
                if key == "env"
                    && let Some(variables) = value.as_array_mut()
                {
                    for variable in variables.iter_mut().filter_map(Value::as_object_mut) {
                        variable.remove("value");
                    }
                }
                quiet(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quiet),
        _ => {}
    }
}

/// The merge patch from one object to another; nothing when they are the same.
pub(super) fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return Some(new.clone()) };
    let mut patch = serde_json::Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(present) => patch.extend(difference(present, value).map(|part| (key.clone(), part))),
        }
    }
    Some(Value::Object(patch))
}
