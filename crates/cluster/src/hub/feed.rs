//! What a watch knows: the objects, and whether it may be believed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use toolbox_engine::{FailureVerdict, Why};

use super::{Hub, lock};
use crate::error::ClusterError;
use crate::object::Object;
use crate::query::Query;
use crate::transport::{Failure, Transport};

type Key = (String, String);

/// What can be said about the objects now.
pub(super) enum View {
    Objects(Arc<[Object]>),
    NotServed(Why),
    Pending(Why),
    Failed(Why),
}

/// What one event does.
#[derive(Debug)]
pub(super) enum Change {
    Put(Object),
    Remove(Object),
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Object>,
    /// Made when it is asked for, so that a storm of events does not copy the list once per event.
    snapshot: Option<Arc<[Object]>>,
    listed: bool,
    not_served: bool,
    /// Since when, and what, keeps us from knowing more.
    away: Option<(Timestamp, String)>,
    refused: Option<ClusterError>,
}

impl State {
    fn snapshot(&mut self) -> Arc<[Object]> {
        let objects = &self.objects;
        self.snapshot.get_or_insert_with(|| objects.values().cloned().collect()).clone()
    }
}

pub(super) struct Feed {
    pub(super) query: Query,
    pub(super) transport: Arc<Transport>,
    pub(super) hub: Weak<Hub>,
    /// Grows with every change that a wait may want to see.
    pub(super) version: watch::Sender<u64>,
    state: Mutex<State>,
}

fn key(object: &Object) -> Key {
    (object.namespace().unwrap_or_default().to_owned(), object.name().to_owned())
}

impl Feed {
    pub(super) fn new(query: Query, transport: Arc<Transport>, hub: Weak<Hub>) -> Self {
        Self { query, transport, hub, version: watch::Sender::new(0), state: Mutex::default() }
    }

    fn update(&self, change: impl FnOnce(&mut State) -> bool) {
        let changed = change(&mut lock(&self.state));
        if changed {
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// A whole list arrived: what is not in it is gone, whoever saw it go.
    pub(super) fn replace(&self, items: Vec<Value>) {
        let objects: BTreeMap<Key, Object> = items
            .into_iter()
            .map(|item| Object::of_kind(item, &self.query.kind))
            .map(|object| (key(&object), object))
            .collect();
        self.update(|state| {
            let news = !state.listed
                || state.not_served
                || state.away.is_some()
                || state.refused.is_some()
                || state.objects != objects;
            *state = State { objects, listed: true, ..State::default() };
            news
        });
    }

    /// Events arrived: all of one read at once, so that a storm wakes its waits once and not a thousand times.
    pub(super) fn apply(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        self.update(|state| {
            for change in changes {
                match change {
                    Change::Put(object) => {
                        state.objects.insert(key(&object), object);
                    }
                    Change::Remove(object) => {
                        state.objects.remove(&key(&object));
                    }
                }
            }
            state.snapshot = None;
            true
        });
    }

    /// The server cannot be asked; the first such moment is kept.
    pub(super) fn away(&self, failure: &Failure) {
        let now = self.transport.clock.now();
        let text = match failure {
            Failure::Lost(text) => {
                format!("the API server is not reachable since {{since}}: {text}")
            }
            other => format!("{} cannot be read since {{since}}: {}", self.query.kind.full_name(), other.describe()),
        };
        self.update(|state| {
            let since = state.away.as_ref().map_or(now, |(since, _)| *since);
            let next = Some((since, text));
            let news = state.away != next;
            state.away = next;
            news
        });
    }

    /// The server answers again.
    pub(super) fn back(&self) {
        self.update(|state| state.away.take().is_some() | state.refused.take().is_some());
    }

    /// The kind is not part of the API, so there are no such objects.
    pub(super) fn not_served(&self) {
        self.update(|state| {
            let news = !state.not_served || state.away.is_some() || state.refused.is_some();
            *state = State { not_served: true, ..State::default() };
            news
        });
    }

    /// The server will not let us have the objects.
    pub(super) fn refused(&self, error: ClusterError) {
        self.update(|state| {
            let news = state.refused.as_ref() != Some(&error);
            state.refused = Some(error);
            news
        });
    }

    pub(super) fn last_seen(&self) -> Arc<[Object]> {
        lock(&self.state).snapshot()
    }

    pub(super) fn view(&self) -> View {
        let mut state = lock(&self.state);
        if let Some(error) = &state.refused {
            return View::Failed(error.clone().into());
        }
        if let Some((since, text)) = &state.away {
            let since = since.strftime("%H:%M:%SZ").to_string();
            let text = text.replace("{since}", &since);
            let why = Why::waiting(self.query.object(), "api-unreachable", text).or_else(
                FailureVerdict::Infrastructure,
                "check that the API server is up and that this machine reaches it",
            );
            return View::Pending(why);
        }
        if state.not_served {
            let kind = &self.query.kind;
            let text = format!("{} ({}) is not served yet", kind.full_name(), kind.version);
            let why = Why::waiting(self.query.object(), "kind-not-served", text).or_else(
                FailureVerdict::Configuration,
                format!("check that what defines it is installed: oc get crd {}", kind.full_name()),
            );
            return View::NotServed(why);
        }
        if !state.listed {
            return View::Pending(Why::waiting(self.query.object(), "listing", "is being looked for"));
        }
        View::Objects(state.snapshot())
    }
}
