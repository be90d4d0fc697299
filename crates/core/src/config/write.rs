//! Writing YAML that every reader reads back the same.

use serde::Serialize;
use serde_saphyr::{SerializerOptions, ser_options};

use super::ConfigError;

fn options() -> SerializerOptions {
    ser_options! {
        // A folded line is one more thing that a diff of two runs would show.
        folded_wrap_chars: usize::MAX,
    }
}

/// One document. Words that YAML 1.1 readers take for something else are quoted.
pub fn to_yaml(value: &impl Serialize) -> Result<String, ConfigError> {
    serde_saphyr::to_string_with_options(value, options()).map_err(unwritable)
}

/// Several documents, `---` between them.
pub fn to_yaml_documents<T: Serialize>(values: &[T]) -> Result<String, ConfigError> {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push_str("---\n");
        }
        text.push_str(&to_yaml(value)?);
    }
    Ok(text)
}

fn unwritable(error: impl std::fmt::Display) -> ConfigError {
    ConfigError::file("output", format!("cannot be written as YAML: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::documents;

    /// Every text that some reader takes for something else, and how we write it.
    #[test]
    fn doubtful_words_are_quoted() {
        let words = [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "Yes",
            "NO",
            "true",
            "null",
            "~",
            "",
            "12:30",
            "=",
            "1_000",
            "0755",
            "0o17",
            "0x1F",
            "4.10",
            "1e3",
            ".inf",
            "2026-01-01",
            "<<",
            "- a",
            "a: b",
            "a #b",
            "#a",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "'a",
            "\"a",
            " a",
            "a ",
            "-",
            "?",
            "|",
            ">",
        ];
        for word in words {
            let text = to_yaml(&json!({ "k": word })).unwrap();
            let value = text.trim_end().strip_prefix("k: ").unwrap();
            assert!(value.starts_with('"') || value.starts_with('\''), "`{word}` is written as {value}");
            assert_eq!(documents("x", &text).unwrap(), [json!({ "k": word })], "{text}");
        }
    }

    #[test]
    fn doubtful_keys_are_quoted_too() {
        assert_eq!(
            to_yaml(&json!({"yes": 1, "4.10": 2, "plain": 3, "y": 4, "null": 5})).unwrap(),
            "\"yes\": 1\n\"4.10\": 2\nplain: 3\n\"y\": 4\n\"null\": 5\n"
        );
    }

    #[test]
    fn plain_words_stay_plain_and_types_stay_types() {
        assert_eq!(
            to_yaml(&json!({
                "a": "stable", "b": "v1.9.0", "c": 4, "d": true, "e": null, "f": [], "g": {}, "h": 0.5,
                "image": "nvcr.io/nvidia/gpu-operator:v1.11.1", "l": ["x", {"y": 1}]
            }))
            .unwrap(),
            "a: stable\nb: v1.9.0\nc: 4\nd: true\ne: null\nf: []\ng: {}\nh: 0.5\nimage: nvcr.io/nvidia/gpu-operator:v1.11.1\nl:\n- x\n- \"y\": 1\n"
        );
    }

    #[test]
    fn text_of_several_lines_is_a_block_and_long_lines_are_not_folded() {
        let long = "word ".repeat(60);
        let value = json!({"script": "#!/bin/sh\necho hi\n", "long": long.trim(), "tab": "a\tb", "cr": "a\r\nb"});
        let text = to_yaml(&value).unwrap();
        assert!(text.starts_with("script: |\n  #!/bin/sh\n  echo hi\nlong: word word"), "{text}");
        assert_eq!(documents("x", &text).unwrap(), [value]);
    }

    #[test]
    fn several_documents_are_read_back_as_such() {
        let values = [json!({"a": 1}), json!({"b": [1, 2]})];
        let text = to_yaml_documents(&values).unwrap();
        assert_eq!(text, "a: 1\n---\nb:\n- 1\n- 2\n");
        assert_eq!(documents("x", &text).unwrap(), values);
    }
}
