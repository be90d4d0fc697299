//! Plain words that readers of YAML do not agree on.

use serde_json::Value;

use super::{ConfigError, documents};

/// A value that we read as text and other readers as something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguous {
    /// Where it is: `spec.template.spec.containers[0].env[0].value`.
    pub field: String,
    /// The text as we read it.
    pub text: String,
    /// What others take it for: `true`.
    pub others: String,
}

/// Finds the values of a file that YAML 1.1 readers (kubectl, Ansible) take for a boolean or a number. They should be
/// quoted, or written as the value that is meant.
pub fn ambiguous(file: &str, text: &str) -> Result<Vec<Ambiguous>, ConfigError> {
    let ours = documents(file, text)?;
    // What the second reader cannot read at all is not for us to judge.
    let Ok(theirs) = serde_saphyr::from_multiple::<Value>(text) else {
        return Ok(Vec::new());
    };
    let theirs: Vec<Value> = theirs.into_iter().filter(|value| !value.is_null()).collect();
    let mut found = Vec::new();
    if ours.len() == theirs.len() {
        for (ours, theirs) in ours.iter().zip(&theirs) {
            compare("", ours, theirs, &mut found);
        }
    }
    Ok(found)
}

fn compare(field: &str, ours: &Value, theirs: &Value, found: &mut Vec<Ambiguous>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                if let Some(other) = theirs.get(key) {
                    let dot = if field.is_empty() { "" } else { "." };
                    compare(&format!("{field}{dot}{key}"), value, other, found);
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for (at, (value, other)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{field}[{at}]"), value, other, found);
            }
        }
        (Value::String(text), Value::Bool(_) | Value::Number(_)) => {
            found.push(Ambiguous { field: field.to_owned(), text: text.clone(), others: theirs.to_string() });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_change_their_type_are_found_and_quoted_ones_are_not() {
        let text = "env: [{name: FLAG, value: on}, {name: B, value: \"on\"}]\nreadOnly: yes\nmode: 0755\nid: abc\n";
        let fields: Vec<String> = ambiguous("x.yaml", text)
            .unwrap()
            .into_iter()
            .map(|found| format!("{}={}", found.field, found.text))
            .collect();
        assert_eq!(fields, ["env[0].value=on", "readOnly=yes", "mode=0755"]);
    }
}
