//! Manifests: what a user hands us to apply.

use std::path::Path;

use serde_json::Value;

use super::{ConfigError, documents, read_file};

/// The objects of a manifest file: several documents and `List`s are taken apart, and each must say what it is.
pub fn manifests(file: &str, text: &str) -> Result<Vec<Value>, ConfigError> {
    let mut objects = Vec::new();
    for (at, document) in documents(file, text)?.into_iter().enumerate() {
        take_apart(file, &format!("document {}", at + 1), document, &mut objects)?;
    }
    if objects.is_empty() {
        return Err(ConfigError::file(file, "holds no object"));
    }
    Ok(objects)
}

/// [`manifests`] of a file.
pub fn read_manifests(path: &Path) -> Result<Vec<Value>, ConfigError> {
    manifests(&path.display().to_string(), &read_file(path, "manifest")?)
}

fn take_apart(file: &str, place: &str, mut object: Value, objects: &mut Vec<Value>) -> Result<(), ConfigError> {
    let missing = ["apiVersion", "kind"]
        .into_iter()
        .find(|field| object.get(field).and_then(Value::as_str).is_none_or(str::is_empty));
    if let Some(field) = missing {
        let problem = format!("{place} is no object of Kubernetes: it has no `{field}`");
        return Err(
            ConfigError::file(file, problem).help("give each document an apiVersion, a kind and a metadata.name")
        );
    }
    let is_list = object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(Value::Array(items)) = object.get_mut("items").map(Value::take) {
        for (at, item) in items.into_iter().enumerate() {
            take_apart(file, &format!("{place}, item {}", at + 1), item, objects)?;
        }
        return Ok(());
    }
    let named = ["/metadata/name", "/metadata/generateName"]
        .into_iter()
        .any(|field| object.pointer(field).is_some_and(Value::is_string));
    if !named {
        return Err(ConfigError::file(file, format!("{place} has no `metadata.name`")));
    }
    objects.push(object);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_become_objects() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
        let names: Vec<String> = manifests("m.yaml", text)
            .unwrap()
            .iter()
            .filter_map(|object| object.pointer("/metadata/name")?.as_str().map(str::to_owned))
            .collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_is_no_object_is_refused_by_its_place() {
        let error = manifests("m.yaml", "apiVersion: v1\nmetadata: {name: a}\n").unwrap_err();
        assert_eq!(error.to_string(), "m.yaml: document 1 is no object of Kubernetes: it has no `kind`");
        assert!(manifests("m.yaml", "---\n").is_err());
        assert!(manifests("m.yaml", "just text").is_err());
    }
}
