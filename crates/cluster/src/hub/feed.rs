//! What a watch knows: the objects, and whether it may be believed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use jiff::Timestamp;
use serde_json::Value;
use toolbox_engine::watch;
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
    explained: Option<String>,
    refused: Option<ClusterError>,
    /// The newest version that was seen, as a number; versions of one server are comparable.
    seen: u64,
    /// The version of our own latest change that this watch has to show. Until it does, what it knows is older than
    /// what we know, and the old state must not be taken for the answer to the change.
    expected: u64,
}

/// A version as a number; 0 for servers whose versions are none.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

impl State {
    fn is_behind(&self) -> bool {
        // A server whose versions are no numbers is believed as it is.
        self.seen > 0 && self.seen < self.expected
    }

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
    pub(super) fn replace(&self, items: Vec<Value>, version: &str) {
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
            let expected = state.expected;
            *state = State { objects, listed: true, seen: number(version), expected, ..State::default() };
            news || expected > 0
        });
    }

    /// Events arrived: all of one read at once, so that a storm wakes its waits once and not a thousand times.
    pub(super) fn apply(&self, changes: Vec<Change>, version: &str) {
        self.update(|state| {
            let was_behind = state.is_behind();
            state.seen = state.seen.max(number(version));
            if changes.is_empty() {
                return was_behind && !state.is_behind();
            }
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

    /// We changed an object: until the watch has come as far, it knows less than we do.
    pub(super) fn expect(&self, object: &Object) {
        if self.query.covers(object) {
            let mut state = lock(&self.state);
            state.expected = state.expected.max(number(object.resource_version()));
        }
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

    /// What was found out about the trouble; kept as long as it lasts.
    pub(super) fn explain(&self, text: String) {
        self.update(|state| {
            state.explained = Some(text);
            state.away.is_some()
        });
    }

    /// The server answers again.
    pub(super) fn back(&self) {
        self.update(|state| {
            state.explained = None;
            state.away.take().is_some() | state.refused.take().is_some()
        });
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
            let mut text = text.replace("{since}", &since);
            if let Some(explained) = &state.explained {
                text = format!("{text} ({explained})");
            }
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
        if state.is_behind() {
            let text = "has just been changed, which is not seen yet";
            return View::Pending(Why::waiting(self.query.object(), "catching-up", text));
        }
        View::Objects(state.snapshot())
    }
}
