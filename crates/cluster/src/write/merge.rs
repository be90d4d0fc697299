//! What a change changes, and how it is taken back: pure functions over JSON.

use serde_json::{Map, Value};

/// Whether two states of an object are the same but for what the server counts and reports.
pub(crate) fn same(before: &Value, after: &Value) -> bool {
    bare(before) == bare(after)
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
    }
    object
}

/// Whether everything that `wanted` says is already so in `found`. Lists must be equal.
pub(crate) fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| match found.get(key) {
            Some(found) => holds(found, wanted),
            None => wanted.is_null(),
        }),
        (found, wanted) => found == wanted,
    }
}

/// The merge patch that puts back what `wanted` changes in `before`: old values of its fields, null for new ones.
pub(crate) fn undo(before: &Value, wanted: &Value) -> Value {
    let (Value::Object(old), Value::Object(wanted)) = (before, wanted) else {
        return before.clone();
    };
    let mut back = Map::new();
    for (key, want) in wanted {
        match old.get(key) {
            None if want.is_null() => {}
            None => {
                back.insert(key.clone(), Value::Null);
            }
            Some(old) if old == want => {}
            Some(old @ Value::Object(_)) if want.is_object() => {
                let inner = undo(old, want);
                if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
                    back.insert(key.clone(), inner);
                }
            }
            Some(old) => {
                back.insert(key.clone(), old.clone());
            }
        }
    }
    Value::Object(back)
}

/// The fields of `wanted` that differ before and after, in words: `spec.channel stable → 4.11`.
pub(crate) fn differences(before: &Value, after: &Value, wanted: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(Some(before), Some(after), wanted, "", &mut found);
    found
}

fn collect(before: Option<&Value>, after: Option<&Value>, wanted: &Value, at: &str, found: &mut Vec<String>) {
    if before == after {
        return;
    }
    match wanted {
        Value::Object(map) if !map.is_empty() => {
            for (key, wanted) in map {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                let inside = |value: Option<&Value>| value.and_then(|value| value.get(key)).cloned();
                collect(inside(before).as_ref(), inside(after).as_ref(), wanted, &at, found);
            }
        }
        _ => found.push(format!("{at} {} → {}", short(before), short(after))),
    }
}

fn short(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "(unset)".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    if text.chars().count() > 60 {
        let start: String = text.chars().take(57).collect();
        format!("{start}…")
    } else {
        text
    }
}

/// The object with what is secret in it replaced.
pub(crate) fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
        for key in ["data", "stringData"] {
            let values = object.get_mut(key).and_then(Value::as_object_mut);
            for value in values.into_iter().flat_map(Map::values_mut) {
                *value = Value::from("***");
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_undo_restores_old_values_and_removes_new_ones() {
        let before = json!({"spec": {"channel": "stable", "name": "nfd", "list": [1]}});
        let wanted = json!({"spec": {"channel": "4.11", "name": "nfd", "list": [1, 2], "new": 1}});
        let back = undo(&before, &wanted);
        assert_eq!(back, json!({"spec": {"channel": "stable", "list": [1], "new": null}}));
        let mut after = before.clone();
        json_patch_like(&mut after, &wanted);
        json_patch_like(&mut after, &back);
        assert_eq!(after, before);
    }

    /// RFC 7386, as the server does it.
    fn json_patch_like(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let target = target.as_object_mut().unwrap();
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                json_patch_like(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }

    #[test]
    fn a_change_is_told_by_the_fields_that_were_asked_for() {
        let before = json!({"spec": {"channel": "stable", "other": 1}});
        let after = json!({"spec": {"channel": "4.11", "other": 2, "replicas": 1}});
        let wanted = json!({"spec": {"channel": "4.11", "replicas": 1}});
        assert_eq!(differences(&before, &after, &wanted), ["spec.channel stable → 4.11", "spec.replicas (unset) → 1"]);
    }

    #[test]
    fn what_the_server_counts_is_no_change() {
        let before = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "status": {"n": 1}});
        let after = json!({"metadata": {"name": "a", "resourceVersion": "2", "generation": 1}});
        assert!(same(&before, &after));
        assert!(!same(&before, &json!({"metadata": {"name": "a"}, "spec": {}})));
    }

    #[test]
    fn an_object_that_says_more_still_holds_what_is_wanted() {
        let found = json!({"spec": {"a": 1, "b": 2}, "list": [1]});
        assert!(holds(&found, &json!({"spec": {"a": 1}, "gone": null})));
        assert!(!holds(&found, &json!({"list": []})));
    }

    #[test]
    fn a_secret_is_written_without_its_values() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "s3cret"}});
        assert!(!without_secrets(&secret).to_string().contains("s3cret"));
    }
}
