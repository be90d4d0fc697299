//! Deleting exactly the object that was looked at.

use http::Method;
use serde_json::json;
use toolbox_engine::plan::Kind;
use toolbox_engine::{ObjectRef, StepCx, Why};

use super::{RACES, call, named};
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::object::Object;
use crate::query::path;
use crate::transport::pause;

impl Cluster {
    /// Asks for the deletion of an object, and of what it owns; does not wait for it to be gone. When the reference
    /// has a uid, only that life of the object goes. `false` when it was gone already.
    pub async fn delete(&self, cx: &StepCx, target: &ObjectRef) -> Result<bool, Why> {
        let kind = match self.kind(&target.api_version, &target.kind).await {
            Ok(kind) => kind,
            Err(error) if error.is_not_served() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let mut lost_races = 0;
        loop {
            match self.delete_once(cx, &kind, target).await {
                Err(ClusterError::Conflict { .. }) if lost_races < RACES => {
                    lost_races += 1;
                    self.clock().sleep(pause(lost_races)).await;
                }
                done => return Ok(done?),
            }
        }
    }

    /// A conflict may be about the uid, when another object has the name by now, or about any other change; a new look
    /// tells which.
    async fn delete_once(&self, cx: &StepCx, kind: &Kind, target: &ObjectRef) -> Result<bool, ClusterError> {
        let namespace = target.namespace.as_deref();
        let found = match self.get(kind, namespace, &target.name).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) if error.is_not_served() => return Ok(false),
            Err(error) => return Err(error),
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
            call("delete", Method::DELETE, path(kind, namespace, &target.name), "application/json", &body, &object);
        match self.shared.transport.call(&request).await {
            Ok(_) => {
                cx.deleted(&object);
                Ok(true)
            }
            Err(conflict @ ClusterError::Conflict { .. }) => self.deleted_already(cx, kind, &object, conflict).await,
            // Gone between our look and now, by an earlier attempt of ours or by somebody else.
            Err(error) if error.is_absent() => {
                cx.deleted(&object);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// What a conflict is about: another object has the name now; or a namespace, which refuses a second deletion so, is
    /// on its way out, by an earlier attempt of ours whose answer was lost or by somebody else.
    async fn deleted_already(
        &self,
        cx: &StepCx,
        kind: &Kind,
        object: &ObjectRef,
        conflict: ClusterError,
    ) -> Result<bool, ClusterError> {
        let same = |found: &Object| object.uid.as_deref().is_none_or(|uid| uid == found.uid());
        match self.get(kind, object.namespace.as_deref(), &object.name).await?.filter(same) {
            None => Ok(false),
            Some(found) if found.is_deleting() => {
                cx.deleted(object);
                Ok(true)
            }
            Some(_) => Err(conflict),
        }
    }
}
