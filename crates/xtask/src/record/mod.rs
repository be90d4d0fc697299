//! `cargo xtask record-types`: what a real server says of its types, for the rehearsal.
//!
//! Two files are written into `crates/rehearsal/data`: the types (schemas without their descriptions, and the numbers of
//! their fields in protobuf), which every write reads, and the descriptions, which only `kubectl explain` and its like
//! read. Types that are reached from no kind of the groups recorded are left out.

mod proto;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Map, Value, json};
use testing_stack::Stack;

use crate::cargo;

/// Which server to ask.
#[derive(Args)]
pub(crate) struct RecordArgs {
    /// The stack's name; it should be of the newest Kubernetes and a control plane alone.
    #[arg(long, default_value = "default")]
    name: String,
}

/// Groups of which no tool asks anything.
const LEFT_OUT: [&str; 2] = ["resource.k8s.io", "flowcontrol.apiserver.k8s.io"];

/// The start of a reference to a type.
const REFERENCE: &str = "#/components/schemas/";

/// Best compression: it is paid for once.
const LEVEL: u8 = 10;

pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    let stack = Stack::find(&args.name).with_context(|| format!("no stack `{}` is up", args.name))?;
    let ask = |path: &str| -> Result<Value> {
        let out = Command::new(stack.kubectl()?)
            .args(["get", "--raw", path])
            .env("KUBECONFIG", stack.kubeconfig())
            .output()
            .context("cannot start kubectl")?;
        ensure!(out.status.success(), "{path}: {}", String::from_utf8_lossy(&out.stderr));
        Ok(serde_json::from_slice(&out.stdout)?)
    };
    let index = ask("/openapi/v3")?;
    let mut types: BTreeMap<String, Value> = BTreeMap::new();
    for (place, entry) in index["paths"].as_object().into_iter().flatten() {
        if !is_wanted(place) {
            continue;
        }
        let document = ask(entry["serverRelativeURL"].as_str().context("an index without addresses")?)?;
        for (name, schema) in document.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten() {
            types.insert(name.clone(), schema.clone());
        }
    }
    ensure!(!types.is_empty(), "the server tells nothing of its types");
    let types = reached(&types);
    let numbers = proto::numbers(&types)?;
    let mut texts = BTreeSet::new();
    for schema in types.values() {
        collect(schema, &mut texts);
    }
    let texts: Vec<String> = texts.into_iter().collect();
    let places: BTreeMap<&str, usize> = texts.iter().enumerate().map(|(place, text)| (text.as_str(), place)).collect();
    let schemas: Map<String, Value> =
        types.iter().map(|(name, schema)| (name.clone(), numbered(schema, &places))).collect();
    write("types.json.deflate", &json!({"schemas": schemas, "protobuf": numbers}).to_string())?;
    write("descriptions.json.deflate", &json!(texts).to_string())?;
    cargo::say(&format!("{} types", types.len()));
    Ok(())
}

/// Stable versions only: `api/v1`, `apis/GROUP/v2`.
fn is_wanted(place: &str) -> bool {
    let parts: Vec<&str> = place.split('/').collect();
    let (group, version) = match parts.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return false,
    };
    let stable = version.strip_prefix('v').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    stable && !LEFT_OUT.contains(&group)
}

/// The types of kinds and what they are made of.
fn reached(types: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let kinds = types.iter().filter(|(name, schema)| {
        schema.get("x-kubernetes-group-version-kind").is_some() && !name.ends_with("List")
            || name.ends_with("v1.Status")
    });
    let mut open: Vec<String> = kinds.map(|(name, _)| name.clone()).collect();
    let mut out = BTreeMap::new();
    while let Some(name) = open.pop() {
        let Some(schema) = types.get(&name) else { continue };
        if out.insert(name, schema.clone()).is_none() {
            references(schema, &mut open);
        }
    }
    out
}

fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value.as_str().filter(|_| name == "$ref") {
                    Some(text) => out.extend(text.strip_prefix(REFERENCE).map(str::to_owned)),
                    None => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

fn collect(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value.as_str().filter(|_| name == "description") {
                    Some(text) => drop(out.insert(text.to_owned())),
                    None => collect(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        _ => {}
    }
}

/// A schema with the places of its descriptions instead of the descriptions.
fn numbered(value: &Value, places: &BTreeMap<&str, usize>) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| {
                    let place = value.as_str().filter(|_| name == "description").and_then(|text| places.get(text));
                    (name.clone(), place.map_or_else(|| numbered(value, places), |place| json!(place)))
                })
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| numbered(item, places)).collect(),
        other => other.clone(),
    }
}

fn write(name: &str, text: &str) -> Result<()> {
    let path = cargo::root().join("crates/rehearsal/data").join(name);
    let packed = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), LEVEL);
    cargo::say(&format!("{name}: {} bytes of {}", packed.len(), text.len()));
    std::fs::write(&path, packed).with_context(|| format!("cannot write {}", path.display()))
}
