//! What the server does by itself, a little after the writes that call for it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    crd, gc,
    server::{Inner, State},
};

/// How long the garbage collector takes to notice.
pub(super) const GC_DELAY: SignedDuration = SignedDuration::from_millis(20);

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// The owner with this uid is gone: see to its dependents.
    OwnerGone(String),
    /// The object with this uid waits for its dependents, perhaps.
    Deleting(String),
    /// The object with this uid may have no owner left.
    Dependent(String),
    /// The custom resource definition of this name has been accepted for a while.
    Establish(String),
    /// The custom resource definition of this name is on its way out: remove its objects.
    Uninstall(String),
}

/// Leaves a job for later.
pub(super) fn later(inner: &Inner, state: &mut State, delay: SignedDuration, job: Job) {
    let due = inner.clock.now().checked_add(delay).unwrap_or(Timestamp::MAX);
    if !state.jobs.iter().any(|(_, other)| *other == job) {
        state.jobs.push((due, job));
        inner.wake.notify_one();
    }
}

/// Does jobs as they come due, until the server is gone.
pub(super) async fn run(inner: Weak<Inner>) {
    loop {
        let (wake, clock, next) = {
            let Some(inner) = inner.upgrade() else { return };
            (Arc::clone(&inner.wake), inner.clock.clone(), do_due(&inner))
        };
        match next {
            None => wake.notified().await,
            Some(pause) => {
                tokio::select! {
                    biased;
                    () = wake.notified() => {}
                    () = clock.sleep(pause) => {}
                }
            }
        }
    }
}

/// Does what is due and says how long to wait for the next.
fn do_due(inner: &Inner) -> Option<Duration> {
    let now = inner.clock.now();
    let mut state = inner.state();
    while let Some(index) = state.jobs.iter().position(|(due, _)| *due <= now) {
        let (_, job) = state.jobs.remove(index);
        tracing::trace!(?job, "housekeeping");
        match job {
            Job::OwnerGone(uid) => gc::owner_gone(inner, &mut state, &uid),
            Job::Deleting(uid) => gc::deleting(inner, &mut state, &uid),
            Job::Dependent(uid) => gc::dependent(inner, &mut state, &uid),
            Job::Establish(name) => crd::establish(inner, &mut state, &name),
            Job::Uninstall(name) => crd::uninstall(inner, &mut state, &name),
        }
    }
    let next = state.jobs.iter().map(|(due, _)| *due).min()?;
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default() + Duration::from_millis(1))
}
