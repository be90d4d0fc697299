//! Takes secrets out of whole files, by their kind.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::secret::{MASK, Redactor, is_plain_word, is_secret_key};

/// The content without secrets. JSON and YAML stay what they are.
pub(super) fn file<'a>(redactor: &Redactor, path: &str, content: &'a [u8]) -> Cow<'a, [u8]> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "json" => {
            let Ok(mut value) = serde_json::from_slice::<Value>(content) else {
                return redactor.bytes(content);
            };
            if !redactor.json(&mut value) {
                return Cow::Borrowed(content);
            }
            let mut clean = serde_json::to_vec_pretty(&value).unwrap_or_default();
            clean.push(b'\n');
            Cow::Owned(clean)
        }
        "yaml" | "yml" => match std::str::from_utf8(content) {
            Ok(text) => Cow::Owned(redactor.bytes(yaml(redactor, text).as_bytes()).into_owned()),
            Err(_) => redactor.bytes(content),
        },
        _ => redactor.bytes(content),
    }
}

/// YAML with the data of Secret objects replaced by their length, and the values of secret keys and variables masked.
fn yaml(redactor: &Redactor, text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for document in text.split_inclusive("\n---") {
        let is_secret = document.lines().any(|line| {
            let line = line.trim_start_matches(['-', ' ']);
            line.strip_prefix("kind:").is_some_and(|kind| unquoted(kind) == "Secret")
        });
        Document { redactor, clean: &mut clean, is_secret, below: None, variable: None }.mask(document);
    }
    clean
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

/// A block whose lines are masked.
#[derive(Clone, Copy)]
struct Below {
    /// It ends at a line that begins at this column or before it.
    column: usize,
    /// The column of the keys that are kept, in a Secret's data; none in a masked value of several lines.
    keys: Option<usize>,
    data: bool,
}

struct Document<'a> {
    redactor: &'a Redactor,
    clean: &'a mut String,
    is_secret: bool,
    below: Option<Below>,
    /// The column of a `name:` that names a secret variable; its `value:` stands at the same one.
    variable: Option<usize>,
}

impl Document<'_> {
    fn mask(mut self, document: &str) {
        for line in document.split_inclusive('\n') {
            let body = line.trim_end();
            let column = body.len() - body.trim_start_matches([' ', '-']).len();
            if body.trim().is_empty() {
                self.clean.push_str(line);
            } else if body.trim_start_matches('-').is_empty() {
                self.below = None;
                self.clean.push_str(line);
            } else if !self.inside(body, column) {
                self.line(line, body, column);
            }
        }
    }

    /// Whether the line belongs to a masked block, and was dealt with.
    fn inside(&mut self, body: &str, column: usize) -> bool {
        let Some(mut below) = self.below.filter(|below| column > below.column) else {
            self.below = None;
            return false;
        };
        if below.data {
            let keys = *below.keys.get_or_insert(column);
            self.below = Some(below);
            if column == keys
                && let Some((key, value)) = body.split_once(':')
            {
                let _ = writeln!(self.clean, "{key}: '{MASK} ({} bytes)'", value.trim().len());
            }
        }
        true
    }

    /// A line that holds an object as text, quoted or in a block of its own, when there are secrets in it.
    fn nested(&self, body: &str) -> Option<String> {
        let start = body.find(['{', '['])?;
        let (before, text) = body.split_at(start);
        let quoted = before.ends_with('\'');
        let mut text = if quoted { text.strip_suffix('\'')?.replace("''", "'") } else { text.to_owned() };
        if !self.redactor.nested(&mut text) {
            return None;
        }
        Some(if quoted { format!("{before}{}'", text.replace('\'', "''")) } else { format!("{before}{text}") })
    }

    fn line(&mut self, line: &str, body: &str, column: usize) {
        if let Some(clean) = self.nested(body) {
            let _ = writeln!(self.clean, "{clean}");
            return;
        }
        let Some((key, value)) = body[column..].split_once(':') else {
            self.clean.push_str(line);
            return;
        };
        let key = unquoted(key);
        let several_lines = matches!(value.trim(), "|" | ">" | "|-" | ">-" | "|+" | ">+");
        let is_variable = key == "value" && self.variable == Some(column);
        if self.is_secret && matches!(key, "data" | "stringData") {
            if value.trim().is_empty() {
                self.clean.push_str(line);
                self.below = Some(Below { column, keys: None, data: true });
            } else {
                let _ = writeln!(self.clean, "{}{key}: {{}} # {MASK}", &body[..column]);
                self.below = Some(Below { column, keys: None, data: false });
            }
        } else if (is_secret_key(key) || is_variable) && !is_plain_word(unquoted(value)) {
            let _ = writeln!(self.clean, "{}{key}: '{MASK}'", &body[..column]);
            self.below = several_lines.then_some(Below { column, keys: None, data: false });
        } else {
            self.clean.push_str(line);
        }
        if key == "name" {
            self.variable = is_secret_key(unquoted(value)).then_some(column);
        }
    }
}
