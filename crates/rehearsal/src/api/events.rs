//! Events have two forms, `v1` and `events.k8s.io/v1`, of the same objects. They are kept in the first; here a request
//! in the second is turned into one in the first, and what is answered back.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::{
    body::{ApiBody, rewrite},
    dispatch::Call,
    server::Inner,
    status::ApiError,
};
use crate::store::Resource;

/// The newer form's group.
pub(super) const GROUP: &str = "events.k8s.io";

/// Fields that are named differently: in `v1`, in `events.k8s.io/v1`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Whether a request is about events in the newer form.
pub(super) fn is_newer(call: &Call) -> bool {
    call.kind.group == GROUP && call.kind.plural == "events"
}

/// The same request in the older form.
pub(super) fn older(inner: &Inner, mut call: Call) -> Result<Call, ApiError> {
    let kind = inner.state().kinds.get(&Resource::new("", "events")).map(Arc::clone);
    call.kind = kind.ok_or_else(ApiError::no_such_resource)?;
    call.target.group = String::new();
    "v1".clone_into(&mut call.target.version);
    let selector = call.query.get("fieldSelector");
    if let Some(term) = selector.split(',').find(|term| term.starts_with("involvedObject.")) {
        let field = term.split(['=', '!']).next().unwrap_or_default();
        return Err(ApiError::bad_request(format!("field label not supported: {field}")));
    }
    let selector = selector.replace("regarding.", "involvedObject.");
    call.query.set("fieldSelector", selector);
    if let Ok(mut body) = serde_json::from_slice::<Value>(&call.body)
        && body.is_object()
        && ["create", "update", "patch"].contains(&call.verb)
    {
        rename(&mut body, |(old, new)| (new, old));
        if body.get("apiVersion").is_some() {
            body["apiVersion"] = "v1".into();
        }
        if call.verb == "create" {
            check(&body)?;
        }
        call.body = Bytes::from(body.to_string());
    }
    Ok(call)
}

/// What the newer form asks for.
fn check(event: &Value) -> Result<(), ApiError> {
    let name = event.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if event.get("eventTime").is_none_or(Value::is_null) {
        let cause = super::status::Cause::required("eventTime", "");
        return Err(ApiError::invalid("", "Event", name, vec![cause]));
    }
    Ok(())
}

fn rename<'a>(event: &mut Value, direction: impl Fn((&'a str, &'a str)) -> (&'a str, &'a str)) {
    let Some(map) = event.as_object_mut() else { return };
    let fields = std::mem::take(map);
    let pairs: Vec<(&str, &str)> = NAMES.into_iter().map(direction).collect();
    let named = |name: String| match pairs.iter().find(|(from, _)| *from == name) {
        Some((_, to)) => (*to).to_owned(),
        None => name,
    };
    *map = fields.into_iter().map(|(name, value)| (named(name), value)).collect();
}

/// An answer in the newer form.
pub(super) fn newer(response: Response<ApiBody>) -> Response<ApiBody> {
    rewrite(response, |mut body| {
        present(&mut body);
        body
    })
}

/// An error in the newer form's name.
pub(super) fn name_error(mut error: ApiError) -> ApiError {
    error.message = error.message.replacen("events ", "events.events.k8s.io ", 1);
    error
}

fn present(body: &mut Value) {
    let text = |body: &Value, field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, version) = (text(body, "kind"), text(body, "apiVersion"));
    if version == "v1" && (kind == "Event" || kind == "EventList") {
        body["apiVersion"] = format!("{GROUP}/v1").into();
        match body.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(convert),
            None => convert(body),
        }
    } else if let Some(object) = body.get_mut("object") {
        // One event of a watch.
        present(object);
    }
}

fn convert(event: &mut Value) {
    rename(event, |pair| pair);
    let Some(map) = event.as_object_mut() else { return };
    for (field, empty) in [
        ("eventTime", Value::Null),
        ("deprecatedSource", json!({})),
        ("deprecatedFirstTimestamp", Value::Null),
        ("deprecatedLastTimestamp", Value::Null),
    ] {
        map.entry(field).or_insert(empty);
    }
    for field in ["reportingController", "reportingInstance"] {
        if map.get(field).and_then(Value::as_str) == Some("") {
            map.shift_remove(field);
        }
    }
}
