//! Server-side apply.

use http::Method;
use serde_json::{Value, json};
use toolbox_engine::{StepCx, Why};

use super::{Applied, Change, MANAGED_BY, MANAGER, RUN, call, changed, is_dry_only, keep, named, would_create};
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::object::Object;
use crate::query::{path, with_parameters};
use crate::undeclared;

impl Cluster {
    /// Makes the object be as the manifest says, in the fields that the manifest names. What is created carries our
    /// label and the run's id; a field of another manager is a conflict, unless conflicts are forced.
    pub async fn apply(&self, cx: &StepCx, object: Value) -> Result<Applied, Why> {
        self.apply_or_lighten(cx, object, |_, _| Vec::new()).await
    }

    /// Applies an object that came as an example: fields that its definition does not declare are left out and said,
    /// unless `wanted` has them.
    pub async fn apply_example(&self, cx: &StepCx, object: Value, wanted: Option<&Value>) -> Result<Applied, Why> {
        self.apply_or_lighten(cx, object, |object, error| undeclared::leave_out(object, error, wanted)).await
    }

    async fn apply_or_lighten(
        &self,
        cx: &StepCx,
        mut object: Value,
        lighten: impl Fn(&mut Value, &ClusterError) -> Vec<String>,
    ) -> Result<Applied, Why> {
        let mut left_out = Vec::new();
        // One answer does not name every field. Each round has a field less, so this ends.
        loop {
            let error = match self.try_apply(cx, object.clone()).await? {
                Ok(applied) => {
                    if !left_out.is_empty() {
                        cx.note(format!("leaves out what the definition does not have: {}", left_out.join(", ")));
                    }
                    return Ok(applied);
                }
                Err(error) => error,
            };
            let more = lighten(&mut object, &error);
            if more.is_empty() {
                return Err(error.into());
            }
            left_out.extend(more);
        }
    }

    /// The inner error is the server's about this object.
    async fn try_apply(&self, cx: &StepCx, object: Value) -> Result<Result<Applied, ClusterError>, Why> {
        let Some(target) = self.target(cx, &object).await? else {
            return Ok(Ok(would_create(cx, &crate::query::refer(&object), object)));
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
                    return Ok(Ok(match before {
                        None => would_create(cx, &target.object, manifest),
                        Some(before) => {
                            cx.would(format!("change {}", named(&target.object)));
                            Applied { object: before, change: Change::Updated }
                        }
                    }));
                }
                Err(error) => return Ok(Err(error)),
            };
            return Ok(Ok(match &before {
                None => {
                    cx.would(format!("create {}", named(&target.object)));
                    Applied { object: after, change: Change::Created }
                }
                Some(before) => changed(cx, before, after, &manifest),
            }));
        }
        keep(cx, &target.object, "", &manifest);
        if before.is_none() {
            cx.making(&target.object);
        }
        let send = || self.send(cx, &request);
        let (after, answer) = match self.until_served(send).await {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(match &before {
            // Somebody else made it between our look and our apply: theirs, and changed by us.
            None if answer.status != 201 && answer.attempts == 1 => {
                cx.changed(&after.refer(), json!({}));
                Applied { object: after, change: Change::Updated }
            }
            None => {
                cx.made(&after.refer());
                Applied { object: after, change: Change::Created }
            }
            Some(before) => changed(cx, before, after, &manifest),
        }))
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
