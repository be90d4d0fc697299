//! Changing the cluster: every change is written to the journal before or right after it happens, can be taken back,
//! and is only told of in a dry run.

mod apply;
mod create;
mod delete;
pub(crate) mod merge;
mod patch;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use toolbox_engine::plan::Kind;
use toolbox_engine::{ObjectRef, StepCx, Why};

use crate::cluster::{Cluster, parse};
use crate::conditions;
use crate::error::ClusterError;
use crate::object::Object;
use crate::query::Query;
use crate::transport::{Answer, Call, pause};

/// Our name as a manager of fields, and the value of [`MANAGED_BY`].
pub const MANAGER: &str = "tbx";
/// The label on everything that we create.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The annotation with the id of the run that created an object.
pub const RUN: &str = "tbx/run";
/// The annotation that tells one create from another, to recognise our own when its answer was lost.
const REQUEST: &str = "tbx/request";

/// How long a kind that has just been defined may stay unknown to the server.
const DEFINITIONS_SETTLE: Duration = Duration::from_secs(30);

/// How often a change is tried again that somebody else's change overtook.
const RACES: u32 = 8;

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Created,
    /// The object was there and is different now.
    Updated,
    /// The object was there and already so.
    Unchanged,
}

/// An object after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object as it is now; in a dry run, as it would be.
    pub object: Object,
    /// What was done.
    pub change: Change,
}

impl Applied {
    /// In words: `created Subscription openshift-nfd/nfd`.
    pub fn what(&self) -> String {
        let verb = match self.change {
            Change::Created => "created",
            Change::Updated => "changed",
            Change::Unchanged => "found",
        };
        format!("{verb} {}", named(&self.object.refer()))
    }

    /// Whether anything is different now.
    pub fn is_change(&self) -> bool {
        self.change != Change::Unchanged
    }
}

/// `Subscription openshift-nfd/nfd`.
fn named(object: &ObjectRef) -> String {
    match &object.namespace {
        Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
        None => format!("{} {}", object.kind, object.name),
    }
}

/// A manifest whose place in the API is known.
struct Target {
    kind: Kind,
    namespace: Option<String>,
    name: String,
    object: ObjectRef,
}

impl Target {
    fn query(&self) -> Query {
        Query::named(&self.kind, self.namespace.as_deref(), &self.name)
    }
}

impl Cluster {
    /// Finds out where a manifest belongs. `None` in a dry run when its kind is not served yet.
    async fn target(&self, cx: &StepCx, manifest: &Value) -> Result<Option<Target>, Why> {
        let object = crate::query::refer(manifest);
        let invalid = |message: &str| {
            Why::from(ClusterError::Invalid { object: object.clone(), causes: Vec::new(), message: message.to_owned() })
        };
        if object.api_version.is_empty() || object.kind.is_empty() {
            return Err(invalid("it has no apiVersion or no kind"));
        }
        if object.name.is_empty() {
            return Err(invalid("it has no name"));
        }
        let kind = match self.kind_patiently(cx, &object).await {
            Ok(kind) => kind,
            Err(error) if error.is_not_served() && cx.dry() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if kind.namespaced && object.namespace.is_none() {
            return Err(invalid("it has no namespace"));
        }
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        Ok(Some(Target {
            namespace: object.namespace.clone().filter(|_| kind.namespaced),
            name: name.to_owned(),
            object: kind.object(object.namespace.as_deref(), &object.name),
            kind,
        }))
    }

    async fn kind_patiently(&self, cx: &StepCx, object: &ObjectRef) -> Result<Kind, ClusterError> {
        let ask = || self.kind(&object.api_version, &object.kind);
        if cx.dry() {
            return ask().await;
        }
        self.until_served(ask).await
    }

    /// Does something again while the kind is not known to the server yet, for a short while: a definition that was
    /// established a moment ago may not be served everywhere yet.
    async fn until_served<T, F: Future<Output = Result<T, ClusterError>>>(
        &self,
        what: impl Fn() -> F,
    ) -> Result<T, ClusterError> {
        let started = self.clock().elapsed();
        let mut attempts = 0;
        loop {
            match what().await {
                Err(error) if error.is_not_served() => {
                    attempts += 1;
                    let spent = self.clock().elapsed().saturating_sub(started);
                    if spent + pause(attempts) > DEFINITIONS_SETTLE {
                        return Err(error);
                    }
                    self.clock().sleep(pause(attempts)).await;
                }
                done => return done,
            }
        }
    }

    /// The object as it is before a change. One that is on its way out is waited for, as no change to it would last.
    async fn before(&self, cx: &StepCx, target: &Target) -> Result<Option<Object>, Why> {
        let get = || self.get(&target.kind, target.namespace.as_deref(), &target.name);
        let found = if cx.dry() {
            match get().await {
                Err(error) if error.is_not_served() => None,
                found => found?,
            }
        } else {
            self.until_served(get).await?
        };
        match found {
            Some(found) if found.is_deleting() => {
                if !cx.dry() {
                    let watched = self.watch(target.query());
                    cx.wait(watched.changes(), || {
                        watched.judge_absence(|objects| conditions::gone(objects, &found.refer()))
                    })
                    .await?;
                }
                Ok(None)
            }
            found => Ok(found),
        }
    }

    async fn send(&self, cx: &StepCx, call: &Call) -> Result<(Object, Answer), ClusterError> {
        let mut lost_races = 0;
        let answer = loop {
            match self.shared.transport.call(call).await {
                // Nothing of ours asks for a certain version, so the same request is as good as it was.
                Err(ClusterError::Conflict { fields, .. }) if fields.is_empty() && lost_races < RACES => {
                    lost_races += 1;
                    self.clock().sleep(pause(lost_races)).await;
                }
                answer => break answer?,
            }
        };
        for warning in &answer.warnings {
            cx.note(format!("{}: {warning}", named(&call.object)));
        }
        let object = Object::new(parse(&answer.body, &call.object)?);
        if !cx.dry() {
            self.shared.hub.wrote(&object);
        }
        Ok((object, answer))
    }
}

/// Journals and describes a change of an object that was there before.
fn changed(cx: &StepCx, before: &Object, after: Object, wanted: &Value) -> Applied {
    if merge::same(before.value(), after.value()) {
        return Applied { object: after, change: Change::Unchanged };
    }
    let differences = merge::differences(before.value(), after.value(), wanted).join(", ");
    if cx.dry() {
        cx.would(format!("change {}: {differences}", named(&after.refer())));
    } else {
        tracing::debug!(object = %after.refer(), differences, "changed");
        cx.changed(&after.refer(), merge::undo(before.value(), wanted));
    }
    Applied { object: after, change: Change::Updated }
}

/// A dry run of something that cannot be tried yet, because what it needs is made by an earlier step.
fn would_create(cx: &StepCx, object: &ObjectRef, manifest: Value) -> Applied {
    cx.would(format!("create {}", named(object)));
    Applied { object: Object::new(manifest), change: Change::Created }
}

/// Whether a dry run failed only because something is missing that an earlier step would have made, or because an
/// admission webhook cannot be tried.
fn is_dry_only(error: &ClusterError) -> bool {
    match error {
        ClusterError::Other { message, .. }
        | ClusterError::Invalid { message, .. }
        | ClusterError::Forbidden { message, .. } => message.contains("does not support dry run"),
        error => error.is_absent(),
    }
}

/// A request with a JSON body.
fn call(
    verb: &'static str,
    method: Method,
    path: String,
    content_type: &'static str,
    body: &Value,
    object: &ObjectRef,
) -> Call {
    Call {
        verb,
        method,
        path,
        content_type: Some(content_type),
        body: Bytes::from(body.to_string()),
        object: object.clone(),
        repeatable: true,
    }
}

/// Keeps what was sent with the artifacts, secrets out. JSON is YAML too, and every reader takes it.
fn keep(cx: &StepCx, object: &ObjectRef, suffix: &str, manifest: &Value) {
    let mut name = object.kind.to_lowercase();
    for part in [object.namespace.as_deref(), Some(&*object.name)].into_iter().flatten() {
        name.push('-');
        name.extend(part.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' }));
    }
    let manifest = merge::without_secrets(manifest);
    let text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
    cx.file(&format!("manifests/{name}{suffix}.json"), format!("{text}\n"));
}
