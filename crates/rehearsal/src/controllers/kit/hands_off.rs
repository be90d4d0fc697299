//! Objects that a recording plays: the simulated controllers see them and leave them alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::core::DynamicObject;

use super::{Kind, Read};

/// Kind, namespace and name.
type Held = (String, String, String);

/// What is played, each with the generation that the recording gave it. When somebody else changes what is wanted of an
/// object, or deletes it, the controllers take over. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct HandsOff(Arc<Mutex<BTreeMap<Held, i64>>>);

impl HandsOff {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Held, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds an object as it was just written.
    pub(crate) fn hold(&self, kind: &str, object: &DynamicObject) {
        self.lock().insert(key(kind, object), object.generation());
    }

    /// Gives an object to the controllers.
    pub(crate) fn release(&self, kind: &str, object: &DynamicObject) {
        self.lock().remove(&key(kind, object));
    }

    /// Lets go of an object that somebody else has changed or deletes.
    pub(super) fn seen(&self, kind: Kind, object: &DynamicObject) {
        let mut held = self.lock();
        if held.is_empty() {
            return;
        }
        let key = key(kind.name, object);
        if held.get(&key).is_some_and(|generation| object.is_deleted() || object.generation() > *generation) {
            held.remove(&key);
        }
    }

    /// Whether an object is still as the recording wants it.
    pub(crate) fn holds(&self, kind: Kind, object: &DynamicObject) -> bool {
        let held = self.lock();
        !held.is_empty()
            && !object.is_deleted()
            && held.get(&key(kind.name, object)).is_some_and(|generation| object.generation() <= *generation)
    }

    /// Whether an object that is about to be made belongs to one that is played.
    pub(super) fn holds_owner(&self, object: &DynamicObject) -> bool {
        let held = self.lock();
        let owners = object.metadata.owner_references.iter().flatten();
        !held.is_empty()
            && owners.into_iter().any(|owner| {
                let key = |namespace: &str| (owner.kind.clone(), namespace.to_owned(), owner.name.clone());
                held.contains_key(&key(object.namespace())) || held.contains_key(&key(""))
            })
    }
}

fn key(kind: &str, object: &DynamicObject) -> Held {
    (kind.to_owned(), object.namespace().to_owned(), object.name().to_owned())
}
