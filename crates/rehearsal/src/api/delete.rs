//! Deletion: preconditions, grace, finalizers, propagation.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::{
    admission, apiservice, crd,
    dispatch::Call,
    housekeeping::{self, Job},
    kinds::KindDef,
    rbac,
    read::{Selection, in_version, plain_list},
    server::{Inner, State, stamp},
    status::{self, ApiError},
    write,
};
use crate::store::{
    Resource,
    object::{Key, at, finalizers, is_deleting, meta, meta_str, owners, set_at, set_meta},
};

/// The finalizer of a foreground deletion.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a deletion that leaves the dependents.
pub(super) const ORPHAN: &str = "orphan";

/// What a client may say about a deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) grace: Option<i64>,
    pub(super) propagation: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) dry_run: bool,
}

impl Options {
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        let body = if call.body.is_empty() { Value::Null } else { call.json()? };
        let body = if body.get("kind").and_then(Value::as_str) == Some("Eviction") {
            body["deleteOptions"].clone()
        } else {
            body
        };
        let text = |path: &str| at(&body, path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let query = |name: &str, own: String| if own.is_empty() { call.query.get(name).to_owned() } else { own };
        let dry_run =
            body.get("dryRun").and_then(Value::as_array).is_some_and(|list| list.iter().any(|one| one == "All"));
        let grace =
            body.get("gracePeriodSeconds").and_then(Value::as_i64).or_else(|| call.query.number("gracePeriodSeconds"));
        Ok(Self {
            grace,
            propagation: query("propagationPolicy", text("propagationPolicy")),
            uid: text("preconditions.uid"),
            resource_version: text("preconditions.resourceVersion"),
            dry_run: dry_run || call.dry_run(),
        })
    }
}

/// What a deletion led to.
pub(super) enum Outcome {
    /// Nothing is left; the object as it was.
    Gone(Arc<Value>),
    /// The object waits for its finalizers or its grace period.
    Waiting(Arc<Value>),
}

/// Answers DELETE on an object.
pub(super) fn delete(inner: &Inner, state: &mut State, call: &Call) -> Result<Value, ApiError> {
    let options = Options::of(call)?;
    match delete_object(inner, state, &call.kind, &call.key(), &options)? {
        Outcome::Waiting(object) => Ok(in_version(call, &object)),
        Outcome::Gone(object) if returns_object(&call.kind) => Ok(in_version(call, &object)),
        Outcome::Gone(object) => {
            Ok(status::deleted(&call.kind.resource(), &call.target.name, meta_str(&object, "uid")))
        }
    }
}

/// Kinds whose deletion answers with the object instead of a status.
fn returns_object(kind: &KindDef) -> bool {
    kind.group.is_empty()
        && [
            "pods",
            "podtemplates",
            "persistentvolumes",
            "persistentvolumeclaims",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ]
        .contains(&kind.plural.as_str())
}

/// Answers DELETE on a collection.
pub(super) fn delete_collection(inner: &Inner, state: &mut State, call: &Call) -> Result<Value, ApiError> {
    let options = Options::of(call)?;
    let selection = Selection::of(call)?;
    let namespace = Some(call.target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let mut items = Vec::new();
    for (key, object) in state.store.list(&call.kind.resource(), namespace) {
        if selection.matches(&object) {
            match delete_object(inner, state, &call.kind, &key, &options)? {
                Outcome::Gone(object) | Outcome::Waiting(object) => items.push(object),
            }
        }
    }
    let mut meta = Map::new();
    meta.insert("resourceVersion".into(), state.store.revision().to_string().into());
    Ok(plain_list(call, &items, meta))
}

/// Deletes an object, or starts to.
pub(super) fn delete_object(
    inner: &Inner,
    state: &mut State,
    kind: &KindDef,
    key: &Key,
    options: &Options,
) -> Result<Outcome, ApiError> {
    let resource = kind.resource();
    let old = state.store.get(&resource, key).ok_or_else(|| ApiError::not_found(&resource, &key.name))?;
    check_preconditions(kind, &old, options)?;
    let grace = grace_of(kind, &old, options);
    let mut new = Value::clone(&old);
    let first = !is_deleting(&old);
    if first {
        add_propagation(kind, &mut new, &options.propagation);
    }
    if kind.plural == "namespaces" && kind.group.is_empty() {
        set_at(&mut new, "status.phase", "Terminating".into());
    }
    let present = meta(&old, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    if first || grace < present {
        let moment = inner.clock.now().checked_add(SignedDuration::from_secs(grace)).unwrap_or(jiff::Timestamp::MAX);
        set_meta(&mut new, "deletionTimestamp", stamp(moment).into());
        // These two are deleted by code of their own, which leaves the usual marks out.
        let is_definition = resource == crd::resource();
        let special = is_definition || kind.plural == "namespaces" && kind.group.is_empty();
        set_meta(&mut new, "deletionGracePeriodSeconds", if special { Value::Null } else { grace.into() });
        if is_definition {
            crd::mark_for_deletion(&mut new, &inner.stamp());
        }
        if let Some(generation) = meta(&old, "generation").and_then(Value::as_i64).filter(|_| first && !special) {
            set_meta(&mut new, "generation", (generation + 1).into());
        }
    }
    let complete = is_complete(kind, &new);
    if options.dry_run {
        return Ok(if complete { Outcome::Gone(old) } else { Outcome::Waiting(Arc::new(new)) });
    }
    if complete {
        remove(inner, state, kind, key);
        let plain = first && grace == 0;
        return Ok(Outcome::Gone(if plain { old } else { Arc::new(new) }));
    }
    if new == *old {
        return Ok(Outcome::Waiting(old));
    }
    Ok(Outcome::Waiting(write::commit(inner, state, kind, new)))
}

fn check_preconditions(kind: &KindDef, old: &Value, options: &Options) -> Result<(), ApiError> {
    let (uid, version) = (meta_str(old, "uid"), meta_str(old, "resourceVersion"));
    let refuse = |what: &str, wanted: &str, found: &str| {
        let detail = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {}",
            if what == "UID" { "deleted and then recreated" } else { "modified" }
        );
        Err(ApiError::conflict(&Resource::new(kind.group.clone(), kind.kind.clone()), meta_str(old, "name"), &detail))
    };
    if !options.uid.is_empty() && options.uid != uid {
        return refuse("UID", &options.uid, uid);
    }
    if !options.resource_version.is_empty() && options.resource_version != version {
        return refuse("ResourceVersion", &options.resource_version, version);
    }
    Ok(())
}

/// The seconds that the object gets to end; only pods on a node get any.
fn grace_of(kind: &KindDef, old: &Value, options: &Options) -> i64 {
    let phase = at(old, "status.phase").and_then(Value::as_str).unwrap_or_default();
    let placed = at(old, "spec.nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    if kind.plural != "pods" || !kind.group.is_empty() || !placed || phase == "Succeeded" || phase == "Failed" {
        return 0;
    }
    let own = at(old, "spec.terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    options.grace.unwrap_or(own).max(0)
}

fn add_propagation(kind: &KindDef, new: &mut Value, said: &str) {
    let mut list: Vec<String> =
        finalizers(new).into_iter().filter(|one| said.is_empty() || one != FOREGROUND && one != ORPHAN).collect();
    let orphans_by_default =
        (kind.group == "batch" && kind.plural == "jobs") || kind.plural == "replicationcontrollers";
    let wanted = match said {
        "Foreground" => Some(FOREGROUND),
        "Orphan" => Some(ORPHAN),
        "" if orphans_by_default && !list.iter().any(|one| one == FOREGROUND) => Some(ORPHAN),
        _ => None,
    };
    if let Some(wanted) = wanted.filter(|wanted| !list.iter().any(|one| one == wanted)) {
        list.push(wanted.to_owned());
    }
    set_meta(new, "finalizers", if list.is_empty() { Value::Null } else { json!(list) });
}

/// Whether nothing holds a deleted object any longer.
pub(super) fn is_complete(kind: &KindDef, object: &Value) -> bool {
    let namespace_waits = kind.group.is_empty()
        && kind.plural == "namespaces"
        && at(object, "spec.finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    is_deleting(object)
        && finalizers(object).is_empty()
        && !namespace_waits
        && meta(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
}

/// Removes an object for good and leaves the garbage collector what follows from it.
pub(super) fn remove(inner: &Inner, state: &mut State, kind: &KindDef, key: &Key) -> Option<Arc<Value>> {
    let resource = kind.resource();
    let object = state.store.remove(&resource, key)?;
    let uid = meta_str(&object, "uid").to_owned();
    if !state.store.dependents_of(&uid).is_empty() {
        housekeeping::later(inner, state, housekeeping::GC_DELAY, Job::OwnerGone(uid));
    }
    for owner in owners(&object) {
        let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        housekeeping::later(inner, state, housekeeping::GC_DELAY, Job::Deleting(uid));
    }
    if resource == crd::resource() {
        crd::removed(state, &object);
    }
    if resource.plural == "clusterroles" {
        rbac::aggregate(state);
    }
    admission::written(state, kind, &key.namespace);
    apiservice::written(inner, state, &resource);
    if resource.plural == "pods" && resource.group.is_empty() {
        inner.logs.forget(&key.namespace, &key.name);
    }
    Some(object)
}
