//! The forms in which a client may want an object: whole, metadata only, or as rows of a table.

mod cells;
mod columns;
mod pods;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    dispatch::Call,
    kinds::Column,
    read::{in_version, plain_list},
};
use crate::store::object::meta_str;

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
    rows(call, &columns, items, meta)
}

/// A scale as a row.
pub(super) fn shape_scale(call: &Call, scale: &Value) -> Value {
    if form(call) != Form::Table {
        return scale.clone();
    }
    let columns = columns::built_in("autoscaling", "scales", call.minor);
    rows(call, &columns, &[Arc::new(scale.clone())], json!({"resourceVersion": meta_str(scale, "resourceVersion")}))
}

/// The columns of the call's kind: a custom resource's own, after its name.
fn columns(call: &Call) -> Vec<Column> {
    if !call.kind.custom {
        return columns::built_in(&call.kind.group, &call.kind.plural, call.minor);
    }
    let mut out = vec![Column::new("Name", ".metadata.name")];
    let own = call.kind.version(&call.target.version).map(|version| version.columns.clone()).unwrap_or_default();
    if own.is_empty() {
        out.push(Column { kind: "date".into(), ..Column::new("Age", ".metadata.creationTimestamp") });
    }
    out.extend(own);
    out
}

fn rows(call: &Call, columns: &[Column], items: &[Arc<Value>], meta: Value) -> Value {
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            let format = if column.name == "Name" { "name" } else { "" };
            json!({
                "name": column.name, "type": column.kind,
                "format": format, "description": column.name, "priority": column.priority,
            })
        })
        .collect();
    let rows: Vec<Value> = items
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns
                .iter()
                .map(|column| {
                    if call.kind.custom && !column.path.starts_with('=') {
                        cells::custom(object, column, call.now)
                    } else {
                        cells::built_in(object, &column.path, call.now)
                    }
                })
                .collect();
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
