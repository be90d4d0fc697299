//! Deleting exactly the object that was looked at.

use http::Method;
use serde_json::json;
use toolbox_engine::{ObjectRef, StepCx, Why};

use super::{call, named};
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::query::path;

impl Cluster {
    /// Asks for the deletion of an object, and of what it owns; does not wait for it to be gone. When the reference
    /// has a uid, only that life of the object goes. `false` when it was gone already.
    pub async fn delete(&self, cx: &StepCx, target: &ObjectRef) -> Result<bool, Why> {
        let kind = match self.kind(&target.api_version, &target.kind).await {
            Ok(kind) => kind,
            Err(error) if error.is_not_served() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let namespace = target.namespace.as_deref();
        let found = match self.get(&kind, namespace, &target.name).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) if error.is_not_served() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if target.uid.as_deref().is_some_and(|uid| uid != found.uid()) {
            return Ok(false);
        }
        if cx.dry() {
            cx.would(format!("delete {}", named(target)));
            return Ok(true);
        }
        let object = found.refer();
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": found.uid()},
        });
        let request =
            call("delete", Method::DELETE, path(&kind, namespace, &target.name), "application/json", &body, &object);
        match self.shared.transport.call(&request).await {
            Ok(_) => {
                cx.deleted(&object);
                Ok(true)
            }
            // A conflict is about the uid: another object has the name now.
            Err(ClusterError::Conflict { .. }) => Ok(false),
            // Gone between our look and now, by an earlier attempt of ours or by somebody else.
            Err(error) if error.is_absent() => {
                cx.deleted(&object);
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }
}
