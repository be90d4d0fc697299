//! The numbers of the types' fields in protobuf, from the definitions that the Go modules ship.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::cargo;

/// The modules with definitions.
const MODULES: [&str; 4] =
    ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];

/// A field: its number, its name, and the message it holds if it holds one.
type Field = (u64, String, Option<String>);

/// For each type its fields, as `{"NUMBER": "name"}`. A message that JSON does not show as a field of its own stands
/// there as the same kind of map.
pub(super) fn numbers(types: &BTreeMap<String, Value>) -> Result<Map<String, Value>> {
    let mut messages: BTreeMap<String, Vec<Field>> = BTreeMap::new();
    for module in MODULES {
        let out = Command::new("go")
            .args(["list", "-m", "-f", "{{.Dir}}", module])
            .current_dir(cargo::root().join("testing/stack/go/main"))
            .output()
            .context("cannot start go")?;
        ensure!(out.status.success(), "{module}: {}", String::from_utf8_lossy(&out.stderr));
        let mut files = Vec::new();
        find(Path::new(String::from_utf8_lossy(&out.stdout).trim()), &mut files)?;
        for file in files {
            read(&std::fs::read_to_string(&file)?, &mut messages);
        }
    }
    Ok(types
        .keys()
        .filter_map(|name| messages.get(name).map(|fields| (name.clone(), fields_of(name, fields, types, &messages))))
        .collect())
}

fn fields_of(
    name: &str,
    fields: &[Field],
    types: &BTreeMap<String, Value>,
    messages: &BTreeMap<String, Vec<Field>>,
) -> Value {
    let properties = types.get(name).and_then(|schema| schema.get("properties"));
    let mut out = Map::new();
    for (number, field, message) in fields {
        let shown = properties.is_some_and(|properties| properties.get(field).is_some());
        let inner = message.as_ref().filter(|_| !shown).and_then(|message| messages.get(message).map(|f| (message, f)));
        let value = match inner {
            // Types that JSON does not know by name at all are looked up as their fields.
            Some((_, inner)) => {
                Value::Object(inner.iter().map(|(number, field, _)| (number.to_string(), json!(field))).collect())
            }
            None => json!(field),
        };
        out.insert(number.to_string(), value);
    }
    Value::Object(out)
}

fn find(folder: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, out)?;
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            out.push(path);
        }
    }
    Ok(())
}

/// Names as OpenAPI has them: `io.k8s.api.core.v1.Pod`.
fn open_name(name: &str) -> String {
    format!("io.{}", name.trim_start_matches('.').replacen("k8s.io", "k8s", 1).replace('_', "-"))
}

fn read(text: &str, out: &mut BTreeMap<String, Vec<Field>>) {
    let mut package = "";
    let mut message = None;
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["package", name] => package = name.trim_end_matches(';'),
            ["message", name, "{"] => {
                let name = open_name(&format!("{package}.{name}"));
                out.insert(name.clone(), Vec::new());
                message = Some(name);
            }
            ["}"] => message = None,
            [.., name, "=", number] if !line.starts_with("//") => {
                let Ok(number) = number.trim_end_matches(';').parse() else { continue };
                let kind = words.get(words.len().saturating_sub(4)).copied().unwrap_or_default();
                let held = if kind.starts_with('.') {
                    Some(open_name(kind))
                } else if kind.starts_with(|first: char| first.is_ascii_uppercase()) {
                    Some(open_name(&format!("{package}.{kind}")))
                } else {
                    None
                };
                if let Some(fields) = message.as_ref().and_then(|message| out.get_mut(message)) {
                    fields.push((number, (*name).to_owned(), held));
                }
            }
            _ => {}
        }
    }
}
