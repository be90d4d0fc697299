//! Validation of metadata, and a little of the built-in kinds.

use serde_json::Value;

use super::{
    kinds::KindDef,
    status::{ApiError, Cause},
};
use crate::store::{
    object::{at, meta, meta_str},
    select::LabelSelector,
};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const POD_SPEC: &str = "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    !text.is_empty() && text.split('.').all(is_label)
}

fn is_qualified(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().last())
}

fn invalid(kind: &KindDef, object: &Value, causes: Vec<Cause>) -> Result<(), ApiError> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&kind.group, &kind.kind, meta_str(object, "name"), causes))
}

/// Names, labels and annotations.
pub(super) fn metadata(kind: &KindDef, object: &Value) -> Result<(), ApiError> {
    let mut causes = Vec::new();
    let name = meta_str(object, "name");
    let value = Value::from(name);
    let field = "metadata.name";
    if name.is_empty() {
        causes.push(Cause::required(field, "name or generateName is required"));
    } else if kind.group == "rbac.authorization.k8s.io" {
        if name.contains('/') || name.contains('%') {
            causes.push(Cause::invalid(field, &value, "may not contain '/'"));
        }
    } else if kind.group.is_empty() && ["namespaces", "services"].contains(&kind.plural.as_str()) {
        if name.len() > 63 {
            causes.push(Cause::invalid(field, &value, "must be no more than 63 characters"));
        }
        if !is_label(name) {
            causes.push(Cause::invalid(field, &value, LABEL));
        }
    } else {
        if name.len() > 253 {
            causes.push(Cause::invalid(field, &value, "must be no more than 253 characters"));
        }
        if !is_subdomain(name) {
            causes.push(Cause::invalid(field, &value, SUBDOMAIN));
        }
    }
    let mut labels = meta(object, "labels").and_then(Value::as_object).cloned().unwrap_or_default();
    labels.sort_keys();
    for (key, value) in &labels {
        qualified("metadata.labels", key, &mut causes);
        let text = value.as_str().unwrap_or_default();
        if !value.is_string() {
            let detail = format!("unrecognized type: {value}");
            causes.push(Cause::invalid("metadata.labels", value, &detail));
        } else if text.len() > 63 {
            causes.push(Cause::invalid("metadata.labels", value, "must be no more than 63 characters"));
        } else if !text.is_empty() && !is_qualified(text) {
            causes.push(Cause::invalid("metadata.labels", value, VALUE));
        }
    }
    for (key, _) in meta(object, "annotations").and_then(Value::as_object).into_iter().flatten() {
        qualified("metadata.annotations", &key.to_lowercase(), &mut causes);
    }
    invalid(kind, object, causes)
}

fn qualified(field: &str, key: &str, causes: &mut Vec<Cause>) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let value = Value::from(key);
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        causes.push(Cause::invalid(field, &value, &format!("prefix part {SUBDOMAIN}")));
    }
    if name.len() > 63 {
        causes.push(Cause::invalid(field, &value, "name part must be no more than 63 characters"));
    } else if !is_qualified(name) {
        causes.push(Cause::invalid(field, &value, NAME));
    }
}

/// The rules of the built-in kinds that tools run into.
pub(super) fn object(kind: &KindDef, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
    let mut causes = Vec::new();
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => pod(old, new, &mut causes),
        ("apps", "deployments" | "replicasets" | "daemonsets" | "statefulsets") => workload(old, new, &mut causes),
        ("batch", "jobs") => job(old, new, &mut causes),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(new, &mut causes),
        ("", "secrets" | "configmaps") => {
            let fixed = old.is_some_and(|old| {
                old.get("immutable") == Some(&Value::Bool(true)) && old.get("data") != new.get("data")
            });
            if fixed {
                causes.push(Cause::forbidden("data", "field is immutable when `immutable` is set"));
            }
            for (key, value) in new.get("data").and_then(Value::as_object).into_iter().flatten() {
                if !value.is_string() {
                    causes.push(Cause::invalid(format!("data[{key}]"), value, "must be a string"));
                }
            }
        }
        _ => {}
    }
    invalid(kind, new, causes)
}

fn containers(spec: &str, object: &Value, causes: &mut Vec<Cause>) {
    let list = at(object, &format!("{spec}.containers")).and_then(Value::as_array);
    if list.is_none_or(Vec::is_empty) {
        causes.push(Cause::required(format!("{spec}.containers"), ""));
    }
    for (index, container) in list.into_iter().flatten().enumerate() {
        let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            causes.push(Cause::required(format!("{spec}.containers[{index}].name"), ""));
        }
        if text("image").is_empty() {
            causes.push(Cause::required(format!("{spec}.containers[{index}].image"), ""));
        }
    }
}

fn pod(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    containers("spec", new, causes);
    let Some(old) = old else { return };
    let fixed = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or(Value::Null);
        if let Some(map) = spec.as_object_mut() {
            for name in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"] {
                map.shift_remove(name);
            }
            for list in ["containers", "initContainers"] {
                for container in map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    container.as_object_mut().map(|container| container.shift_remove("image"));
                }
            }
        }
        spec
    };
    if fixed(old) != fixed(new) {
        causes.push(Cause::forbidden("spec", POD_SPEC));
    }
}

/// A map of texts as servers print it.
fn go_map(map: Option<&Value>) -> String {
    let Some(map) = map.and_then(Value::as_object) else { return "map[string]string(nil)".into() };
    let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
    format!("map[string]string{{{}}}", pairs.join(", "))
}

fn workload(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    let selector = at(new, "spec.selector");
    let labels = at(new, "spec.template.metadata.labels");
    if selector.is_none() {
        causes.push(Cause::required("spec.selector", ""));
    }
    if selector.is_none_or(|selector| !LabelSelector::from_json(selector).matches_labels(labels)) {
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: `selector` does not match template `labels`", go_map(labels)),
            field: "spec.template.metadata.labels".into(),
        });
    }
    if at(new, "spec.replicas").and_then(Value::as_i64).is_some_and(|replicas| replicas < 0) {
        let value = at(new, "spec.replicas").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("spec.replicas", value, "must be greater than or equal to 0"));
    }
    containers("spec.template.spec", new, causes);
    if old.and_then(|old| at(old, "spec.selector")).is_some_and(|old| Some(old) != selector) {
        let labels = go_map(selector.and_then(|selector| selector.get("matchLabels")));
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!(
                "Invalid value: v1.LabelSelector{{MatchLabels:{labels}, \
                 MatchExpressions:[]v1.LabelSelectorRequirement(nil)}}: field is immutable"
            ),
            field: "spec.selector".into(),
        });
    }
}

fn definition(new: &Value, causes: &mut Vec<Cause>) {
    let text = |path: &str| at(new, path).and_then(Value::as_str).unwrap_or_default();
    let name = meta_str(new, "name");
    if name != format!("{}.{}", text("spec.names.plural"), text("spec.group")) {
        causes.push(Cause::invalid("metadata.name", &name.into(), "must be spec.names.plural+\".\"+spec.group"));
    }
    let versions = at(new, "spec.versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().filter(|one| one.get("storage") == Some(&Value::Bool(true))).count();
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &versions.map_or(Value::Null, |list| list.clone().into()), detail));
    }
}

fn job(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    containers("spec.template.spec", new, causes);
    let policy = at(new, "spec.template.spec.restartPolicy").and_then(Value::as_str).unwrap_or_default();
    if !["OnFailure", "Never"].contains(&policy) {
        let allowed = ["OnFailure".to_owned(), "Never".to_owned()];
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", &policy.into(), &allowed));
    }
    for field in ["spec.template", "spec.selector", "spec.completions"] {
        if let Some(old) = old.and_then(|old| at(old, field)).filter(|old| Some(*old) != at(new, field)) {
            causes.push(Cause::invalid(field, old, "field is immutable"));
        }
    }
}
