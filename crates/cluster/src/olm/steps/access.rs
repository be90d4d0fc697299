//! Small things that several steps do.

use toolbox_engine::plan::{Act, Effect, Kind};
use toolbox_engine::{ObjectRef, StepCx, Why};

use crate::{Cluster, Query, conditions};

/// Deadline of steps that only ask: a server that throttles for a minute must not end the run.
pub(super) const ASK: std::time::Duration = std::time::Duration::from_secs(180);

/// An effect on an object whose name is known if it was asked for, and decided on the way if not.
pub(super) fn named_or_decided(
    act: Act,
    kind: &Kind,
    namespace: Option<&str>,
    name: Option<&str>,
    from: &str,
) -> Effect {
    match name {
        Some(name) => Effect::on(act, kind, namespace, name),
        None => Effect::decided(act, kind, namespace, from),
    }
}

/// Deletes one object and waits until this life of it is gone, naming what holds it.
pub(super) async fn delete_and_wait(
    cx: &StepCx,
    cluster: &Cluster,
    kind: &Kind,
    object: &ObjectRef,
) -> Result<(), Why> {
    if !cluster.delete(cx, object).await? || cx.dry() {
        return Ok(());
    }
    let query = Query::named(kind, object.namespace.as_deref(), &object.name);
    let watched = cluster.watch(query);
    cx.wait(watched.changes(), || watched.judge_absence(|objects| conditions::gone(objects, object))).await
}
