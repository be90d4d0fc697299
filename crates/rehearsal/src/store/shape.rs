//! How lists and maps merge: as one value, as a set, or item by item under keys, as the type's schema says.

use serde_json::Value;

use crate::types::{self, Node};

/// A field that tells the items of a list apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// The field's name.
    pub name: String,
    /// What it reads as in an item that leaves it out.
    pub default: Value,
}

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
    Keyed(Vec<ListKey>),
}

/// Where one is in an object's type.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    node: Option<Node<'a>>,
    custom: bool,
}

impl<'a> Type<'a> {
    /// The type of a built-in kind.
    pub fn of_kind(group: &str, version: &str, kind: &str) -> Self {
        Self { node: types::of_kind(group, version, kind), custom: false }
    }

    /// The type of a custom resource, with its schema if it has one.
    pub fn of_custom(schema: Option<&'a Value>) -> Self {
        Self { node: schema.map(Node::new), custom: true }
    }

    /// The type of a field. Metadata is the same for every kind; a custom schema says nothing about it.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        if self.custom && name == "metadata" {
            return Self { node: types::named(types::OBJECT_META), custom: false };
        }
        Self { node: self.node.and_then(|node| node.child(name)), custom: self.custom }
    }

    /// The type of a list's items.
    #[must_use]
    pub fn items(&self) -> Self {
        Self { node: self.node.and_then(|node| node.items()), custom: self.custom }
    }

    /// Whether a map or list of this type may be absent, as opposed to being there and empty.
    pub fn is_optional(&self) -> bool {
        self.custom || !self.node.is_some_and(|node| node.is_always_there())
    }

    /// How a value of this type merges.
    pub fn shape(&self, value: &Value) -> Shape {
        let text = |name: &str| self.node.map_or("", |node| node.text(name));
        match value {
            Value::Array(_) => match text("x-kubernetes-list-type") {
                "set" => Shape::Set,
                "map" => Shape::Keyed(self.keys()),
                _ => Shape::Atomic,
            },
            Value::Object(_) if text("x-kubernetes-map-type") == "atomic" => Shape::Atomic,
            // What the server itself cannot look into.
            Value::Object(_) if !self.custom && self.node.is_some_and(|node| !node.has_members()) => Shape::Atomic,
            _ => Shape::Granular,
        }
    }

    fn keys(&self) -> Vec<ListKey> {
        let Some(node) = self.node else { return Vec::new() };
        let names = node.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
        names
            .filter_map(Value::as_str)
            .map(|name| {
                let field = node.items().and_then(|items| items.property(name));
                let default = field.and_then(|field| field.get("default")).cloned().unwrap_or(Value::Null);
                ListKey { name: name.to_owned(), default }
            })
            .collect()
    }
}

/// The identity of an item of a keyed list, as text that is equal for equal identities.
pub fn identity(item: &Value, keys: &[ListKey]) -> String {
    let mut sorted: Vec<&ListKey> = keys.iter().collect();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    let map: serde_json::Map<String, Value> = sorted
        .into_iter()
        .map(|key| (key.name.clone(), item.get(&key.name).cloned().unwrap_or_else(|| key.default.clone())))
        .filter(|(_, value)| !value.is_null())
        .collect();
    Value::Object(map).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keyed(names: &[(&str, Value)]) -> Shape {
        Shape::Keyed(
            names.iter().map(|(name, default)| ListKey { name: (*name).into(), default: default.clone() }).collect(),
        )
    }

    #[test]
    fn built_in_kinds_merge_as_their_types_say() {
        let pod = Type::of_kind("apps", "v1", "Deployment").field("spec").field("template").field("spec");
        let (list, map) = (json!([]), json!({"a": "b"}));
        assert_eq!(pod.field("containers").shape(&list), keyed(&[("name", "".into())]));
        let ports = pod.field("containers").items().field("ports");
        assert_eq!(ports.shape(&list), keyed(&[("containerPort", 0.into()), ("protocol", "TCP".into())]));
        assert_eq!(pod.field("tolerations").shape(&list), Shape::Atomic);
        assert_eq!(pod.field("nodeSelector").shape(&map), Shape::Atomic);
        assert_eq!(pod.field("securityContext").shape(&map), Shape::Granular);
        assert!(pod.field("nodeSelector").is_optional() && !pod.field("containers").is_optional());
        let claim = Type::of_kind("", "v1", "PersistentVolumeClaim").field("metadata").field("finalizers");
        assert_eq!(claim.shape(&list), Shape::Set);
    }

    #[test]
    fn custom_resources_have_metadata_as_all() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                      "items": {"type": "object", "properties": {"id": {"type": "string", "default": "x"}}}},
            "words": {"type": "array", "items": {"type": "string"}},
        }}}});
        let root = Type::of_custom(Some(&schema));
        assert_eq!(root.field("spec").field("parts").shape(&json!([])), keyed(&[("id", "x".into())]));
        assert_eq!(root.field("spec").field("words").shape(&json!([])), Shape::Atomic);
        assert_eq!(root.field("metadata").field("ownerReferences").shape(&json!([])), keyed(&[("uid", "".into())]));
    }
}
