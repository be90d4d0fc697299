//! Watch: a stream of JSON lines from a revision on.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use toolbox_engine::watch;
use tower::BoxError;

use super::{
    body::{self, ApiBody},
    dispatch::{Call, present},
    read::{Selection, revision_asked, wait_for_revision},
    server::Inner,
    status::{ApiError, Cause},
    version::WatchList,
};
use crate::{
    apifault::{Registration, WatchSignal, reset},
    store::{
        RevisionError,
        history::{Change, ChangeKind},
        object::{map_mut, set_meta},
    },
};

/// How often a watch that allows bookmarks gets one when nothing happens.
const BOOKMARK_PERIOD: SignedDuration = SignedDuration::from_secs(60);

struct Watcher {
    inner: Arc<Inner>,
    call: Call,
    selection: Selection,
    cursor: u64,
    lines: VecDeque<Bytes>,
    changed: watch::Receiver<u64>,
    registration: Registration,
    deadline: Timestamp,
    bookmark_at: Option<Timestamp>,
    ended: bool,
    /// The next event is cut in two, and its second half never arrives.
    halved: bool,
}

/// Answers a watch request.
pub(super) async fn answer(inner: &Arc<Inner>, call: Call) -> Result<Response<ApiBody>, ApiError> {
    let selection = Selection::of(&call)?;
    let asked = revision_asked(call.query.get("resourceVersion"))?;
    let initial = initial_events(inner, &call)?;
    if asked > 0 {
        wait_for_revision(inner, asked).await?;
    }
    let registration = inner.faults.register(&call.path, &call.user.name);
    let now = inner.clock.now();
    let bookmarks = call.query.flag("allowWatchBookmarks");
    let resource = call.kind.resource();
    let mut state = inner.state();
    let timeout = call.query.number::<u64>("timeoutSeconds").filter(|seconds| *seconds > 0);
    let timeout = timeout.unwrap_or_else(|| state.random(1800..3600));
    let changed = state.store.subscribe(&resource);
    let deadline =
        now.checked_add(SignedDuration::from_secs(i64::try_from(timeout).unwrap_or(3600))).unwrap_or(Timestamp::MAX);
    let mut watcher = Watcher {
        inner: Arc::clone(inner),
        selection,
        cursor: if asked == 0 || initial { state.store.revision() } else { asked },
        lines: VecDeque::new(),
        changed,
        registration,
        deadline,
        bookmark_at: bookmarks.then(|| now.checked_add(BOOKMARK_PERIOD).unwrap_or(Timestamp::MAX)),
        ended: false,
        halved: call.half_event,
        call,
    };
    if asked == 0 || initial {
        let namespace = Some(watcher.call.target.namespace.clone()).filter(|namespace| !namespace.is_empty());
        for (_, object) in state.store.list(&resource, namespace.as_deref()) {
            if watcher.selection.matches(&object) {
                watcher.send("ADDED", &present(&watcher.call, &object));
            }
        }
        if initial && bookmarks {
            watcher.bookmark(true);
        }
    }
    state.counts.watch_events += watcher.lines.len() as u64;
    drop(state);
    Ok(body::json_stream(stream::unfold(watcher, next).boxed()))
}

/// Whether the client asked for the state first, and the server grants it.
fn initial_events(inner: &Inner, call: &Call) -> Result<bool, ApiError> {
    let said = call.query.get("sendInitialEvents");
    let serves = inner.version.watch_list();
    let refuse = |field: &str, detail: &str| {
        Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![Cause::forbidden(field, detail)]))
    };
    if said.is_empty() || serves == WatchList::Unknown {
        if !call.query.get("resourceVersionMatch").is_empty() {
            return refuse("resourceVersionMatch", "resourceVersionMatch is forbidden for watch");
        }
        return Ok(false);
    }
    if serves == WatchList::Refused {
        return refuse(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        );
    }
    if call.query.get("resourceVersionMatch") != "NotOlderThan" {
        return refuse(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    }
    Ok(call.query.flag("sendInitialEvents"))
}

async fn next(mut watcher: Watcher) -> Option<(Result<Bytes, BoxError>, Watcher)> {
    loop {
        match watcher.registration.signal() {
            None => {}
            Some(WatchSignal::Cut) => return None,
            Some(WatchSignal::Broken) => {
                if watcher.ended {
                    return None;
                }
                watcher.ended = true;
                return Some((Err(reset().into()), watcher));
            }
            Some(WatchSignal::Half) => watcher.halved |= !watcher.ended,
            Some(WatchSignal::Refused(error)) => {
                if watcher.ended {
                    return None;
                }
                watcher.ended = true;
                watcher.lines.clear();
                watcher.send("ERROR", &error.to_status());
            }
        }
        if watcher.halved && watcher.ended {
            return Some((Err(reset().into()), Watcher { halved: false, lines: VecDeque::new(), ..watcher }));
        }
        if let Some(mut line) = watcher.lines.pop_front() {
            if watcher.halved {
                line.truncate(line.len() / 2);
                watcher.ended = true;
            }
            return Some((Ok(line), watcher));
        }
        if watcher.ended {
            return None;
        }
        if watcher.poll_store() {
            continue;
        }
        let now = watcher.inner.clock.now();
        if now >= watcher.deadline {
            watcher.ended = true;
            continue;
        }
        if watcher.bookmark_at.is_some_and(|at| now >= at) {
            watcher.bookmark(false);
            watcher.inner.state().counts.watch_events += 1;
            watcher.bookmark_at = Some(now.checked_add(BOOKMARK_PERIOD).unwrap_or(Timestamp::MAX));
            continue;
        }
        let until = watcher.bookmark_at.map_or(watcher.deadline, |at| at.min(watcher.deadline));
        // Rounded up, so that the clock has passed the moment when the sleep ends.
        let pause = Duration::try_from(until.duration_since(now)).unwrap_or_default() + Duration::from_millis(1);
        let clock = watcher.inner.clock.clone();
        tokio::select! {
            biased;
            () = watcher.registration.changed() => {}
            result = watcher.changed.changed() => {
                // The resource is no longer served: send what is left, then end.
                if result.is_err() && !watcher.poll_store() {
                    watcher.ended = true;
                }
            }
            () = clock.sleep(pause) => {}
        }
    }
}

impl Watcher {
    fn send(&mut self, kind: &str, object: &Value) {
        self.lines.push_back(format!("{}\n", json!({"type": kind, "object": object})).into());
    }

    fn bookmark(&mut self, initial_end: bool) {
        let mut object = json!({
            "kind": self.call.kind.kind, "apiVersion": self.call.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string(), "creationTimestamp": null},
        });
        if initial_end {
            set_meta(&mut object, "annotations", json!({"k8s.io/initial-events-end": "true"}));
        }
        self.send("BOOKMARK", &object);
    }

    /// Turns the changes since the cursor into lines; says whether there is anything to send.
    fn poll_store(&mut self) -> bool {
        let resource = self.call.kind.resource();
        let (changes, revision) = {
            let state = self.inner.state();
            (state.store.changes(&resource, self.cursor), state.store.revision())
        };
        match changes {
            Ok(changes) => {
                for change in changes {
                    self.cursor = change.revision;
                    self.translate(&change);
                }
                self.cursor = self.cursor.max(revision);
            }
            Err(RevisionError::TooOld(oldest) | RevisionError::TooNew(oldest)) => {
                let error = ApiError::too_old(self.cursor, oldest);
                self.send("ERROR", &error.to_status());
                self.ended = true;
            }
        }
        if !self.lines.is_empty() {
            self.inner.state().counts.watch_events += self.lines.len() as u64;
        }
        !self.lines.is_empty()
    }

    fn translate(&mut self, change: &Change) {
        let namespace = &self.call.target.namespace;
        if !namespace.is_empty() && crate::store::object::meta_str(&change.object, "namespace") != namespace {
            return;
        }
        let before = change.previous.as_ref().is_some_and(|object| self.selection.matches(object));
        let after = change.kind != ChangeKind::Deleted && self.selection.matches(&change.object);
        let (kind, object) = match (before, after) {
            (false, false) => return,
            (false, true) => ("ADDED", Arc::clone(&change.object)),
            (true, true) => ("MODIFIED", Arc::clone(&change.object)),
            // What no longer matches is told as it last matched, under the revision of the change.
            (true, false) => ("DELETED", change.previous.clone().unwrap_or_else(|| Arc::clone(&change.object))),
        };
        let mut object = present(&self.call, &object);
        if kind == "DELETED" && map_mut(&mut object).contains_key("metadata") {
            set_meta(&mut object, "resourceVersion", change.revision.to_string().into());
        }
        self.send(kind, &object);
    }
}
