//! Strategic merge patch: lists of the built-in kinds merge item by item under the keys that their types name.

use serde_json::{Map, Value};

use crate::types::Node;

const DIRECTIVE: &str = "$patch";

/// Merges a strategic patch into an object of this type.
pub(super) fn merge(target: &mut Value, patch: &Value, here: Option<Node<'_>>) {
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
        let field = here.and_then(|here| here.child(name));
        match change {
            Value::Null => {
                map.shift_remove(name);
            }
            Value::Object(inner) if inner.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") => {
                map.shift_remove(name);
            }
            Value::Array(items) => {
                let slot = map.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                merge_list(slot, items, field);
            }
            Value::Object(_) => {
                let slot = map.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
                merge(slot, change, field);
            }
            _ => {
                map.insert(name.clone(), change.clone());
            }
        }
    }
    for (name, order) in changes {
        if let Some(list) = name.strip_prefix("$setElementOrder/") {
            let key =
                here.and_then(|here| here.child(list)).map_or("", |field| field.text("x-kubernetes-patch-merge-key"));
            sort(map.get_mut(list), order, key);
        }
    }
}

/// Whether the items of a list merge, as opposed to the list being replaced.
fn merges(list: Node<'_>) -> bool {
    list.text("x-kubernetes-patch-strategy").split(',').any(|one| one == "merge")
}

fn merge_list(slot: &mut Value, items: &[Value], here: Option<Node<'_>>) {
    let replaces = items.iter().any(|item| item.get(DIRECTIVE).and_then(Value::as_str) == Some("replace"));
    let (Some(node), Value::Array(list), false) = (here.filter(|here| merges(*here)), &mut *slot, replaces) else {
        let kept = items.iter().filter(|item| item.get(DIRECTIVE).is_none());
        *slot = Value::Array(kept.cloned().collect());
        return;
    };
    let key = node.text("x-kubernetes-patch-merge-key");
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
            (Some(index), _) => merge(&mut list[index], item, node.items()),
            (None, _) => list.push(item.clone()),
        }
    }
}

/// Brings a list into the order that the patch gives; what it does not name goes last.
fn sort(list: Option<&mut Value>, order: &Value, key: &str) {
    let (Some(Value::Array(list)), Value::Array(order)) = (list, order) else { return };
    list.sort_by_key(|item| {
        let place =
            order.iter().position(|one| if key.is_empty() { one == item } else { one.get(key) == item.get(key) });
        place.unwrap_or(usize::MAX)
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(kind: (&str, &str, &str), mut object: Value, patch: &Value) -> Value {
        merge(&mut object, patch, crate::types::of_kind(kind.0, kind.1, kind.2));
        object
    }

    #[test]
    fn containers_merge_by_name_and_tolerations_are_replaced() {
        let pod = json!({"spec": {
            "containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}],
            "tolerations": [{"key": "k"}],
        }});
        let patch = json!({"spec": {
            "containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "b", "$patch": "delete"}],
            "tolerations": [{"key": "other"}],
        }});
        assert_eq!(
            patched(("", "v1", "Pod"), pod, &patch),
            json!({"spec": {
                "containers": [{"name": "a", "image": "2", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}],
                "tolerations": [{"key": "other"}],
            }})
        );
    }

    #[test]
    fn keys_differ_by_type_and_orders_are_kept() {
        let service = json!({"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}});
        let patch = json!({"spec": {
            "$setElementOrder/ports": [{"port": 82}, {"port": 80}],
            "ports": [{"port": 82, "name": "c"}, {"port": 81, "$patch": "delete"}],
        }});
        assert_eq!(
            patched(("", "v1", "Service"), service, &patch),
            json!({"spec": {"ports": [{"port": 82, "name": "c"}, {"port": 80, "name": "a"}]}})
        );
        let node = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
        let patch = json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}});
        assert_eq!(
            patched(("", "v1", "Node"), node, &patch),
            json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}})
        );
    }
}
