//! Creating what must be new, or what the server names.

use std::sync::atomic::Ordering;

use http::Method;
use serde_json::Value;
use toolbox_engine::{StepCx, Why};

use super::{Applied, Change, MANAGER, REQUEST, Target, call, is_dry_only, keep, merge, named, would_create};
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::object::Object;
use crate::query::{Query, collection, with_parameters};
use crate::transport::pause;

impl Cluster {
    /// Creates an object (`generateName` works). When the answer is lost, the server is asked whether it was made
    /// before it is made again; one that exists already is accepted only if it is ours or just as wanted.
    pub async fn create(&self, cx: &StepCx, object: Value) -> Result<Applied, Why> {
        let Some(target) = self.target(cx, &object).await? else {
            return Ok(would_create(cx, &crate::query::refer(&object), object));
        };
        let wanted = object.clone();
        let mut manifest = object;
        self.mark(&mut manifest, None);
        if target.name.is_empty() {
            return self.post(cx, &target, &wanted, manifest).await;
        }
        match self.before(cx, &target).await? {
            Some(found) => taken(found, &target, &wanted, None),
            None => self.post(cx, &target, &wanted, manifest).await,
        }
    }

    async fn post(&self, cx: &StepCx, target: &Target, wanted: &Value, mut manifest: Value) -> Result<Applied, Why> {
        let number = self.shared.creates.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}/{}/{number}", self.run_id, cx.id());
        if !cx.dry() {
            manifest["metadata"]["annotations"][REQUEST] = mark.as_str().into();
        }
        let mut parameters = vec![("fieldManager", MANAGER.to_owned())];
        if cx.dry() {
            parameters.push(("dryRun", "All".to_owned()));
        }
        let path = collection(&target.kind, target.namespace.as_deref());
        let mut request = call(
            "create",
            Method::POST,
            with_parameters(&path, &parameters),
            "application/json",
            &manifest,
            &target.object,
        );
        request.repeatable = false;
        if cx.dry() {
            return match self.send(cx, &request).await {
                Ok(_) => Ok(would_create(cx, &target.object, manifest)),
                Err(error) if is_dry_only(&error) => Ok(would_create(cx, &target.object, manifest)),
                Err(error) => Err(error.into()),
            };
        }
        keep(cx, &target.object, "", &manifest);
        cx.making(&target.object);
        let mut first_failure = None;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let send = || self.send(cx, &request);
            let error = match self.until_served(send).await {
                Ok((made, _)) => return Ok(created(cx, made)),
                Err(error) => error,
            };
            let lost = match &error {
                ClusterError::Unreachable { .. } | ClusterError::AlreadyExists { .. } => true,
                ClusterError::Other { code, .. } => *code >= 500,
                _ => false,
            };
            if !lost {
                return Err(error.into());
            }
            let failed_first = *first_failure.get_or_insert_with(|| self.clock().elapsed());
            match self.look(target, &mark).await? {
                Some(found) if found.annotation(REQUEST) == Some(&*mark) => {
                    return Ok(created(cx, found));
                }
                Some(found) => return taken(found, target, wanted, Some(error)),
                None => {}
            }
            let spent = self.clock().elapsed().saturating_sub(failed_first);
            if spent + pause(attempts) > self.shared.transport.patience.budget {
                return Err(error.into());
            }
            tracing::debug!(object = %target.object, %error, "not made, tried again");
            self.clock().sleep(pause(attempts)).await;
        }
    }

    /// What is there under the name, or carries our mark when the server was to choose the name.
    async fn look(&self, target: &Target, mark: &str) -> Result<Option<Object>, ClusterError> {
        let namespace = target.namespace.as_deref();
        if !target.name.is_empty() {
            return self.get(&target.kind, namespace, &target.name).await;
        }
        let query = match namespace {
            Some(namespace) => Query::within(&target.kind, namespace),
            None => Query::all(&target.kind),
        };
        let found = self.list(&query).await?;
        Ok(found.into_iter().find(|object| object.annotation(REQUEST) == Some(mark)))
    }
}

/// The name is taken: good when what is there is what was wanted.
fn taken(found: Object, target: &Target, wanted: &Value, error: Option<ClusterError>) -> Result<Applied, Why> {
    if merge::holds(found.value(), wanted) {
        return Ok(Applied { object: found, change: Change::Unchanged });
    }
    let error = error.unwrap_or_else(|| ClusterError::AlreadyExists { object: target.object.clone() });
    let differences = merge::differences(found.value(), wanted, wanted).join("\n");
    Err(Why::from(error).with(format!("what differs in {}", named(&target.object)), differences))
}

fn created(cx: &StepCx, object: Object) -> Applied {
    cx.made(&object.refer());
    Applied { object, change: Change::Created }
}
