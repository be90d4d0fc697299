//! Reading YAML, with errors that name file, line and field.

use std::path::Path;

use serde::Deserialize as _;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::Value;

use super::ConfigError;
use super::strict::Strict;

/// The text of a file. `what` is what it is for: `cluster policy patch`.
pub fn read_file(path: &Path, what: &str) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|error| {
        ConfigError::file(path.display().to_string(), format!("the {what} cannot be read: {}", plain(&error)))
    })
}

/// An I/O error without Rust's `(os error 2)`.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.to_lowercase()
}

/// Reads our own configuration into a type, which should deny unknown fields. `file` is named in errors.
pub fn typed<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ConfigError> {
    with_seed(file, text, std::marker::PhantomData)
}

/// Reads with a seed, for shapes that are known only when the program runs.
pub fn with_seed<'de, S: DeserializeSeed<'de>>(file: &str, text: &'de str, seed: S) -> Result<S::Value, ConfigError> {
    seed.deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| from_yaml(file, &error))
}

/// All documents of a file as JSON; empty ones are left out. A key given twice is an error.
pub fn documents(file: &str, text: &str) -> Result<Vec<Value>, ConfigError> {
    let mut documents = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let Strict(value) = Strict::deserialize(document).map_err(|error| from_yaml(file, &error))?;
        if !value.is_null() {
            documents.push(value);
        }
    }
    Ok(documents)
}

/// The crate prints `path: message at line L column C`; the parts are wanted one by one.
pub(super) fn from_yaml(file: &str, error: &serde_yaml::Error) -> ConfigError {
    let line = error.location().map(|location| location.line());
    let mut text = error.to_string();
    if let Some(location) = error.location() {
        let place = format!(" at line {} column {}", location.line(), location.column());
        text = text.replace(&place, "");
    }
    let (field, problem) = split_path(&text);
    let mut wrong = ConfigError::file(file, problem).at(field, line);
    if text.contains("unknown field") && text.contains("expected one of") {
        "use one of the fields that are listed".clone_into(&mut wrong.help);
    }
    wrong
}

/// Splits `a.b[0]: message`. A path has no blanks, and the message of a syntax error has no path.
fn split_path(text: &str) -> (&str, &str) {
    match text.split_once(": ") {
        Some((path, message))
            if !path.is_empty()
                && path.chars().all(|letter| letter.is_alphanumeric() || "._-[]\\".contains(letter)) =>
        {
            (path, message)
        }
        _ => ("", text),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn one(text: &str) -> Value {
        documents("x.yaml", text).unwrap().remove(0)
    }

    #[test]
    fn plain_words_of_yaml_1_1_are_text_and_numbers_are_those_of_1_2() {
        let text = "a: yes\nb: no\nc: on\nd: off\ne: y\nf: n\ng: tRuE\nh: 0755\ni: 08\nj: 1_000\nk: 12:30\nl: true\nm: 12\nn: 1.5\no: ~\np: 0x1F\nq: 0o755\n";
        assert_eq!(
            one(text),
            json!({
                "a": "yes", "b": "no", "c": "on", "d": "off", "e": "y", "f": "n", "g": "tRuE",
                "h": "0755", "i": "08", "j": "1_000", "k": "12:30", "l": true, "m": 12, "n": 1.5,
                "o": null, "p": 31, "q": 493
            })
        );
    }

    #[test]
    fn a_version_keeps_its_zero_where_text_is_wanted() {
        #[derive(Deserialize)]
        struct Version {
            channel: String,
        }
        let version: Version = typed("x.yaml", "channel: 4.10").unwrap();
        assert_eq!(version.channel, "4.10");
    }

    #[test]
    fn empty_documents_are_left_out_and_bases_are_merged() {
        assert_eq!(documents("x", "a: 1\n---\n---\nb: 2\n").unwrap(), [json!({"a": 1}), json!({"b": 2})]);
        assert_eq!(
            one("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n"),
            json!({"base": {"x": 1, "y": 2}, "use": {"y": 3, "x": 1}})
        );
    }

    #[test]
    fn what_would_be_lost_is_refused_with_its_line() {
        let twice = documents("x.yaml", "a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!(twice.problem, "the key `a` is given twice");
        assert!(twice.line.is_some(), "{twice:?}");
        let infinite = documents("x.yaml", "a:\n  b: .inf\n").unwrap_err();
        assert!(infinite.to_string().contains("not finite"), "{infinite}");
    }

    #[test]
    fn errors_name_file_line_and_field() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Inner {
            #[expect(dead_code, reason = "read only by serde")]
            replicas: u32,
        }
        #[derive(Debug, Deserialize)]
        struct Outer {
            #[expect(dead_code, reason = "read only by serde")]
            sets: Vec<Inner>,
        }
        let error = typed::<Outer>("s.yaml", "sets:\n- replicas: many\n").unwrap_err();
        assert_eq!((error.line, error.field.as_str()), (Some(2), "sets[0].replicas"));
        assert_eq!(
            error.to_string(),
            "s.yaml: line 2, `sets[0].replicas`: invalid type: string \"many\", expected u32"
        );
        let error = typed::<Outer>("s.yaml", "sets:\n- replica: 1\n").unwrap_err();
        assert_eq!(error.to_string(), "s.yaml: line 2, `sets[0]`: unknown field `replica`, expected `replicas`");
        let error = typed::<Outer>("s.yaml", "sets: [\n").unwrap_err();
        assert!(error.line.is_some(), "{error:?}");
    }
}
