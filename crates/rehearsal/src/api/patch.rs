//! The four kinds of patches.

use serde_json::Value;

use super::{
    apply, decode,
    dispatch::Call,
    read::in_version,
    server::{Inner, State},
    status::ApiError,
    strategic, write,
};

const ACCEPTED: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// Answers PATCH on an object or its status; the flag says whether the object is new.
pub(super) fn patch(inner: &Inner, state: &mut State, call: &Call) -> Result<(Value, bool), ApiError> {
    if media_type(call).starts_with("application/apply-patch+") {
        return apply::apply(inner, state, call);
    }
    let resource = call.kind.resource();
    let old = state.store.get(&resource, &call.key());
    let old = old.ok_or_else(|| ApiError::not_found(&resource, &call.target.name))?;
    let mut new = in_version(call, &old);
    patch_value(call, &mut new)?;
    if let Some(node) = decode::type_of(call) {
        decode::patched(call, node, &mut new, media_type(call).starts_with("application/strategic-"))?;
    }
    write::check_body(call, &mut new)?;
    write::replace(inner, state, call, &old, new, true).map(|object| (Value::clone(&object), false))
}

fn media_type(call: &Call) -> &str {
    call.content_type.split(';').next().unwrap_or_default().trim()
}

/// Changes a value as the request's patch says.
pub(super) fn patch_value(call: &Call, value: &mut Value) -> Result<(), ApiError> {
    match media_type(call) {
        "application/merge-patch+json" => {
            json_patch::merge(value, &call.json()?);
            Ok(())
        }
        "application/json-patch+json" => {
            let patch: json_patch::Patch = serde_json::from_slice(&call.body)
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(value, &patch).map_err(|_| {
                ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
            })
        }
        "application/strategic-merge-patch+json" if !call.kind.custom => {
            strategic::merge(value, &call.json()?, decode::type_of(call));
            Ok(())
        }
        _ if call.kind.custom => Err(ApiError::unsupported_media_type(ACCEPTED)),
        _ => Err(ApiError::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, \
             application/apply-patch+yaml",
        )),
    }
}
