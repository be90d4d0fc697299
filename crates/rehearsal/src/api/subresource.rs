//! Subresources: status, scale, finalize, eviction, binding, tokens.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use super::{
    body::{self, ApiBody},
    delete,
    dispatch::{Call, present, with_state},
    kinds::ScalePaths,
    patch,
    server::{Inner, State},
    status::{ApiError, Cause},
    table, write,
};
use crate::store::{
    Resource,
    object::{at, is_deleting, meta, meta_str, set_at},
    select::LabelSelector,
};

/// Answers a request to a subresource.
pub(super) fn answer(inner: &Inner, call: &Call) -> Result<Response<ApiBody>, ApiError> {
    let kind = &call.kind;
    let core = kind.group.is_empty();
    match (kind.plural.as_str(), call.target.subresource.as_str(), call.verb) {
        (_, "status", "get") if kind.status => super::read::get(inner, call),
        (_, "status", "update") if kind.status => Ok(done(call, &with_state(inner, call, write::update)?.0)),
        (_, "status", "patch") if kind.status => Ok(done(call, &with_state(inner, call, patch::patch)?.0)),
        (_, "scale", verb) => match &kind.scale {
            Some(paths) => with_state(inner, call, |inner, state, call| scale(inner, state, call, paths, verb))
                .map(|scale| body::json(200, &table::shape_scale(call, &scale))),
            None => Err(ApiError::no_such_resource()),
        },
        ("namespaces", "finalize", "update") => Ok(done(call, &with_state(inner, call, finalize)?)),
        ("pods", "eviction", "create") if core => with_state(inner, call, evict).map(|()| body::json(201, &success())),
        ("pods", "binding", "create") if core => with_state(inner, call, bind).map(|()| body::json(201, &success())),
        ("pods", "ephemeralcontainers", "get") if core => super::read::get(inner, call),
        ("serviceaccounts", "token", "create") if core => {
            with_state(inner, call, token).map(|token| body::json(201, &token))
        }
        ("pods", "exec" | "attach" | "portforward", _) if core => {
            let what = &call.target.subresource;
            Err(ApiError::bad_request(format!(
                "{what} is not simulated: the containers of this cluster run no programs"
            )))
        }
        (_, "status", _) if kind.status => Err(ApiError::method_not_allowed()),
        _ => Err(ApiError::no_such_resource()),
    }
}

fn done(call: &Call, object: &Value) -> Response<ApiBody> {
    body::json(200, &present(call, object))
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

fn current(state: &State, call: &Call) -> Result<Arc<Value>, ApiError> {
    let resource = call.kind.resource();
    state.store.get(&resource, &call.key()).ok_or_else(|| ApiError::not_found(&resource, &call.target.name))
}

/// The object's scale.
fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta_str(object, "name"), "namespace": meta_str(object, "namespace"),
            "uid": meta_str(object, "uid"), "resourceVersion": meta_str(object, "resourceVersion"),
            "creationTimestamp": meta(object, "creationTimestamp"),
        },
        "spec": {"replicas": number(&paths.spec)},
        "status": {"replicas": number(&paths.status)},
    });
    match at(object, &paths.selector).filter(|_| !paths.selector.is_empty()) {
        Some(Value::String(text)) => scale["status"]["selector"] = text.clone().into(),
        Some(Value::Object(selector)) => {
            let labels = selector.get("matchLabels").and_then(Value::as_object).unwrap_or(selector);
            let pairs: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
            scale["status"]["selector"] = pairs.join(",").into();
        }
        _ => {}
    }
    scale
}

fn scale(inner: &Inner, state: &mut State, call: &Call, paths: &ScalePaths, verb: &str) -> Result<Value, ApiError> {
    let old = current(state, call)?;
    let mut scale = scale_of(&old, paths);
    match verb {
        "get" => return Ok(scale),
        "update" => scale = call.json()?,
        "patch" => patch::patch_value(call, &mut scale)?,
        _ => return Err(ApiError::method_not_allowed()),
    }
    let version = meta_str(&scale, "resourceVersion");
    if !version.is_empty() && version != meta_str(&old, "resourceVersion") {
        return Err(ApiError::stale(&call.kind.resource(), &call.target.name));
    }
    let wanted = at(&scale, "spec.replicas").and_then(Value::as_i64).unwrap_or(0);
    if wanted < 0 {
        let cause = Cause::invalid("spec.replicas", &wanted.into(), "must be greater than or equal to 0");
        return Err(ApiError::invalid("autoscaling", "Scale", &call.target.name, vec![cause]));
    }
    let mut new = Value::clone(&old);
    set_at(&mut new, &paths.spec, wanted.into());
    let object = write::replace(inner, state, call, &old, new, true)?;
    Ok(scale_of(&object, paths))
}

/// Replaces the finalizers in a namespace's spec; the last one to go lets the namespace go.
fn finalize(inner: &Inner, state: &mut State, call: &Call) -> Result<Value, ApiError> {
    let old = current(state, call)?;
    let said = call.json()?;
    let version = meta_str(&said, "resourceVersion");
    if !version.is_empty() && version != meta_str(&old, "resourceVersion") {
        return Err(ApiError::stale(&call.kind.resource(), &call.target.name));
    }
    let mut new = Value::clone(&old);
    let finalizers = at(&said, "spec.finalizers").cloned().unwrap_or_else(|| json!([]));
    if finalizers.as_array().is_none_or(Vec::is_empty) {
        set_at(&mut new, "spec", json!({}));
    } else {
        set_at(&mut new, "spec.finalizers", finalizers);
    }
    if new == *old {
        return Ok(new);
    }
    let kind = Arc::clone(&call.kind);
    Ok(Value::clone(&write::settle(inner, state, &kind, new)))
}

fn evict(inner: &Inner, state: &mut State, call: &Call) -> Result<(), ApiError> {
    let pod = current(state, call)?;
    let budgets = state.store.list(&Resource::new("policy", "poddisruptionbudgets"), Some(&call.target.namespace));
    let guarding = budgets.iter().find(|(_, budget)| {
        at(budget, "spec.selector").is_some_and(|selector| LabelSelector::from_json(selector).matches(&pod))
    });
    let phase = at(&pod, "status.phase").and_then(Value::as_str).unwrap_or_default();
    let unguarded = ["Pending", "Succeeded", "Failed"].contains(&phase) || is_deleting(&pod);
    if let Some((key, budget)) = guarding.filter(|_| !unguarded) {
        let number = |path: &str| at(budget, path).and_then(Value::as_i64).unwrap_or(0);
        if number("status.disruptionsAllowed") <= 0 {
            let message = format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                key.name,
                number("status.desiredHealthy"),
                number("status.currentHealthy")
            );
            let cause = Cause { reason: "DisruptionBudget", message, field: String::new() };
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            return Err(ApiError::new(429, "TooManyRequests", message).with_causes([cause]));
        }
    }
    let options = delete::Options::of(call)?;
    delete::delete_object(inner, state, &call.kind, &call.key(), &options).map(|_| ())
}

fn bind(inner: &Inner, state: &mut State, call: &Call) -> Result<(), ApiError> {
    let pod = current(state, call)?;
    let said = call.json()?;
    let node = at(&said, "target.name").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Err(ApiError::new(500, "", "target.name: Required value"));
    }
    let placed = at(&pod, "spec.nodeName").and_then(Value::as_str).unwrap_or_default();
    if !placed.is_empty() {
        let detail = format!("pod {} is already assigned to node {placed:?}", call.target.name);
        return Err(ApiError::conflict(&Resource::new("", "pods/binding"), &call.target.name, &detail));
    }
    let mut new = Value::clone(&pod);
    set_at(&mut new, "spec.nodeName", node.into());
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": inner.stamp(),
    });
    let mut conditions = at(&pod, "status.conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.retain(|one| one.get("type").and_then(Value::as_str) != Some("PodScheduled"));
    conditions.push(condition);
    set_at(&mut new, "status.conditions", conditions.into());
    if !call.dry_run() {
        let kind = Arc::clone(&call.kind);
        write::commit(inner, state, &kind, new);
    }
    Ok(())
}

fn token(inner: &Inner, state: &mut State, call: &Call) -> Result<Value, ApiError> {
    let account = current(state, call)?;
    let mut said = call.json()?;
    let seconds = at(&said, "spec.expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        let cause = Cause::invalid("spec.expirationSeconds", &seconds.into(), detail);
        return Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", vec![cause]));
    }
    let until = inner.clock.now().checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(jiff::Timestamp::MAX);
    let (namespace, name) = (&call.target.namespace, &call.target.name);
    let token = format!("rehearsal.{name}.{}", state.uid());
    state.access.issue(&token, &format!("system:serviceaccount:{namespace}:{name}"), until);
    set_at(&mut said, "kind", "TokenRequest".into());
    set_at(&mut said, "apiVersion", "authentication.k8s.io/v1".into());
    for (path, value) in [
        ("metadata.name", Value::from(name.as_str())),
        ("metadata.namespace", namespace.as_str().into()),
        ("metadata.creationTimestamp", inner.stamp().into()),
        ("spec.expirationSeconds", seconds.into()),
        ("status", json!({"token": token, "expirationTimestamp": super::server::stamp(until)})),
    ] {
        set_at(&mut said, path, value);
    }
    if inner.version.minor >= 30 {
        set_at(&mut said, "metadata.uid", meta_str(&account, "uid").into());
    }
    if at(&said, "spec.audiences").is_none() {
        set_at(&mut said, "spec.audiences", json!(["https://kubernetes.default.svc"]));
    }
    if at(&said, "spec.boundObjectRef").is_none() {
        set_at(&mut said, "spec.boundObjectRef", Value::Null);
    }
    Ok(said)
}
