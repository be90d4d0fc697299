//! Templates: text as Jinja2 would print it, and manifests whose structure a value cannot change.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value as Printed, escape_formatter};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

use super::{ConfigError, documents, filters};

/// How printed values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The same bytes as Jinja2, whatever the file is called: templates that users bring.
    Plain,
    /// In files called `*.yaml.j2` every value is written as JSON, which is also YAML: our own templates.
    House,
}

/// Renders templates. Undefined names are errors, the last newline is kept, blocks take their newline with them.
#[derive(Debug)]
pub struct Templates {
    env: Environment<'static>,
}

impl Templates {
    /// Templates of one style.
    pub fn new(style: Style) -> Self {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .keep_trailing_newline(true)
            .build()
            .expect("invariant: the default delimiters are valid");
        env.set_syntax(syntax);
        env.set_auto_escape_callback(move |name| {
            if style == Style::House && name.ends_with(".yaml.j2") { AutoEscape::Json } else { AutoEscape::None }
        });
        env.set_formatter(|out, state, value| {
            if filters::is_omit(value) {
                return Err(filters::omit_in_text());
            }
            escape_formatter(out, state, value)
        });
        filters::add_to(&mut env);
        Self { env }
    }

    /// The text of a template. `name` is the file's, for errors and the style.
    pub fn text(&self, name: &str, template: &str, values: &impl Serialize) -> Result<String, ConfigError> {
        render(&self.env, name, template, values)
    }

    /// The documents of a YAML template. A value that stands alone keeps its type, one within text is text, and none
    /// can change the structure, whatever quotes, colons or newlines it holds. `{{ x | default(omit) }}` standing alone
    /// takes its key or item away.
    pub fn objects(&self, name: &str, template: &str, values: &impl Serialize) -> Result<Vec<Value>, ConfigError> {
        // Every printed value becomes a word that is harmless in YAML; the parsed result gets the values back.
        let printed: Arc<Mutex<Vec<Printed>>> = Arc::default();
        let mut env = self.env.clone();
        env.set_auto_escape_callback(|_| AutoEscape::None);
        let sink = printed.clone();
        env.set_formatter(move |out, state, value| {
            if value.is_undefined() || value.is_safe() {
                return escape_formatter(out, state, value);
            }
            let mut printed = sink.lock().unwrap_or_else(PoisonError::into_inner);
            out.write_str(&word(printed.len()))?;
            printed.push(value.clone());
            Ok(())
        });
        filters::add_for_objects(&mut env);
        let text = render(&env, name, template, values)?;
        let printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut objects = Vec::new();
        for document in documents(name, &text)? {
            objects.extend(fill(name, "", document, &printed)?);
        }
        Ok(objects)
    }
}

fn render(env: &Environment<'_>, name: &str, template: &str, values: &impl Serialize) -> Result<String, ConfigError> {
    env.render_named_str(name, template, Printed::from(minijinja::value::Serde(values)))
        .map_err(|error| wrong(name, &error))
}

fn wrong(name: &str, error: &minijinja::Error) -> ConfigError {
    let mut problem = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        problem = format!("{problem}: {inner}");
        source = inner.source();
    }
    // The crate adds ` (in name:line)`, which the error says itself.
    if let Some(at) = problem.find(&format!(" (in {name}:")) {
        let end = problem[at..].find(')').map_or(problem.len(), |end| at + end + 1);
        problem.replace_range(at..end, "");
    }
    ConfigError::file(name, problem).at("", error.line())
}

const WORD: &str = "tbxvalue";

fn word(index: usize) -> String {
    format!("{WORD}{index}x")
}

/// The number of a word, and what follows it.
fn split_word(text: &str) -> Option<(&str, usize, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find(WORD) {
        let start = from + at;
        let rest = &text[start + WORD.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Ok(index) = rest[..digits].parse()
            && let Some(rest) = rest[digits..].strip_prefix('x')
        {
            return Some((&text[..start], index, rest));
        }
        from = start + WORD.len();
    }
    None
}

/// Puts the values back; `None` when the whole is omitted.
fn fill(name: &str, field: &str, value: Value, printed: &[Printed]) -> Result<Option<Value>, ConfigError> {
    Ok(Some(match value {
        Value::String(text) => match split_word(&text) {
            Some(("", index, "")) => match printed.get(index) {
                Some(value) if filters::is_omit(value) => return Ok(None),
                Some(value) => typed(name, field, value)?,
                None => Value::String(text),
            },
            Some(_) => Value::String(join(name, field, &text, printed)?),
            None => Value::String(text),
        },
        Value::Array(items) => {
            let mut kept = Vec::new();
            for (at, item) in items.into_iter().enumerate() {
                kept.extend(fill(name, &format!("{field}[{at}]"), item, printed)?);
            }
            Value::Array(kept)
        }
        Value::Object(map) => {
            let mut kept = Map::new();
            for (key, value) in map {
                let key = join(name, field, &key, printed)?;
                let dot = if field.is_empty() { "" } else { "." };
                if let Some(value) = fill(name, &format!("{field}{dot}{key}"), value, printed)? {
                    kept.insert(key, value);
                }
            }
            Value::Object(kept)
        }
        other => other,
    }))
}

fn typed(name: &str, field: &str, value: &Printed) -> Result<Value, ConfigError> {
    serde_json::to_value(value)
        .map_err(|error| ConfigError::file(name, format!("a value cannot be written: {error}")).at(field, None))
}

fn join(name: &str, field: &str, text: &str, printed: &[Printed]) -> Result<String, ConfigError> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, index, after)) = split_word(rest) {
        whole.push_str(before);
        if let Some(value) = printed.get(index) {
            if filters::is_omit(value) {
                return Err(ConfigError::file(name, "`omit` within text")
                    .at(field, None)
                    .help("let the expression with default(omit) stand alone"));
            }
            if value.kind() != ValueKind::None {
                whole.push_str(&value.to_string());
            }
        }
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests;
