//! Filters that do as Ansible's.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use regex::Regex;
use serde_json::Value as Json;

/// What `omit` is, wherever it is passed along.
const OMIT: &str = "__tbx_omit_this__";

pub(super) fn is_omit(value: &Value) -> bool {
    value.as_str() == Some(OMIT)
}

pub(super) fn omit_in_text() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        "`omit` has no meaning in a text; only a manifest's key or item can be omitted",
    )
}

pub(super) fn add_to(env: &mut Environment<'_>) {
    env.add_global("omit", OMIT);
    env.add_filter("to_json", |value: &Value| json(value, None));
    env.add_filter("to_nice_json", |value: &Value| json(value, Some(4)));
    env.add_filter("bool", boolean);
    env.add_filter("regex_replace", regex_replace);
    env.add_filter("mandatory", mandatory);
}

/// In a manifest, text keeps its place by itself; only what is YAML already has to be indented.
pub(super) fn add_for_objects(env: &mut Environment<'_>) {
    env.add_filter("indent", |value: &Value, width: Option<usize>, options: Kwargs| -> Result<Value, Error> {
        let width = options.get::<Option<usize>>("width")?.or(width).unwrap_or(4);
        let first = options.get::<Option<bool>>("first")?.unwrap_or(false);
        options.assert_all_used()?;
        if !value.is_safe() {
            return Ok(value.clone());
        }
        let pad = " ".repeat(width);
        let text = value.to_string().replace('\n', &format!("\n{pad}"));
        let text = if first { format!("{pad}{text}") } else { text };
        Ok(Value::from_safe_string(text))
    });
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

/// Python's spacing and ASCII only, as Ansible writes it; `to_nice_json` also sorts the keys.
fn json(value: &Value, indent: Option<usize>) -> Result<Value, Error> {
    let value = serde_json::to_value(value).map_err(|error| invalid(format!("cannot be written as JSON: {error}")))?;
    let mut text = String::new();
    write_json(&value, indent, 0, &mut text);
    Ok(Value::from_safe_string(text))
}

fn write_json(value: &Json, indent: Option<usize>, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        if let Some(indent) = indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    match value {
        Json::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { comma } else { "" });
                line(depth + 1, out);
                write_json(item, indent, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        Json::Object(map) if !map.is_empty() => {
            let mut entries: Vec<_> = map.iter().collect();
            if indent.is_some() {
                entries.sort_by_key(|(key, _)| *key);
            }
            out.push('{');
            for (at, (key, item)) in entries.into_iter().enumerate() {
                out.push_str(if at > 0 { comma } else { "" });
                line(depth + 1, out);
                write_json(&Json::from(key.as_str()), indent, depth + 1, out);
                out.push_str(": ");
                write_json(item, indent, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        other => {
            for unit in other.to_string().chars() {
                if unit.is_ascii() {
                    out.push(unit);
                } else {
                    let mut buffer = [0; 2];
                    for half in unit.encode_utf16(&mut buffer) {
                        out.extend(format!("\\u{half:04x}").chars());
                    }
                }
            }
        }
    }
}

/// Ansible's word list: everything else is false, and nothing stays nothing.
fn boolean(value: &Value) -> Result<Value, Error> {
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::Bool | ValueKind::None => value.clone(),
        ValueKind::String => {
            let word = value.as_str().unwrap_or_default().to_lowercase();
            Value::from(matches!(word.as_str(), "yes" | "on" | "1" | "true"))
        }
        _ => Value::from(*value == Value::from(1)),
    })
}

/// Python's back-references, and an error for patterns that only Python knows.
fn regex_replace(value: &Value, pattern: String, replacement: Option<String>) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let regex = Regex::new(&pattern).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim().to_owned();
        invalid(format!("the pattern `{pattern}` cannot be used: {reason}"))
    })?;
    let replacement = rust_replacement(&replacement.unwrap_or_default());
    Ok(regex.replace_all(&value.to_string(), replacement.as_str()).into_owned())
}

/// `\1` and `\g<1>` to `${1}`; a dollar sign means itself.
fn rust_replacement(python: &str) -> String {
    let mut rust = String::new();
    let mut rest = python.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '$' => rust.push_str("$$"),
            '\\' => match rest.next() {
                Some('g') if rest.peek() == Some(&'<') => {
                    rest.next();
                    let name: String = rest.by_ref().take_while(|letter| *letter != '>').collect();
                    rust.extend(["${", &name, "}"]);
                }
                Some(digit) if digit.is_ascii_digit() => {
                    let mut number = digit.to_string();
                    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                        number.push(digit);
                    }
                    rust.extend(["${", &number, "}"]);
                }
                Some('n') => rust.push('\n'),
                Some('t') => rust.push('\t'),
                Some(other) => rust.push(other),
                None => rust.push('\\'),
            },
            other => rust.push(other),
        }
    }
    rust
}

fn mandatory(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(value.clone())
}
