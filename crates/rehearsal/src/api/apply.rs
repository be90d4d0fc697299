//! Server-side apply.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    decode,
    dispatch::Call,
    read::in_version,
    schema,
    server::{Inner, State},
    status::{ApiError, Cause},
    write,
};
use crate::store::{
    managed::{self, Conflict, Writer},
    object::{meta, meta_str, set_meta},
};

/// Answers an apply patch; the flag says whether the object is new.
pub(super) fn apply(inner: &Inner, state: &mut State, call: &Call) -> Result<(Value, bool), ApiError> {
    let mut config: Value = serde_yaml::from_slice(&call.body)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    let manager = call.query.get("fieldManager").to_owned();
    if manager.is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", vec![cause]));
    }
    if config.get("kind").is_none() || config.get("apiVersion").is_none() {
        let said = config.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {said}, expected: {}",
            call.api_version()
        )));
    }
    write::check_body(call, &mut config)?;
    if meta(&config, "managedFields").is_some_and(|list| !list.is_null() && *list != json!([])) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    set_meta(&mut config, "managedFields", Value::Null);
    declared(call, &config)?;
    let resource = call.kind.resource();
    let old = state.store.get(&resource, &call.key());
    let subresource = call.target.subresource.clone();
    let has_status = call.kind.status;
    let ignore = move |name: &str| match subresource.as_str() {
        "status" => name != "status",
        _ => has_status && name == "status",
    };
    let (version, time) = (call.api_version(), inner.stamp());
    let writer =
        Writer { manager: &manager, api_version: &version, subresource: &call.target.subresource, time: &time };
    let root = write::type_of(call);
    let Some(old) = old else {
        if !call.target.subresource.is_empty() {
            return Err(ApiError::not_found(&resource, &call.target.name));
        }
        if !meta_str(&config, "uid").is_empty() {
            let detail = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                meta_str(&config, "uid")
            );
            return Err(ApiError::conflict(&resource, &call.target.name, &detail));
        }
        let empty = json!({"kind": call.kind.kind, "apiVersion": version, "metadata": {}});
        let merged = managed::apply(&empty, &config, &root, &writer, true, &ignore).map_err(|list| refuse(&list))?;
        return write::insert(inner, state, call, merged, false).map(|object| (Value::clone(&object), true));
    };
    let live = in_version(call, &old);
    let force = call.query.flag("force");
    let merged = managed::apply(&live, &config, &root, &writer, force, &ignore).map_err(|list| refuse(&list))?;
    write::replace(inner, state, call, &Arc::clone(&old), merged, false).map(|object| (Value::clone(&object), false))
}

/// Fields that a type does not have are dropped from what is created, and refused when applied.
fn declared(call: &Call, config: &Value) -> Result<(), ApiError> {
    let version = call.kind.version(&call.target.version);
    let unknown: Vec<String> = if let Some(node) = decode::type_of(call) {
        decode::undeclared(node, config)
    } else if let Some(schema) = version.and_then(|version| version.schema.clone()) {
        schema::prune(&schema, &mut config.clone())
            .iter()
            .map(|path| format!(".{}: field not declared in schema", path.trim_start_matches('.')))
            .collect()
    } else {
        return Ok(());
    };
    let text = match unknown.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    let id = format!("{}/{}; {}, Kind={}", call.target.namespace, call.target.name, call.api_version(), call.kind.kind);
    Err(ApiError::new(500, "", format!("failed to create typed patch object ({id}): {text}")))
}

/// The refusal that names the other managers and the fields they own.
fn refuse(conflicts: &[Conflict]) -> ApiError {
    let text = match conflicts {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => {
            let mut by_manager: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for conflict in many {
                let who = conflict.message.replacen("conflict with", "conflicts with", 1);
                by_manager.entry(who).or_default().push(&conflict.field);
            }
            let parts: Vec<String> = by_manager
                .into_iter()
                .map(|(who, fields)| {
                    format!(
                        "{who}:\n{}",
                        fields.iter().map(|field| format!("- {field}")).collect::<Vec<_>>().join("\n")
                    )
                })
                .collect();
            format!("Apply failed with {} conflicts: {}", many.len(), parts.join("\n"))
        }
    };
    ApiError::new(409, "Conflict", text).with_causes(conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict",
        message: conflict.message.clone(),
        field: conflict.field.clone(),
    }))
}
