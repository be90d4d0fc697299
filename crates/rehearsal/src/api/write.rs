//! Create and replace: what every write goes through, whatever its verb.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    admission, apiservice, crd, decode, defaults,
    delete::{self},
    dispatch::Call,
    housekeeping::{self, Job},
    kinds::{Generation, KindDef},
    rbac, schema,
    server::{Inner, State},
    status::{ApiError, Cause},
    validate,
};
use crate::store::{
    Resource,
    managed::{self, Writer},
    object::{Key, finalizers, is_deleting, meta, meta_mut, meta_str, owners, set_meta},
    shape::Type,
};

/// Metadata that clients cannot set.
const SERVER_SIDE: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
    "resourceVersion",
];

/// Answers POST on a collection.
pub(super) fn create(inner: &Inner, state: &mut State, call: &Call) -> Result<Value, ApiError> {
    let mut object = decode::body(call)?;
    check_body(call, &mut object)?;
    insert(inner, state, call, object, true).map(|object| Value::clone(&object))
}

/// Answers PUT on an object.
pub(super) fn update(inner: &Inner, state: &mut State, call: &Call) -> Result<(Value, bool), ApiError> {
    let mut object = decode::body(call)?;
    check_body(call, &mut object)?;
    let resource = call.kind.resource();
    let old = state.store.get(&resource, &call.key());
    let old = old.ok_or_else(|| ApiError::not_found(&resource, &call.target.name))?;
    if call.kind.custom && meta_str(&object, "resourceVersion").is_empty() {
        let cause = Cause {
            reason: "FieldValueInvalid",
            message: format!(
                "Invalid value: {}: must be specified for an update",
                if inner.version.minor >= 32 { "0" } else { "0x0" }
            ),
            field: "metadata.resourceVersion".into(),
        };
        return Err(ApiError::invalid(&call.kind.group, &call.kind.plural, &call.target.name, vec![cause]));
    }
    replace(inner, state, call, &old, object, true).map(|object| (Value::clone(&object), false))
}

/// Checks that a body is about what the path says, and fills in what the path knows.
pub(super) fn check_body(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let Some(map) = object.as_object() else {
        return Err(ApiError::bad_request(format!(
            "couldn't get version/kind; json parse error: the body is not an object but {object}"
        )));
    };
    let said = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, version, expected) = (said("kind"), said("apiVersion"), call.api_version());
    if call.kind.custom && kind.is_empty() {
        return Err(ApiError::bad_request(format!(
            "{0} in version {1:?} cannot be handled as a {0}: Object 'Kind' is missing in '{object}'",
            call.kind.kind, call.target.version
        )));
    }
    if !version.is_empty() && version != expected {
        return Err(ApiError::bad_request(if call.kind.custom {
            format!("the API version in the data ({version}) does not match the expected API version ({expected})")
        } else {
            format!(
                "{kind} in version {version:?} cannot be handled as a {}: no kind {kind:?} is registered for version \
                 {version:?} in scheme \"pkg/runtime/scheme.go:100\"",
                call.kind.kind
            )
        }));
    }
    if !kind.is_empty() && kind != call.kind.kind {
        return Err(ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}",
            call.target.version, call.kind.kind
        )));
    }
    if let Some(map) = object.as_object_mut() {
        map.insert("kind".into(), call.kind.kind.clone().into());
        map.insert("apiVersion".into(), expected.into());
    }
    let namespace = meta_str(object, "namespace").to_owned();
    if call.kind.namespaced {
        if !namespace.is_empty() && namespace != call.target.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        set_meta(object, "namespace", call.target.namespace.clone().into());
    } else if !namespace.is_empty() {
        set_meta(object, "namespace", Value::Null);
    }
    if !call.target.name.is_empty() {
        let name = meta_str(object, "name").to_owned();
        if name.is_empty() {
            set_meta(object, "name", call.target.name.clone().into());
        } else if name != call.target.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.target.name
            )));
        }
    }
    Ok(())
}

fn writer<'a>(call: &'a Call, manager: &'a str, api_version: &'a str, time: &'a str) -> Writer<'a> {
    let subresource = call.target.subresource.as_str();
    Writer { manager, api_version, subresource, time }
}

/// The merge rules of the call's kind and version.
pub(super) fn type_of(call: &Call) -> Type<'_> {
    if !call.kind.custom {
        return Type::of_kind(&call.kind.group, &call.target.version, &call.kind.kind);
    }
    Type::of_custom(call.kind.version(&call.target.version).and_then(|version| version.schema.as_deref()))
}

/// A namespace must be there and not on its way out.
fn check_namespace(state: &State, kind: &KindDef, namespace: &str, name: &str) -> Result<(), ApiError> {
    if !kind.namespaced {
        return Ok(());
    }
    let namespaces = Resource::new("", "namespaces");
    let Some(found) = state.store.get(&namespaces, &Key::new("", namespace)) else {
        return Err(ApiError::not_found(&namespaces, namespace));
    };
    if !is_deleting(&found) {
        return Ok(());
    }
    let detail = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    };
    Err(ApiError::forbidden(&kind.resource(), name, &detail).with_causes([cause]))
}

/// Stores a new object. `record` is off when field management has already been done (apply).
pub(super) fn insert(
    inner: &Inner,
    state: &mut State,
    call: &Call,
    mut object: Value,
    record: bool,
) -> Result<Arc<Value>, ApiError> {
    let kind = Arc::clone(&call.kind);
    let resource = kind.resource();
    if !meta_str(&object, "resourceVersion").is_empty() {
        return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    if record {
        set_meta(&mut object, "managedFields", Value::Null);
    }
    let managed_before = meta(&object, "managedFields").cloned();
    let prefix = meta_str(&object, "generateName").to_owned();
    let generated = meta_str(&object, "name").is_empty() && !prefix.is_empty();
    if generated {
        let end = prefix.len().min(58);
        set_meta(&mut object, "name", format!("{}{}", &prefix[..end], state.suffix()).into());
    }
    let name = meta_str(&object, "name").to_owned();
    check_namespace(state, &kind, &call.target.namespace, &name)?;
    schema::strip_nulls(&mut object);
    for field in SERVER_SIDE {
        set_meta(&mut object, field, Value::Null);
    }
    if kind.status && kind.plural != "nodes" {
        object.as_object_mut().map(|map| map.shift_remove("status"));
    }
    let uid = state.uid();
    set_meta(&mut object, "uid", uid.into());
    set_meta(&mut object, "creationTimestamp", inner.stamp().into());
    if kind.generation != Generation::None {
        set_meta(&mut object, "generation", 1.into());
    }
    admission::prepare(&kind, &mut object);
    complete(call, &mut object)?;
    // What the server adds from here on belongs to nobody.
    if record {
        let (manager, version, time) = (call.manager(), call.api_version(), inner.stamp());
        managed::record_update(None, &mut object, &type_of(call), &writer(call, &manager, &version, &time));
    } else if let Some(managed) = managed_before {
        set_meta(&mut object, "managedFields", managed);
    }
    admission::mutate(state, &kind, &mut object);
    defaults::on_create(state, inner.version, &kind, &mut object);
    validate::metadata(&kind, &object)?;
    validate::object(&kind, None, &object)?;
    rbac::check_grant(state, inner.version, &call.user, &kind, None, &object)?;
    admission::validate(state, &kind, &object)?;
    if let Some(other) = state.store.get(&resource, &Key::of(&object)) {
        let error = ApiError::already_exists(&resource, &name);
        return Err(if is_deleting(&other) { error.before("object is being deleted: ") } else { error });
    }
    if call.dry_run() {
        return Ok(Arc::new(object));
    }
    Ok(commit(inner, state, &kind, object))
}

/// Defaults and schema rules that hold for new and changed objects alike.
fn complete(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    defaults::always(&call.kind, object);
    let version = call.kind.version(&call.target.version);
    let Some(schema) = version.and_then(|version| version.schema.clone()) else { return Ok(()) };
    let unknown = schema::prune(&schema, object);
    let unknown: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    decode::told(call, &unknown)?;
    schema::default(&schema, object);
    let causes = schema::validate(&schema, object);
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&call.kind.group, &call.kind.kind, meta_str(object, "name"), causes))
}

/// Replaces an object, through its subresource if the path has one.
pub(super) fn replace(
    inner: &Inner,
    state: &mut State,
    call: &Call,
    old: &Arc<Value>,
    mut new: Value,
    record: bool,
) -> Result<Arc<Value>, ApiError> {
    let kind = Arc::clone(&call.kind);
    let resource = kind.resource();
    let name = meta_str(old, "name").to_owned();
    let (uid, old_uid) = (meta_str(&new, "uid"), meta_str(old, "uid"));
    if !uid.is_empty() && uid != old_uid {
        let group = if kind.custom { format!("{}/", kind.group) } else { String::new() };
        let space = if kind.namespaced { format!("{}/", call.target.namespace) } else { String::new() };
        let detail = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{space}{name}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}",
            kind.plural
        );
        return Err(ApiError::conflict(&resource, &name, &detail));
    }
    let version = meta_str(&new, "resourceVersion");
    if !version.is_empty() && version != meta_str(old, "resourceVersion") {
        return Err(ApiError::stale(&resource, &name));
    }
    schema::strip_nulls(&mut new);
    match call.target.subresource.as_str() {
        "status" => {
            let status = new.get("status").cloned().unwrap_or(Value::Null);
            let managed = meta(&new, "managedFields").cloned().unwrap_or(Value::Null);
            let kept =
                ["labels", "annotations"].map(|field| (field, meta(&new, field).cloned().unwrap_or(Value::Null)));
            new = Value::clone(old);
            set_field(&mut new, "status", status);
            // The old core kinds let labels through with the status.
            if kind.group.is_empty() && ["pods", "nodes", "namespaces"].contains(&kind.plural.as_str()) {
                for (field, value) in kept {
                    set_meta(&mut new, field, value);
                }
            }
            if !record {
                set_meta(&mut new, "managedFields", managed);
            }
        }
        _ if kind.status => set_field(&mut new, "status", old.get("status").cloned().unwrap_or(Value::Null)),
        _ => {}
    }
    set_field(&mut new, "kind", old.get("kind").cloned().unwrap_or(Value::Null));
    set_field(&mut new, "apiVersion", call.api_version().into());
    for field in SERVER_SIDE.into_iter().chain(["name", "namespace", "generateName"]) {
        set_meta(&mut new, field, meta(old, field).cloned().unwrap_or(Value::Null));
    }
    if record {
        let reset = meta(&new, "managedFields").is_some_and(|list| *list == json!([{}]) || *list == json!([]));
        let managed = if reset { Value::Null } else { meta(old, "managedFields").cloned().unwrap_or(Value::Null) };
        set_meta(&mut new, "managedFields", managed);
    }
    complete(call, &mut new)?;
    validate::metadata(&kind, &new)?;
    validate::object(&kind, Some(old), &new)?;
    rbac::check_grant(state, inner.version, &call.user, &kind, Some(old), &new)?;
    let added: Vec<String> = finalizers(&new).into_iter().filter(|one| !finalizers(old).contains(one)).collect();
    if is_deleting(old) && !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ")
        );
        let cause = Cause::forbidden("metadata.finalizers", &detail);
        return Err(ApiError::invalid(&kind.group, &kind.kind, &name, vec![cause]));
    }
    if generation_changes(&kind, old, &new) {
        let generation = meta(old, "generation").and_then(Value::as_i64).unwrap_or(0);
        set_meta(&mut new, "generation", (generation + 1).into());
    }
    if record {
        let (manager, version, time) = (call.manager(), call.api_version(), inner.stamp());
        managed::record_update(Some(old), &mut new, &type_of(call), &writer(call, &manager, &version, &time));
    }
    if same(old, &new) {
        return Ok(Arc::clone(old));
    }
    if call.dry_run() {
        return Ok(Arc::new(new));
    }
    Ok(settle(inner, state, &kind, new))
}

fn set_field(object: &mut Value, name: &str, value: Value) {
    let map = crate::store::object::map_mut(object);
    if value.is_null() {
        map.shift_remove(name);
    } else {
        map.insert(name.to_owned(), value);
    }
}

/// Whether a write would change nothing: the version in which it was written does not count.
fn same(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    old.len() == new.len() && old.iter().all(|(name, value)| name == "apiVersion" || new.get(name) == Some(value))
}

fn generation_changes(kind: &KindDef, old: &Value, new: &Value) -> bool {
    match kind.generation {
        Generation::None => false,
        Generation::Spec => old.get("spec") != new.get("spec"),
        Generation::AllButStatus => {
            let fields = |object: &Value| {
                let mut map = object.as_object().cloned().unwrap_or_default();
                for name in ["metadata", "apiVersion", "kind"] {
                    map.shift_remove(name);
                }
                if kind.status {
                    map.shift_remove("status");
                }
                map
            };
            fields(old) != fields(new)
        }
    }
}

/// Stores a changed object, or removes it when its deletion waited for this change only.
pub(super) fn settle(inner: &Inner, state: &mut State, kind: &KindDef, object: Value) -> Arc<Value> {
    if delete::is_complete(kind, &object) {
        // The last change is seen as part of the removal, as with real servers.
        let key = Key::of(&object);
        delete::remove(inner, state, kind, &key);
        return Arc::new(object);
    }
    commit(inner, state, kind, object)
}

/// Writes to the store and leaves the housekeeper what follows from it.
pub(super) fn commit(inner: &Inner, state: &mut State, kind: &KindDef, mut object: Value) -> Arc<Value> {
    tidy(&mut object);
    let resource = kind.resource();
    let is_new = state.store.get(&resource, &Key::of(&object)).is_none();
    let object = state.store.put(&resource, object);
    let orphaned = owners(&object)
        .iter()
        .any(|owner| owner.get("uid").and_then(Value::as_str).is_none_or(|uid| state.store.place_of(uid).is_none()));
    if is_new && orphaned {
        housekeeping::later(inner, state, housekeeping::GC_DELAY, Job::Dependent(meta_str(&object, "uid").to_owned()));
    }
    if is_deleting(&object) {
        housekeeping::later(inner, state, housekeeping::GC_DELAY, Job::Deleting(meta_str(&object, "uid").to_owned()));
    }
    if resource == crd::resource() {
        crd::stored(inner, state, &object);
    }
    if kind.plural == "clusterroles" {
        rbac::aggregate(state);
    }
    admission::written(state, kind, meta_str(&object, "namespace"));
    apiservice::written(inner, state, &resource);
    object
}

/// Puts the metadata's fields in one order, so that equal objects print equally.
fn tidy(object: &mut Value) {
    meta_mut(object).sort_keys();
}
