//! Leases: a name on the cluster that one holder has at a time.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use toolbox_engine::ObjectRef;

use crate::cluster::{Cluster, parse};
use crate::error::ClusterError;
use crate::kinds;
use crate::object::Object;
use crate::query::{collection, path};
use crate::transport::Call;

fn request(verb: &'static str, method: Method, path: String, body: &Value, object: &ObjectRef) -> Call {
    Call {
        verb,
        method,
        path,
        content_type: Some("application/json"),
        body: Bytes::from(body.to_string()),
        object: object.clone(),
        // A second attempt meets the result of the first: a conflict, which the caller looks at.
        repeatable: true,
    }
}

impl Cluster {
    /// Takes or renews a lease: without a resource version it must be new, with one it must not have changed since.
    /// The losing side of a race gets `AlreadyExists` or `Conflict`.
    pub async fn put_lease(&self, lease: &Value) -> Result<Object, ClusterError> {
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace");
        let name = text("/metadata/name").unwrap_or_default();
        let object = kinds::LEASE.object(namespace, name);
        let call = if text("/metadata/resourceVersion").is_some() {
            let path = path(&kinds::LEASE, namespace, name);
            request("update", Method::PUT, path, lease, &object)
        } else {
            let path = collection(&kinds::LEASE, namespace);
            request("create", Method::POST, path, lease, &object)
        };
        let answer = self.shared.transport.call(&call).await?;
        Ok(Object::of_kind(parse(&answer.body, &object)?, &kinds::LEASE))
    }

    /// Gives a lease up, unless somebody else has taken it since.
    pub async fn drop_lease(&self, lease: &Object) -> Result<(), ClusterError> {
        let object = lease.refer();
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": lease.uid(), "resourceVersion": lease.resource_version()},
        });
        let path = path(&kinds::LEASE, lease.namespace(), lease.name());
        let call = request("delete", Method::DELETE, path, &body, &object);
        match self.shared.transport.call(&call).await {
            Ok(_) | Err(ClusterError::Conflict { .. }) => Ok(()),
            Err(error) if error.is_absent() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
