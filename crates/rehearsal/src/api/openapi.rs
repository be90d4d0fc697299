//! As much of OpenAPI as clients ask for before they write: which groups there are, and that field validation is known.

use serde_json::{Map, Value, json};

use super::{kinds::Kinds, status::ApiError};

/// Answers `/openapi/v3` (an empty path) and what is below it.
pub(super) fn answer(kinds: &Kinds, path: &str) -> Result<Value, ApiError> {
    if path.is_empty() {
        let mut paths = Map::new();
        for kind in kinds.iter() {
            for version in &kind.versions {
                let path = root(&kind.group, &version.name);
                paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash=0")}));
            }
        }
        return Ok(json!({"paths": paths}));
    }
    let mut paths = Map::new();
    for kind in kinds.iter().filter(|kind| kind.versions.iter().any(|version| root(&kind.group, &version.name) == path))
    {
        let version = path.rsplit('/').next().unwrap_or_default();
        let place = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        paths.insert(
            format!("/{path}/{place}{}/{{name}}", kind.plural),
            json!({"patch": {
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": {"group": kind.group, "version": version, "kind": kind.kind},
            }}),
        );
    }
    if paths.is_empty() {
        return Err(ApiError::no_such_path());
    }
    Ok(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "rehearsal"}, "paths": paths,
        "components": {"schemas": {}},
    }))
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}
