//! The versioned object store: one table per resource, one revision counter for all, a history per table.
//!
//! The store knows nothing of HTTP or of kinds. Whoever writes has already decided what the object becomes.

pub mod fields;
pub mod history;
pub mod managed;
pub mod object;
pub mod select;
pub mod shape;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use toolbox_engine::watch;

use self::{
    history::{Change, ChangeKind, History},
    object::{Key, meta_str, owners, set_meta},
};

/// How many changes a table remembers.
const HISTORY: usize = 8192;

/// A group and a plural: what a table is about, whatever the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural name, in lower case.
    pub plural: String,
}

impl Resource {
    /// A resource from its two parts.
    pub fn new(group: impl Into<String>, plural: impl Into<String>) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }

    /// As servers print it in messages: `deployments.apps`, or `pods`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// A table's object: where it is.
pub type Place = (Resource, Key);

struct Table {
    /// What happened before this revision, nobody watched.
    since: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    history: History,
    changed: watch::Sender<u64>,
}

/// The store.
#[derive(Default)]
pub struct Store {
    revision: u64,
    tables: BTreeMap<Resource, Table>,
    uids: BTreeMap<String, Place>,
    dependents: BTreeMap<String, BTreeSet<Place>>,
}

/// The revision asked for is no longer, or not yet, known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionError {
    /// Compacted away; the oldest that can be told.
    TooOld(u64),
    /// In the future; the present revision.
    TooNew(u64),
}

impl Store {
    /// The revision of the newest write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn table(&mut self, resource: &Resource) -> &mut Table {
        let revision = self.revision;
        self.tables.entry(resource.clone()).or_insert_with(|| Table {
            since: 0,
            objects: BTreeMap::new(),
            history: History::new(HISTORY, 0),
            changed: watch::Sender::new(revision),
        })
    }

    /// The object at a place.
    pub fn get(&self, resource: &Resource, key: &Key) -> Option<Arc<Value>> {
        self.tables.get(resource)?.objects.get(key).cloned()
    }

    /// Where the object with this uid is.
    pub fn place_of(&self, uid: &str) -> Option<&Place> {
        self.uids.get(uid)
    }

    /// The objects that name this uid among their owners.
    pub fn dependents_of(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// All objects of a resource, or those of one namespace, in the order of their keys.
    pub fn list(&self, resource: &Resource, namespace: Option<&str>) -> Vec<(Key, Arc<Value>)> {
        let Some(table) = self.tables.get(resource) else { return Vec::new() };
        let mut out = Vec::new();
        match namespace {
            None => out.extend(table.objects.iter().map(|(key, object)| (key.clone(), Arc::clone(object)))),
            Some(namespace) => out.extend(
                table
                    .objects
                    .range(Key::new(namespace, "")..)
                    .take_while(|(key, _)| key.namespace == namespace)
                    .map(|(key, object)| (key.clone(), Arc::clone(object))),
            ),
        }
        out
    }

    /// The same as it was at an earlier revision.
    pub fn list_at(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<(Key, Arc<Value>)>, RevisionError> {
        if revision > self.revision {
            return Err(RevisionError::TooNew(self.revision));
        }
        let mut objects: BTreeMap<Key, Arc<Value>> = self.list(resource, namespace).into_iter().collect();
        if let Some(table) = self.tables.get(resource) {
            if revision < table.history.compacted() {
                return Err(RevisionError::TooOld(table.history.compacted()));
            }
            for change in table.history.after(revision).rev() {
                let key = Key::of(&change.object);
                if namespace.is_some_and(|namespace| namespace != key.namespace) {
                    continue;
                }
                match &change.previous {
                    Some(previous) => objects.insert(key, Arc::clone(previous)),
                    None => objects.remove(&key),
                };
            }
        }
        Ok(objects.into_iter().collect())
    }

    /// The resources that have at least one object.
    pub fn resources(&self) -> Vec<Resource> {
        self.tables
            .iter()
            .filter(|(_, table)| !table.objects.is_empty())
            .map(|(resource, _)| resource.clone())
            .collect()
    }

    /// The changes of a resource after a revision.
    pub fn changes(&self, resource: &Resource, after: u64) -> Result<Vec<Change>, RevisionError> {
        let Some(table) = self.tables.get(resource) else { return Ok(Vec::new()) };
        let oldest = table.history.compacted().max(table.since);
        if after < oldest {
            return Err(RevisionError::TooOld(oldest));
        }
        Ok(table.history.after(after).cloned().collect())
    }

    /// Serves a resource from now on: watches from before are refused.
    pub fn begin(&mut self, resource: &Resource) {
        if !self.tables.contains_key(resource) {
            self.table(resource).since = self.revision;
        }
    }

    /// Tells when a table changes. The sender goes away when the resource is no longer served.
    pub fn subscribe(&mut self, resource: &Resource) -> watch::Receiver<u64> {
        self.table(resource).changed.subscribe()
    }

    /// Writes an object under a new revision and returns it as stored.
    pub fn put(&mut self, resource: &Resource, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        set_meta(&mut object, "resourceVersion", revision.to_string().into());
        let key = Key::of(&object);
        let object = Arc::new(object);
        let place = (resource.clone(), key.clone());
        let table = self.table(resource);
        let previous = table.objects.insert(key, Arc::clone(&object));
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        table.history.push(Change { revision, kind, object: Arc::clone(&object), previous: previous.clone() });
        table.changed.send_replace(revision);
        if let Some(previous) = &previous {
            self.forget(&place, previous);
        }
        self.uids.insert(meta_str(&object, "uid").to_owned(), place.clone());
        for owner in owners(&object) {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            self.dependents.entry(uid.to_owned()).or_default().insert(place.clone());
        }
        object
    }

    /// Removes an object under a new revision and returns its last state, which carries that revision.
    pub fn remove(&mut self, resource: &Resource, key: &Key) -> Option<Arc<Value>> {
        let table = self.tables.get_mut(resource)?;
        let previous = table.objects.remove(key)?;
        self.revision += 1;
        let revision = self.revision;
        let mut last = Value::clone(&previous);
        set_meta(&mut last, "resourceVersion", revision.to_string().into());
        let last = Arc::new(last);
        table.history.push(Change {
            revision,
            kind: ChangeKind::Deleted,
            object: Arc::clone(&last),
            previous: Some(Arc::clone(&previous)),
        });
        table.changed.send_replace(revision);
        self.forget(&(resource.clone(), key.clone()), &previous);
        Some(last)
    }

    fn forget(&mut self, place: &Place, object: &Value) {
        self.uids.remove(meta_str(object, "uid"));
        for owner in owners(object) {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            if let Some(set) = self.dependents.get_mut(uid) {
                set.remove(place);
                if set.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }

    /// Stops serving a resource: its history goes and its watches end. Objects must be removed before.
    pub fn drop_table(&mut self, resource: &Resource) {
        self.tables.remove(resource);
    }

    /// Forgets all history up to the present: resuming from before is refused with "too old".
    pub fn compact(&mut self) {
        let revision = self.revision;
        for table in self.tables.values_mut() {
            table.history.compact(revision);
        }
    }

    /// Uses up a revision, as a write to something else would.
    pub fn tick(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}
