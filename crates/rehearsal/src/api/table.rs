//! The forms in which a client may want an object: whole, metadata only, or as rows of a table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    dispatch::Call,
    kinds::Column,
    read::{in_version, plain_list},
};
use crate::store::object::{at, meta, meta_str};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Metadata,
    Table,
}

fn form(call: &Call) -> Form {
    for one in call.accept.split(',') {
        if one.contains("as=Table") {
            return Form::Table;
        }
        if one.contains("as=PartialObjectMetadata") {
            return Form::Metadata;
        }
        if one.trim().starts_with("application/json") {
            return Form::Whole;
        }
    }
    Form::Whole
}

/// One object in the form asked for.
pub(super) fn shape(call: &Call, object: &Value) -> Value {
    match form(call) {
        Form::Whole => object.clone(),
        Form::Metadata => partial(object),
        Form::Table => {
            table(call, &[Arc::new(object.clone())], json!({"resourceVersion": meta_str(object, "resourceVersion")}))
        }
    }
}

/// A list of objects in the form asked for.
pub(super) fn shape_list(call: &Call, items: &[Arc<Value>], meta: Map<String, Value>) -> Value {
    match form(call) {
        Form::Whole => plain_list(call, items, meta),
        Form::Metadata => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
            "items": items.iter().map(|item| partial(item)).collect::<Vec<_>>(),
        }),
        Form::Table => table(call, items, Value::Object(meta)),
    }
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.get("metadata")})
}

fn table(call: &Call, items: &[Arc<Value>], meta: Value) -> Value {
    let columns = columns(call);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            let format = if column.name == "Name" { "name" } else { "" };
            json!({
                "name": column.name, "type": if column.kind == "date" { "string" } else { &column.kind },
                "format": format, "description": column.name, "priority": column.priority,
            })
        })
        .collect();
    let rows: Vec<Value> = items
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns.iter().map(|column| cell(call, object, column)).collect();
            let mut row = json!({"cells": cells});
            match call.query.get("includeObject") {
                "None" => {}
                "Object" => row["object"] = in_version(call, object),
                _ => row["object"] = partial(object),
            }
            row
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": definitions, "rows": rows,
    })
}

fn columns(call: &Call) -> Vec<Column> {
    let age = Column { kind: "date".into(), ..Column::new("Age", ".metadata.creationTimestamp") };
    let mut out = vec![Column::new("Name", ".metadata.name")];
    let own = call.kind.version(&call.target.version).map(|version| version.columns.clone()).unwrap_or_default();
    let built_in: &[(&str, &str)] = match (call.kind.group.as_str(), call.kind.plural.as_str()) {
        ("", "pods") => {
            &[("Ready", "=ready"), ("Status", "=pod"), ("Restarts", "=restarts"), ("Node", ".spec.nodeName")]
        }
        ("", "nodes") => &[("Status", "=node"), ("Roles", "=roles"), ("Version", ".status.nodeInfo.kubeletVersion")],
        ("", "namespaces") => &[("Status", ".status.phase")],
        ("", "services") => &[("Type", ".spec.type"), ("Cluster-IP", ".spec.clusterIP")],
        ("", "secrets") => &[("Type", ".type")],
        ("", "events") => &[("Type", ".type"), ("Reason", ".reason"), ("Object", "=involved"), ("Message", ".message")],
        ("apps", "deployments" | "statefulsets") => &[
            ("Ready", "=replicas"),
            ("Up-to-date", ".status.updatedReplicas"),
            ("Available", ".status.availableReplicas"),
        ],
        ("apps", "replicasets") => {
            &[("Desired", ".spec.replicas"), ("Current", ".status.replicas"), ("Ready", ".status.readyReplicas")]
        }
        ("apps", "daemonsets") => &[
            ("Desired", ".status.desiredNumberScheduled"),
            ("Current", ".status.currentNumberScheduled"),
            ("Ready", ".status.numberReady"),
            ("Up-to-date", ".status.updatedNumberScheduled"),
            ("Available", ".status.numberAvailable"),
        ],
        ("batch", "jobs") => &[("Completions", "=completions")],
        _ => &[],
    };
    out.extend(own.iter().cloned());
    out.extend(built_in.iter().map(|(name, path)| {
        let counts = path.starts_with(".status.") && call.kind.group == "apps" || *path == ".spec.replicas";
        let wide = i64::from(*path == ".spec.nodeName");
        let kind = if counts { "integer" } else { "string" };
        Column { kind: kind.into(), priority: wide, ..Column::new(name, path) }
    }));
    if own.is_empty() {
        out.push(age);
    }
    out
}

fn cell(call: &Call, object: &Value, column: &Column) -> Value {
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    match column.path.as_str() {
        "=replicas" => format!("{}/{}", number("status.readyReplicas"), number("spec.replicas")).into(),
        "=completions" => format!("{}/{}", number("status.succeeded"), number("spec.completions")).into(),
        "=ready" => {
            let statuses = at(object, "status.containerStatuses").and_then(Value::as_array);
            let ready =
                statuses.into_iter().flatten().filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
            let all = at(object, "spec.containers").and_then(Value::as_array).map_or(0, Vec::len);
            format!("{ready}/{all}").into()
        }
        "=restarts" => {
            let statuses = at(object, "status.containerStatuses").and_then(Value::as_array);
            statuses.into_iter().flatten().filter_map(|status| status.get("restartCount")?.as_i64()).sum::<i64>().into()
        }
        "=pod" => pod_status(object).into(),
        "=node" => node_status(object).into(),
        "=roles" => {
            let labels = meta(object, "labels").and_then(Value::as_object);
            let names =
                labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
            let roles = names.collect::<Vec<_>>().join(",");
            if roles.is_empty() { "<none>".into() } else { roles.into() }
        }
        "=involved" => {
            let text = |path: &str| at(object, path).and_then(Value::as_str).unwrap_or_default();
            format!("{}/{}", text("involvedObject.kind").to_lowercase(), text("involvedObject.name")).into()
        }
        path => {
            let value = lookup(object, path);
            if column.kind == "date" {
                return value.and_then(Value::as_str).map_or("<unknown>".into(), |text| age(text, call.now).into());
            }
            match (value, column.kind.as_str()) {
                (Some(value), _) => value.clone(),
                (None, "integer") if !call.kind.custom => 0.into(),
                (None, _) if !call.kind.custom => "<none>".into(),
                (None, _) => Value::Null,
            }
        }
    }
}

/// A JSON path with names, indices, and filters such as `[?(@.type=="Ready")]`.
fn lookup<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = object;
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, tail) = after.split_once(']')?;
            rest = tail.trim_start_matches('.');
            here = if let Some(filter) = inside.strip_prefix("?(@.").and_then(|filter| filter.strip_suffix(')')) {
                let (name, wanted) = filter.split_once("==")?;
                let wanted = wanted.trim().trim_matches(['\'', '"']);
                here.as_array()?.iter().find(|item| item.get(name.trim()).and_then(Value::as_str) == Some(wanted))?
            } else {
                match inside.parse::<usize>() {
                    Ok(index) => here.get(index)?,
                    Err(_) => here.get(inside.trim_matches(['\'', '"']))?,
                }
            };
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, tail) = rest.split_at(end);
        here = here.get(name)?;
        rest = tail.trim_start_matches('.');
    }
    Some(here)
}

fn pod_status(pod: &Value) -> String {
    let phase = at(pod, "status.phase").and_then(Value::as_str).unwrap_or("Unknown");
    if crate::store::object::is_deleting(pod) {
        return "Terminating".into();
    }
    let statuses = at(pod, "status.containerStatuses").and_then(Value::as_array);
    let reason = statuses.into_iter().flatten().find_map(|status| {
        let waiting = at(status, "state.waiting.reason").and_then(Value::as_str);
        waiting.or_else(|| at(status, "state.terminated.reason").and_then(Value::as_str))
    });
    reason.unwrap_or(phase).to_owned()
}

fn node_status(node: &Value) -> String {
    let conditions = at(node, "status.conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|one| {
        one.get("type").and_then(Value::as_str) == Some("Ready")
            && one.get("status").and_then(Value::as_str) == Some("True")
    });
    let off = at(node, "spec.unschedulable").and_then(Value::as_bool).unwrap_or(false);
    format!("{}{}", if ready { "Ready" } else { "NotReady" }, if off { ",SchedulingDisabled" } else { "" })
}

fn age(text: &str, now: Timestamp) -> String {
    let Ok(then) = text.parse::<Timestamp>() else { return "<invalid>".into() };
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
