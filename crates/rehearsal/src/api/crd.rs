//! Custom resource definitions: they make kinds, and take them away.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    delete::{Options, delete_object},
    housekeeping::{self, Job},
    kinds::{Column, Generation, KindDef, ScalePaths, VersionDef, version_order},
    server::{Inner, State},
    write,
};
use crate::store::{
    Resource,
    object::{Key, at, finalizers, is_deleting, meta_str, set_at, set_meta},
};

/// How long a definition takes to be established.
const ESTABLISH_DELAY: SignedDuration = SignedDuration::from_millis(100);
/// How often the removal of the objects of a definition is looked at.
const UNINSTALL_PERIOD: SignedDuration = SignedDuration::from_millis(500);
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The resource of the definitions themselves.
pub(super) fn resource() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: &Value, path: &str) -> Vec<String> {
    let list = at(value, path).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A definition was stored.
pub(super) fn stored(inner: &Inner, state: &mut State, definition: &Value) {
    let name = meta_str(definition, "name").to_owned();
    if is_deleting(definition) {
        housekeeping::later(inner, state, ESTABLISH_DELAY, Job::Uninstall(name));
    } else {
        housekeeping::later(inner, state, ESTABLISH_DELAY, Job::Establish(name));
    }
}

/// A definition is about to be deleted: its objects go first.
pub(super) fn mark_for_deletion(definition: &mut Value, since: &str) {
    let mut held = finalizers(definition);
    if !held.iter().any(|one| one == CLEANUP) {
        held.push(CLEANUP.to_owned());
        set_meta(definition, "finalizers", json!(held));
    }
    let mut conditions = at(definition, "status.conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.push(json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": since, "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }));
    set_at(definition, "status.conditions", conditions.into());
}

/// A definition is gone, and its kind with it.
pub(super) fn removed(state: &mut State, definition: &Value) {
    let resource = Resource::new(text(definition, "spec.group"), text(definition, "spec.names.plural"));
    state.kinds.remove(&resource);
    state.store.drop_table(&resource);
}

/// Serves the kind of a definition and says so in its status.
pub(super) fn establish(inner: &Inner, state: &mut State, name: &str) {
    let key = Key::new("", name);
    let Some(old) = state.store.get(&resource(), &key).filter(|old| !is_deleting(old)) else { return };
    let kind = kind_of(&old);
    let since = inner.stamp();
    state.store.begin(&kind.resource());
    state.kinds.insert(kind);
    let mut new = Value::clone(&old);
    let storage = versions(&old).find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let storage = storage.map(|version| text(version, "name").to_owned()).unwrap_or_default();
    let mut stored = texts(&old, "status.storedVersions");
    if !stored.contains(&storage) {
        stored.push(storage);
    }
    let known = at(&old, "status.conditions").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !known {
        set_at(
            &mut new,
            "status.conditions",
            json!([
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": since,
                 "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": since,
                 "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
            ]),
        );
    }
    set_at(&mut new, "status.acceptedNames", at(&old, "spec.names").cloned().unwrap_or(Value::Null));
    set_at(&mut new, "status.storedVersions", json!(stored));
    if new != *old
        && let Some(kind) = state.kinds.get(&resource()).cloned()
    {
        write::commit(inner, state, &kind, new);
    }
}

/// Deletes the objects of a definition that is being deleted, then lets it go.
pub(super) fn uninstall(inner: &Inner, state: &mut State, name: &str) {
    let Some(old) = state.store.get(&resource(), &Key::new("", name)).filter(|old| is_deleting(old)) else { return };
    let Some(definitions) = state.kinds.get(&resource()).cloned() else { return };
    let own = Resource::new(text(&old, "spec.group"), text(&old, "spec.names.plural"));
    if let Some(kind) = state.kinds.get(&own).cloned() {
        for (key, object) in state.store.list(&own, None) {
            if !is_deleting(&object)
                && let Err(error) = delete_object(inner, state, &kind, &key, &Options::default())
            {
                tracing::debug!(%error, "custom object was not deleted");
            }
        }
    }
    if !state.store.list(&own, None).is_empty() {
        housekeeping::later(inner, state, UNINSTALL_PERIOD, Job::Uninstall(name.to_owned()));
        return;
    }
    let rest: Vec<String> = finalizers(&old).into_iter().filter(|one| one != CLEANUP).collect();
    let mut new = Value::clone(&old);
    set_meta(&mut new, "finalizers", if rest.is_empty() { Value::Null } else { json!(rest) });
    if new != *old {
        write::settle(inner, state, &definitions, new);
    }
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    at(definition, "spec.versions").and_then(Value::as_array).into_iter().flatten()
}

fn kind_of(definition: &Value) -> KindDef {
    let mut served: Vec<VersionDef> = versions(definition)
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .map(|version| VersionDef {
            name: text(version, "name").to_owned(),
            schema: at(version, "schema.openAPIV3Schema").cloned().map(Arc::new),
            columns: version
                .get("additionalPrinterColumns")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(column)
                .collect(),
        })
        .collect();
    served.sort_by_key(|version| version_order(&version.name));
    let storage = versions(definition).find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let subresource = |name: &str| versions(definition).find_map(|version| at(version, "subresources")?.get(name));
    let path = |value: &Value, name: &str| text(value, name).trim_start_matches('.').to_owned();
    KindDef {
        group: text(definition, "spec.group").to_owned(),
        kind: text(definition, "spec.names.kind").to_owned(),
        plural: text(definition, "spec.names.plural").to_owned(),
        short_names: texts(definition, "spec.names.shortNames"),
        categories: texts(definition, "spec.names.categories"),
        versions: served,
        storage: storage.map(|version| text(version, "name").to_owned()).unwrap_or_default(),
        namespaced: text(definition, "spec.scope") == "Namespaced",
        status: subresource("status").is_some(),
        scale: subresource("scale").map(|scale| ScalePaths {
            spec: path(scale, "specReplicasPath"),
            status: path(scale, "statusReplicasPath"),
            selector: path(scale, "labelSelectorPath"),
        }),
        custom: true,
        virtual_: false,
        generation: Generation::AllButStatus,
    }
}

fn column(value: &Value) -> Column {
    Column {
        name: text(value, "name").to_owned(),
        kind: text(value, "type").to_owned(),
        path: text(value, "jsonPath").to_owned(),
        priority: value.get("priority").and_then(Value::as_i64).unwrap_or(0),
    }
}
