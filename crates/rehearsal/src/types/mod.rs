//! The types of the built-in kinds, as a real server tells them: recorded by `cargo xtask record-types`.

mod node;

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value};

pub(crate) use self::node::Node;

/// Schemas without descriptions, and the numbers of fields in protobuf.
static PACKED: &[u8] = include_bytes!("../../data/types.json.deflate");
/// The descriptions, which few ask for.
static PACKED_DESCRIPTIONS: &[u8] = include_bytes!("../../data/descriptions.json.deflate");

static TYPES: LazyLock<Types> = LazyLock::new(Types::read);
static DESCRIPTIONS: LazyLock<Vec<String>> = LazyLock::new(|| unpack(PACKED_DESCRIPTIONS));

/// The start of a reference to a type.
const REFERENCE: &str = "#/components/schemas/";

/// The type of every object's metadata.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

#[derive(serde::Deserialize)]
struct Types {
    schemas: Map<String, Value>,
    protobuf: Map<String, Value>,
    #[serde(skip)]
    kinds: BTreeMap<(String, String, String), String>,
}

fn unpack<T: serde::de::DeserializeOwned>(packed: &[u8]) -> T {
    let plain = miniz_oxide::inflate::decompress_to_vec(packed).expect("invariant: the recorded file is whole");
    serde_json::from_slice(&plain).expect("invariant: the recorded file is as it was written")
}

impl Types {
    fn read() -> Self {
        let mut types: Self = unpack(PACKED);
        for (name, schema) in &types.schemas {
            for kind in schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array).into_iter().flatten() {
                let text = |field: &str| kind.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
                types.kinds.insert((text("group"), text("version"), text("kind")), name.clone());
            }
        }
        types
    }
}

/// The schema of a type, by its full name.
pub(crate) fn named(name: &str) -> Option<Node<'static>> {
    TYPES.schemas.get_key_value(name).map(|(name, schema)| Node::named(name, schema))
}

/// The type of a kind, if it is recorded.
pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<Node<'static>> {
    TYPES.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned())).and_then(|name| named(name))
}

/// The fields of a type by their numbers in protobuf: a name, or a map of the same form for a message that JSON does
/// not show.
pub(crate) fn numbers(name: &str) -> Option<&'static Map<String, Value>> {
    TYPES.protobuf.get(name).and_then(Value::as_object)
}

/// A schema with its descriptions.
pub(crate) fn described(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let place = value.as_u64().filter(|_| name == "description").and_then(|n| usize::try_from(n).ok());
                let text = place.and_then(|place| DESCRIPTIONS.get(place));
                (name.clone(), text.map_or_else(|| described(value), |text| text.clone().into()))
            })
            .collect(),
        Value::Array(items) => items.iter().map(described).collect(),
        other => other.clone(),
    }
}

/// The names of the types that a schema refers to.
pub(crate) fn references<'a>(schema: &'a Value, out: &mut Vec<&'a str>) {
    match schema {
        Value::Object(map) => {
            for (name, value) in map {
                match value.as_str().filter(|_| name == "$ref") {
                    Some(text) => out.extend(text.strip_prefix(REFERENCE)),
                    None => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kinds_type_leads_to_its_fields() {
        let deployment = of_kind("apps", "v1", "Deployment").unwrap();
        let pod = deployment.property("spec").unwrap().property("template").unwrap().property("spec").unwrap();
        assert_eq!(pod.name(), "io.k8s.api.core.v1.PodSpec");
        let containers = pod.property("containers").unwrap();
        assert_eq!(containers.text("x-kubernetes-patch-merge-key"), "name");
        assert_eq!(containers.items().unwrap().property("image").unwrap().kind(), "string");
        assert!(pod.property("nonsense").is_none());
        assert!(deployment.property("spec").unwrap().is_always_there());
        assert!(!pod.property("nodeSelector").unwrap().is_always_there());
        assert_eq!(numbers("io.k8s.api.apps.v1.DeploymentSpec").unwrap()["1"], "replicas");
    }

    #[test]
    fn descriptions_come_back() {
        let spec = named("io.k8s.api.apps.v1.DeploymentSpec").unwrap();
        let text = described(spec.schema())["properties"]["paused"]["description"].clone();
        assert_eq!(text, "Indicates that the deployment is paused.");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for (name, schema) in &TYPES.schemas {
            let mut all = Vec::new();
            references(schema, &mut all);
            for one in all {
                assert!(named(one).is_some(), "{name} refers to {one}");
            }
        }
    }
}
