//! Objects as the API server shows them: JSON with accessors, shared without copying.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolbox_engine::ObjectRef;
use toolbox_engine::plan::Kind;

/// One object in one state. Cheap to clone. Never carries `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Arc<Value>);

/// One entry of `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// One word, or empty.
    pub reason: &'a str,
    /// A sentence, or empty.
    pub message: &'a str,
    /// The generation it was computed from, if the controller says so.
    pub observed_generation: Option<i64>,
    /// When it became so, as written.
    pub since: Option<&'a str>,
}

impl Condition<'_> {
    /// Whether it is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether it is `False`.
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// `reason: message`, or whichever of them is there.
    pub fn text(&self) -> String {
        match (self.reason, self.message) {
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

impl From<Value> for Object {
    fn from(value: Value) -> Self {
        Self::new(value)
    }
}

impl Object {
    /// Takes an object as it came.
    pub fn new(mut value: Value) -> Self {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Self(Arc::new(value))
    }

    /// Takes an item of a list, which may not repeat its kind.
    pub fn of_kind(mut value: Value, kind: &Kind) -> Self {
        if let Some(map) = value.as_object_mut() {
            map.entry("apiVersion").or_insert_with(|| kind.api_version().into());
            map.entry("kind").or_insert_with(|| kind.kind.as_ref().into());
        }
        Self::new(value)
    }

    /// The whole of it.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// What is at a JSON pointer (`/status/phase`); null counts as absent.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    /// Text at a JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer).and_then(Value::as_str)
    }

    /// A whole number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Option<i64> {
        self.at(pointer).and_then(Value::as_i64)
    }

    /// A truth value at a JSON pointer.
    pub fn flag(&self, pointer: &str) -> Option<bool> {
        self.at(pointer).and_then(Value::as_bool)
    }

    /// A list at a JSON pointer; empty when it is not there.
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get(key)?.as_str()
    }

    /// `v1`, `apps/v1`; empty when unknown.
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion").unwrap_or_default()
    }

    /// `Pod`; empty when unknown.
    pub fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata("name").unwrap_or_default()
    }

    /// Its namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace").filter(|name| !name.is_empty())
    }

    /// Which life of it this is.
    pub fn uid(&self) -> &str {
        self.metadata("uid").unwrap_or_default()
    }

    /// Counts changes of what is wanted; 0 when the kind does not count.
    pub fn generation(&self) -> i64 {
        self.number("/metadata/generation").unwrap_or_default()
    }

    /// The server's version of it.
    pub fn resource_version(&self) -> &str {
        self.metadata("resourceVersion").unwrap_or_default()
    }

    /// When it was made, as written.
    pub fn created(&self) -> Option<&str> {
        self.metadata("creationTimestamp")
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// All labels, in order of their keys.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        self.at("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect()
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// A condition by its type.
    pub fn condition(&self, kind: &str) -> Option<Condition<'_>> {
        let found = self
            .list("/status/conditions")
            .iter()
            .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))?;
        let text = |key| found.get(key).and_then(Value::as_str);
        Some(Condition {
            status: text("status").unwrap_or("Unknown"),
            reason: text("reason").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            observed_generation: found.get("observedGeneration").and_then(Value::as_i64),
            since: text("lastTransitionTime"),
        })
    }

    /// Whether the status speaks of the present object: its controller has seen the present generation, or does not
    /// say which one it saw.
    pub fn is_observed(&self) -> bool {
        self.number("/status/observedGeneration").is_none_or(|observed| observed >= self.generation())
    }

    /// Whether its deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        self.metadata("deletionTimestamp").is_some()
    }

    /// What has to be done before it can go.
    pub fn finalizers(&self) -> Vec<&str> {
        self.list("/metadata/finalizers").iter().filter_map(Value::as_str).collect()
    }

    /// The uids of its owners.
    pub fn owner_uids(&self) -> Vec<&str> {
        self.list("/metadata/ownerReferences")
            .iter()
            .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
            .collect()
    }

    /// This life of it, by name.
    pub fn refer(&self) -> ObjectRef {
        let reference = ObjectRef::new(self.api_version(), self.kind(), self.namespace(), self.name());
        if self.uid().is_empty() { reference } else { reference.with_uid(self.uid()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_and_absent_are_the_same() {
        let object = Object::new(json!({"kind": "Event", "eventTime": null, "spec": {"n": 3}}));
        assert_eq!(object.at("/eventTime"), None);
        assert_eq!(object.number("/spec/n"), Some(3));
        assert!(object.list("/spec/items").is_empty());
    }

    #[test]
    fn items_of_a_list_learn_their_kind_and_lose_managed_fields() {
        let item = json!({"metadata": {"name": "a", "uid": "u", "managedFields": [{}]}});
        let object = Object::of_kind(item, &crate::kinds::NODE);
        assert_eq!(object.refer().to_string(), "Node/a");
        assert_eq!(object.refer().uid.as_deref(), Some("u"));
        assert_eq!(object.at("/metadata/managedFields"), None);
    }

    #[test]
    fn a_status_of_an_older_generation_is_not_about_this_object() {
        let status = |observed: Value| {
            Object::new(json!({"metadata": {"generation": 3}, "status": {"observedGeneration": observed}}))
        };
        assert!(!status(json!(2)).is_observed());
        assert!(status(json!(3)).is_observed());
        assert!(status(Value::Null).is_observed());
    }
}
