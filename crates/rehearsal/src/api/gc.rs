//! The garbage collector: objects whose owners are gone go too, and owners may wait for them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    delete::{FOREGROUND, ORPHAN, Options, delete_object},
    kinds::KindDef,
    server::{Inner, State},
    write,
};
use crate::store::{
    Place,
    object::{finalizers, is_deleting, meta_str, owners, set_meta},
};

fn find(state: &State, place: &Place) -> Option<(Arc<KindDef>, Arc<Value>)> {
    let kind = Arc::clone(state.kinds.get(&place.0)?);
    Some((kind, state.store.get(&place.0, &place.1)?))
}

fn owner_uid(owner: &Value) -> &str {
    owner.get("uid").and_then(Value::as_str).unwrap_or_default()
}

/// The owner is gone: its dependents go too, unless they have another one.
pub(super) fn owner_gone(inner: &Inner, state: &mut State, uid: &str) {
    for place in state.store.dependents_of(uid) {
        collect(inner, state, &place);
    }
}

/// An object that was made with an owner that does not exist.
pub(super) fn dependent(inner: &Inner, state: &mut State, uid: &str) {
    if let Some(place) = state.store.place_of(uid).cloned() {
        collect(inner, state, &place);
    }
}

/// Deletes an object without owners, or takes the owners that are gone from its list.
fn collect(inner: &Inner, state: &mut State, place: &Place) {
    let Some((kind, object)) = find(state, place) else { return };
    if owners(&object).is_empty() {
        return;
    }
    let present: Vec<Value> =
        owners(&object).iter().filter(|owner| state.store.place_of(owner_uid(owner)).is_some()).cloned().collect();
    if present.len() == owners(&object).len() {
        return;
    }
    if present.is_empty() {
        if !is_deleting(&object) {
            delete_as_dependent(inner, state, &kind, place, &object);
        }
    } else {
        let mut new = Value::clone(&object);
        set_meta(&mut new, "ownerReferences", present.into());
        write::commit(inner, state, &kind, new);
    }
}

fn delete_as_dependent(inner: &Inner, state: &mut State, kind: &KindDef, place: &Place, object: &Value) {
    let held = finalizers(object);
    let propagation = if held.iter().any(|one| one == FOREGROUND) {
        "Foreground"
    } else if held.iter().any(|one| one == ORPHAN) {
        "Orphan"
    } else {
        "Background"
    };
    let options =
        Options { propagation: propagation.into(), uid: meta_str(object, "uid").into(), ..Options::default() };
    if let Err(error) = delete_object(inner, state, kind, &place.1, &options) {
        tracing::debug!(%error, "dependent was not deleted");
    }
}

/// An object in deletion: sees to its dependents as its own finalizers ask, and takes those finalizers away when done.
pub(super) fn deleting(inner: &Inner, state: &mut State, uid: &str) {
    let Some(place) = state.store.place_of(uid).cloned() else { return };
    let Some((kind, object)) = find(state, &place) else { return };
    if !is_deleting(&object) {
        return;
    }
    let held = finalizers(&object);
    if held.iter().any(|one| one == ORPHAN) {
        for place in state.store.dependents_of(uid) {
            let Some((kind, dependent)) = find(state, &place) else { continue };
            let rest: Vec<Value> = owners(&dependent).iter().filter(|owner| owner_uid(owner) != uid).cloned().collect();
            let mut new = Value::clone(&dependent);
            set_meta(&mut new, "ownerReferences", if rest.is_empty() { Value::Null } else { rest.into() });
            write::commit(inner, state, &kind, new);
        }
        release(inner, state, &kind, &object, ORPHAN);
    } else if held.iter().any(|one| one == FOREGROUND) {
        let mut blocked = false;
        for place in state.store.dependents_of(uid) {
            let Some((kind, dependent)) = find(state, &place) else { continue };
            let blocks = owners(&dependent).iter().any(|owner| {
                owner_uid(owner) == uid && owner.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false)
            });
            let others = owners(&dependent)
                .iter()
                .any(|owner| owner_uid(owner) != uid && state.store.place_of(owner_uid(owner)).is_some());
            blocked |= blocks;
            if others {
                let rest: Vec<Value> =
                    owners(&dependent).iter().filter(|owner| owner_uid(owner) != uid).cloned().collect();
                let mut new = Value::clone(&dependent);
                set_meta(&mut new, "ownerReferences", rest.into());
                write::commit(inner, state, &kind, new);
            } else if !is_deleting(&dependent) {
                let propagation = if state.store.dependents_of(meta_str(&dependent, "uid")).is_empty() {
                    "Background"
                } else {
                    "Foreground"
                };
                let options = Options { propagation: propagation.into(), ..Options::default() };
                if let Err(error) = delete_object(inner, state, &kind, &place.1, &options) {
                    tracing::debug!(%error, "dependent was not deleted");
                }
            }
        }
        let waits = blocked && !state.store.dependents_of(uid).is_empty();
        if !waits && let Some((kind, object)) = find(state, &place) {
            release(inner, state, &kind, &object, FOREGROUND);
        }
    }
}

fn release(inner: &Inner, state: &mut State, kind: &KindDef, object: &Value, finalizer: &str) {
    let rest: Vec<String> = finalizers(object).into_iter().filter(|one| one != finalizer).collect();
    let mut new = object.clone();
    set_meta(&mut new, "finalizers", if rest.is_empty() { Value::Null } else { json!(rest) });
    write::settle(inner, state, kind, new);
}
