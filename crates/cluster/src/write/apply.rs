//! Server-side apply.

use http::Method;
use serde_json::{Value, json};
use toolbox_engine::{StepCx, Why};

use super::{Applied, Change, MANAGED_BY, MANAGER, RUN, call, changed, is_dry_only, keep, named, would_create};
use crate::cluster::Cluster;
use crate::object::Object;
use crate::query::{path, with_parameters};

impl Cluster {
    /// Makes the object be as the manifest says, in the fields that the manifest names. What is created carries our
    /// label and the run's id; a field of another manager is a conflict, unless conflicts are forced.
    pub async fn apply(&self, cx: &StepCx, object: Value) -> Result<Applied, Why> {
        let Some(target) = self.target(cx, &object).await? else {
            return Ok(would_create(cx, &crate::query::refer(&object), object));
        };
        let before = self.before(cx, &target).await?;
        let mut manifest = object;
        self.mark(&mut manifest, before.as_ref());
        let mut parameters = vec![("fieldManager", MANAGER.to_owned()), ("force", self.force_conflicts.to_string())];
        if cx.dry() {
            parameters.push(("dryRun", "All".to_owned()));
        }
        let path = path(&target.kind, target.namespace.as_deref(), &target.name);
        let request = call(
            "apply",
            Method::PATCH,
            with_parameters(&path, &parameters),
            "application/apply-patch+yaml",
            &manifest,
            &target.object,
        );
        if cx.dry() {
            let after = match self.send(cx, &request).await {
                Ok((after, _)) => after,
                Err(error) if is_dry_only(&error) => {
                    return Ok(match before {
                        None => would_create(cx, &target.object, manifest),
                        Some(before) => {
                            cx.would(format!("change {}", named(&target.object)));
                            Applied { object: before, change: Change::Updated }
                        }
                    });
                }
                Err(error) => return Err(error.into()),
            };
            return Ok(match &before {
                None => {
                    cx.would(format!("create {}", named(&target.object)));
                    Applied { object: after, change: Change::Created }
                }
                Some(before) => changed(cx, before, after, &manifest),
            });
        }
        keep(cx, &target.object, "", &manifest);
        if before.is_none() {
            cx.making(&target.object);
        }
        let send = || self.send(cx, &request);
        let (after, answer) = self.until_served(send).await?;
        match &before {
            // Somebody else made it between our look and our apply: theirs, and changed by us.
            None if answer.status != 201 && answer.attempts == 1 => {
                cx.changed(&after.refer(), json!({}));
                Ok(Applied { object: after, change: Change::Updated })
            }
            None => {
                cx.made(&after.refer());
                Ok(Applied { object: after, change: Change::Created })
            }
            Some(before) => Ok(changed(cx, before, after, &manifest)),
        }
    }

    /// Puts our label and the run's id on what we create, and keeps them on what we created earlier.
    pub(super) fn mark(&self, manifest: &mut Value, before: Option<&Object>) {
        let run = match before {
            None => Some(&*self.run_id).filter(|run| !run.is_empty()),
            Some(before) if before.label(MANAGED_BY) == Some(MANAGER) => before.annotation(RUN),
            Some(_) => return,
        };
        let metadata = &mut manifest["metadata"];
        metadata["labels"][MANAGED_BY] = MANAGER.into();
        if let Some(run) = run {
            metadata["annotations"][RUN] = run.into();
        }
    }
}
