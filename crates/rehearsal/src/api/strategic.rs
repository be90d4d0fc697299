//! Strategic merge patch: lists of the built-in kinds merge item by item under their keys.

use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";

/// Merges a strategic patch into an object.
pub(super) fn merge(object: &mut Value, patch: &Value) {
    merge_at(object, patch, &mut Vec::new());
}

/// The key under which the items of a list merge; the empty text stands for a merged list of scalars.
fn merge_key(path: &[String]) -> Option<&'static str> {
    let last = path.last().map_or("", String::as_str);
    let parent = path.len().checked_sub(2).and_then(|index| path.get(index)).map_or("", String::as_str);
    Some(match last {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "webhooks"
        | "secrets" => "name",
        "conditions" | "addresses" => "type",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "ports" if parent == "containers" || parent == "initContainers" => "containerPort",
        "ports" if parent == "spec" => "port",
        "hostAliases" | "podIPs" => "ip",
        "topologySpreadConstraints" => "topologyKey",
        "ownerReferences" => "uid",
        "taints" => "key",
        "finalizers" => "",
        _ => return None,
    })
}

fn merge_at(target: &mut Value, patch: &Value, path: &mut Vec<String>) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if changes.get(DIRECTIVE).and_then(Value::as_str) == Some("replace") {
        *target = Value::Object(
            changes.iter().filter(|(name, _)| *name != DIRECTIVE).map(|(n, v)| (n.clone(), v.clone())).collect(),
        );
        return;
    }
    let map = crate::store::object::map_mut(target);
    if let Some(Value::Array(keep)) = changes.get("$retainKeys") {
        map.retain(|name, _| keep.iter().any(|key| key.as_str() == Some(name)));
    }
    for (name, change) in changes {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (map.get_mut(list), change) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        path.push(name.clone());
        match change {
            Value::Null => {
                map.shift_remove(name);
            }
            Value::Object(inner) if inner.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") => {
                map.shift_remove(name);
            }
            Value::Array(items) => {
                let slot = map.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                merge_list(slot, items, path);
            }
            Value::Object(_) => {
                let slot = map.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
                merge_at(slot, change, path);
            }
            _ => {
                map.insert(name.clone(), change.clone());
            }
        }
        path.pop();
        order(map, name, changes.get(&format!("$setElementOrder/{name}")), path);
    }
}

fn merge_list(slot: &mut Value, items: &[Value], path: &mut Vec<String>) {
    let replaces = items.iter().any(|item| item.get(DIRECTIVE).and_then(Value::as_str) == Some("replace"));
    let (Some(key), Value::Array(list), false) = (merge_key(path), &mut *slot, replaces) else {
        let kept = items.iter().filter(|item| item.get(DIRECTIVE).is_none());
        *slot = Value::Array(kept.cloned().collect());
        return;
    };
    for item in items {
        if key.is_empty() {
            if !list.contains(item) {
                list.push(item.clone());
            }
            continue;
        }
        let found = list.iter().position(|other| other.get(key).is_some() && other.get(key) == item.get(key));
        match (found, item.get(DIRECTIVE).and_then(Value::as_str)) {
            (Some(index), Some("delete")) => {
                list.remove(index);
            }
            (None, Some("delete")) => {}
            (Some(index), _) => merge_at(&mut list[index], item, path),
            (None, _) => list.push(item.clone()),
        }
    }
}

/// Brings a list into the order that the patch gives; what it does not name goes last.
fn order(map: &mut Map<String, Value>, name: &str, order: Option<&Value>, path: &[String]) {
    let Some(Value::Array(order)) = order else { return };
    let mut full: Vec<String> = path.to_vec();
    full.push(name.to_owned());
    let key = merge_key(&full).unwrap_or_default();
    if let Some(Value::Array(list)) = map.get_mut(name) {
        list.sort_by_key(|item| {
            let place =
                order.iter().position(|one| if key.is_empty() { one == item } else { one.get(key) == item.get(key) });
            place.unwrap_or(usize::MAX)
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_merge_by_name_and_tolerations_are_replaced() {
        let mut pod = json!({"spec": {
            "containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}],
            "tolerations": [{"key": "k"}],
        }});
        merge(
            &mut pod,
            &json!({"spec": {
                "containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "b", "$patch": "delete"}],
                "tolerations": [{"key": "other"}],
            }}),
        );
        assert_eq!(
            pod,
            json!({"spec": {
                "containers": [{"name": "a", "image": "2", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}],
                "tolerations": [{"key": "other"}],
            }})
        );
    }
}
