//! The user's changes to the ClusterPolicy: a JSON merge patch, checked before anything on the cluster changes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolbox_core::config::{self, ConfigError};

/// The fields that a patch may have. Every field of every published version's spec is a mapping (driver, toolkit, dcgm,
/// …), so a bare value there is a mistake, which the API server would only name once the operator is installed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchFile {
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    kind: Option<String>,
    #[expect(dead_code, reason = "read only to check its shape")]
    metadata: Option<PatchMetadata>,
    spec: Option<BTreeMap<String, Option<Map<String, Value>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchMetadata {
    #[expect(dead_code, reason = "read only to check its shape")]
    labels: Option<BTreeMap<String, Option<String>>>,
    #[expect(dead_code, reason = "read only to check its shape")]
    annotations: Option<BTreeMap<String, Option<String>>>,
}

/// Reads a patch and checks that it only changes what may be changed: the spec, labels and annotations.
pub(crate) fn read(file: &str, text: &str) -> Result<Value, ConfigError> {
    let whole = |problem: &str| ConfigError::file(file, problem);
    let mut documents = config::documents(file, text)?;
    let patch = match documents.len() {
        0 => return Err(whole("is empty: it must have at least `spec`")),
        1 => documents.remove(0),
        count => return Err(whole(&format!("has {count} documents, where one patch is expected"))),
    };
    if !patch.is_object() {
        return Err(whole("must be a mapping with `spec`"));
    }
    let checked: PatchFile = config::typed(file, text)?;
    if checked.kind.is_some_and(|kind| kind != "ClusterPolicy") {
        return Err(whole("must be ClusterPolicy").at("kind", None));
    }
    if checked.api_version.is_some_and(|version| !version.starts_with("nvidia.com/")) {
        return Err(whole("must be of group nvidia.com, such as nvidia.com/v1").at("apiVersion", None));
    }
    for list in ["labels", "annotations"] {
        let entries = patch.pointer(&format!("/metadata/{list}")).and_then(Value::as_object);
        // YAML's `true` and `1` would be taken as text above, and refused by the API server later.
        let wrong =
            entries.and_then(|entries| entries.iter().find(|(_, value)| !value.is_string() && !value.is_null()));
        if let Some((name, value)) = wrong {
            let problem = format!("must be text: write it in quotes, \"{value}\"");
            return Err(whole(&problem).at(format!("metadata.{list}.{name}"), None));
        }
    }
    let no_spec = patch.get("spec").is_some_and(Value::is_null);
    if no_spec || checked.spec.is_some_and(|spec| spec.is_empty()) {
        return Err(whole("is empty").at("spec", None));
    }
    Ok(patch)
}

/// Applies a JSON merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Some(fields) = target.as_object_mut() {
        for (key, change) in changes {
            if change.is_null() {
                fields.remove(key);
            } else {
                merge(fields.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_patch_changes_adds_and_removes() {
        let mut policy = json!({"spec": {"driver": {"enabled": true, "version": "1"}, "dcgm": {"enabled": true}}});
        merge(&mut policy, &json!({"spec": {"driver": {"version": "2"}, "dcgm": null, "mig": {"strategy": "mixed"}}}));
        assert_eq!(
            policy,
            json!({"spec": {"driver": {"enabled": true, "version": "2"}, "mig": {"strategy": "mixed"}}})
        );
    }

    #[test]
    fn a_wrong_patch_names_file_line_and_field() {
        for (text, field, line) in [
            ("", "", None),
            ("- a\n", "", None),
            ("kind: ConfigMap\n", "kind", None),
            ("apiVersion: kyverno.io/v1\n", "apiVersion", None),
            ("spec: {}\n", "spec", None),
            ("spec: null\n", "spec", None),
            ("spec:\n  driver: \"470\"\n", "spec.driver", Some(2)),
            ("metadata:\n  labels:\n    a: true\n", "metadata.labels.a", None),
            ("spec:\n  driver: {\n", "", Some(3)),
        ] {
            let error = read("patch.yaml", text).unwrap_err();
            assert_eq!((error.field.as_str(), error.file.as_str()), (field, "patch.yaml"), "{text}");
            if line.is_some() {
                assert!(error.line.is_some(), "{error}");
            }
        }
        let error = read("patch.yaml", "metadata:\n  name: other\n").unwrap_err();
        assert!(error.to_string().contains("unknown field `name`"), "{error}");
        let error = read("patch.yaml", "driver: {}\n").unwrap_err();
        assert!(error.to_string().contains("unknown field `driver`"), "{error}");
    }

    #[test]
    fn a_patch_may_be_json_and_may_remove() {
        let text = r#"{"kind": "ClusterPolicy", "spec": {"driver": {"version": "470"}, "mig": null}}"#;
        assert_eq!(read("patch.json", text).unwrap()["spec"]["driver"]["version"], "470");
    }
}
