//! What is looked at before a new object is stored: limit ranges, quotas; and what follows from every write for them.

mod disruption;
mod limits;
mod quantity;
mod quota;

use serde_json::Value;

use super::{kinds::KindDef, server::State, status::ApiError};

/// Fills in what is the maker's own, as the kind's defaults.
pub(super) fn prepare(kind: &KindDef, object: &mut Value) {
    if kind.group.is_empty() && kind.plural == "limitranges" {
        limits::complete(object);
    }
}

/// Fills in what the namespace has rules for.
pub(super) fn mutate(state: &State, kind: &KindDef, object: &mut Value) {
    if is_pod(kind) {
        limits::apply(state, object);
    }
}

/// Refuses what the namespace's limits and quotas do not leave room for.
pub(super) fn validate(state: &State, kind: &KindDef, object: &Value) -> Result<(), ApiError> {
    if is_pod(kind) {
        limits::check(state, object)?;
    }
    quota::check(state, kind, object)
}

/// An object was stored or removed: what is counted is counted again.
pub(super) fn written(state: &mut State, kind: &KindDef, namespace: &str) {
    if namespace.is_empty() {
        return;
    }
    quota::count(state, namespace);
    if is_pod(kind) || kind.plural == "poddisruptionbudgets" {
        disruption::count(state, namespace);
    }
}

fn is_pod(kind: &KindDef) -> bool {
    kind.group.is_empty() && kind.plural == "pods"
}
