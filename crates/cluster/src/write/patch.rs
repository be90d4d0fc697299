//! Changing single fields of what is there.

use http::Method;
use serde_json::{Value, json};
use toolbox_engine::plan::Kind;
use toolbox_engine::{StepCx, Why};

use super::{Applied, Change, MANAGER, call, changed, is_dry_only, keep, merge, named};
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::object::Object;
use crate::query::{path, with_parameters};

impl Cluster {
    /// Merges `patch` into an object that must be there. The journal gets the patch that takes it back.
    pub async fn patch(
        &self,
        cx: &StepCx,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        patch: Value,
    ) -> Result<Applied, Why> {
        let object = kind.object(namespace, name);
        let before = match self.get(kind, namespace, name).await {
            Ok(Some(before)) => before,
            Ok(None) if !cx.dry() => return Err(ClusterError::NotFound { object }.into()),
            // In a dry run an earlier step may be the one that makes it.
            Err(error) if !(cx.dry() && error.is_absent()) => return Err(error.into()),
            Ok(None) | Err(_) => {
                let none = json!({});
                let differences = merge::differences(&none, &patch, &patch).join(", ");
                cx.would(format!("change {}: {differences}", named(&object)));
                let mut manifest = json!({
                    "apiVersion": kind.api_version(), "kind": kind.kind,
                    "metadata": {"name": name, "namespace": namespace},
                });
                for (key, value) in patch.as_object().into_iter().flatten() {
                    if key != "metadata" {
                        manifest[key] = value.clone();
                    }
                }
                return Ok(Applied { object: Object::new(manifest), change: Change::Updated });
            }
        };
        if merge::holds(before.value(), &patch) {
            return Ok(Applied { object: before, change: Change::Unchanged });
        }
        let mut parameters = vec![("fieldManager", MANAGER.to_owned())];
        if cx.dry() {
            parameters.push(("dryRun", "All".to_owned()));
        } else {
            keep(cx, &object, ".patch", &patch);
        }
        let request = call(
            "patch",
            Method::PATCH,
            with_parameters(&path(kind, namespace, name), &parameters),
            "application/merge-patch+json",
            &patch,
            &object,
        );
        match self.send(cx, &request).await {
            Ok((after, _)) => Ok(changed(cx, &before, after, &patch)),
            Err(error) if cx.dry() && is_dry_only(&error) => {
                let differences = merge::differences(before.value(), &patch, &patch).join(", ");
                cx.would(format!("change {}: {differences}", named(&object)));
                Ok(Applied { object: before, change: Change::Updated })
            }
            Err(error) => Err(error.into()),
        }
    }
}
