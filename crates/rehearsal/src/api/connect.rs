//! Exec, attach and port-forward: a server hands these to the node's own server, which a simulated node does not have.

use http::Response;
use serde_json::Value;

use super::{body::ApiBody, dispatch::Call, logs, server::Inner, status::ApiError};
use crate::store::{
    Resource,
    object::{Key, at},
};

/// The port of a node's own server when the node does not say.
const PORT: i64 = 10_250;

/// Refuses a connection into a pod as servers do whose node cannot be reached.
pub(super) fn answer(inner: &Inner, call: &Call) -> Result<Response<ApiBody>, ApiError> {
    let resource = call.kind.resource();
    let pod = inner.state().store.get(&resource, &call.key());
    let pod = pod.ok_or_else(|| ApiError::not_found(&resource, &call.target.name))?;
    if call.target.subresource != "portforward" {
        logs::container_of(call, &pod)?;
    }
    let (address, port) = place(inner, call, &pod)?;
    if !call.upgrade {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    let message = format!("error dialing backend: dial tcp {address}:{port}: connect: connection refused");
    Err(ApiError::new(500, "", message))
}

/// Address and port of the server of a pod's node.
fn place(inner: &Inner, call: &Call, pod: &Value) -> Result<(String, i64), ApiError> {
    let name = at(pod, "spec.nodeName").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err(ApiError::bad_request(format!("pod {} does not have a host assigned", call.target.name)));
    }
    let node = inner.state().store.get(&Resource::new("", "nodes"), &Key::new("", name));
    // Servers call the node a pod here.
    let node = node.ok_or_else(|| ApiError::not_found(&Resource::new("", "pods"), name))?;
    let addresses = at(&node, "status.addresses").and_then(Value::as_array).into_iter().flatten();
    let internal = |one: &&Value| one.get("type").and_then(Value::as_str) == Some("InternalIP");
    let address = addresses.into_iter().find(internal).and_then(|one| one.get("address")?.as_str());
    let port = at(&node, "status.daemonEndpoints.kubeletEndpoint.Port").and_then(Value::as_i64);
    Ok((address.unwrap_or(name).to_owned(), port.filter(|port| *port > 0).unwrap_or(PORT)))
}
