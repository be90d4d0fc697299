//! Short ways to read the objects that controllers handle.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use serde_json::Value;

use super::Kind;

/// What controllers ask of any object.
pub(crate) trait Read {
    fn name(&self) -> &str;
    fn namespace(&self) -> &str;
    fn uid(&self) -> &str;
    fn at(&self, pointer: &str) -> &Value;
    fn label(&self, key: &str) -> Option<&str>;
    fn annotation(&self, key: &str) -> Option<&str>;
    fn is_deleted(&self) -> bool;
    fn generation(&self) -> i64;
    fn owner(&self, kind: &str) -> Option<&OwnerReference>;

    fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    fn int(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    fn owned_by(&self, uid: &str) -> bool;
}

static NULL: Value = Value::Null;

impl Read for DynamicObject {
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn at(&self, pointer: &str) -> &Value {
        self.data.pointer(pointer).unwrap_or(&NULL)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn is_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }

    fn owner(&self, kind: &str) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().flatten().find(|owner| owner.kind == kind)
    }

    fn owned_by(&self, uid: &str) -> bool {
        self.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
    }
}

/// A controller reference to `owner`.
pub(crate) fn owner_reference(kind: Kind, owner: &DynamicObject) -> OwnerReference {
    OwnerReference {
        api_version: kind.api_version(),
        kind: kind.name.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A condition of a status list: found by type.
pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    object.list("/status/conditions").iter().find(|condition| condition["type"] == kind)
}

/// Whether a condition is `True`.
pub(crate) fn is_true(object: &DynamicObject, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The list of conditions with one of them set. The transition time changes only with the status.
pub(crate) fn with_condition(
    present: &[Value],
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: &str,
) -> Vec<Value> {
    let mut all = present.to_vec();
    let word = if status { "True" } else { "False" };
    let old = all.iter().position(|condition| condition["type"] == kind);
    let since = old
        .map(|n| &all[n])
        .filter(|condition| condition["status"] == word)
        .and_then(|condition| condition["lastTransitionTime"].as_str())
        .unwrap_or(now)
        .to_owned();
    let mut new = serde_json::json!({"type": kind, "status": word, "lastTransitionTime": since});
    if !reason.is_empty() {
        new["reason"] = reason.into();
    }
    if !message.is_empty() {
        new["message"] = message.into();
    }
    match old {
        Some(n) => all[n] = new,
        None => all.push(new),
    }
    all
}
