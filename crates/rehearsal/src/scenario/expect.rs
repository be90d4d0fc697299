//! What a scenario's run has to end with, and whether one did.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use toolbox_engine::FailureVerdict;
use toolbox_engine::run::RunResult;

/// What a run has to end with. What is not said may be anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Expect {
    /// The verb and its arguments, in one line or as a list: what runs when no verb is named. Only then is the rest
    /// looked at. Without it, the rest is about whatever verb runs.
    #[serde(deserialize_with = "words")]
    #[schemars(schema_with = "words_schema")]
    pub command: Vec<String>,
    /// How the run ends.
    pub result: Option<RunResult>,
    /// Its exit code.
    pub exit_code: Option<u8>,
    /// Whose fault it is, when it does not pass.
    pub verdict: Option<FailureVerdict>,
    /// A part of the first line: of the failure, or of the result when it passes.
    pub first_line: Option<String>,
    /// How long it takes, in seconds of the cluster.
    pub makespan: Option<Bounds>,
}

/// The least and the greatest value that is right; absent means no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Its result.
    pub result: RunResult,
    /// Its exit code.
    pub exit_code: u8,
    /// Whose fault it was, when it did not pass.
    pub verdict: Option<FailureVerdict>,
    /// The first line of the failure or of the result.
    pub first_line: String,
    /// How long it took, in seconds of the cluster.
    pub makespan: f64,
}

impl Expect {
    /// Whether anything is said besides the command.
    pub fn is_about_something(&self) -> bool {
        *self != Self { command: self.command.clone(), ..Self::default() }
    }

    /// Whether the run is meant not to pass.
    pub fn is_failure(&self) -> bool {
        self.result.is_some_and(|result| !matches!(result, RunResult::Passed | RunResult::Skipped))
            || self.exit_code.is_some_and(|code| code != 0)
            || self.verdict.is_some()
    }

    /// What was not as expected, in one line; nothing when all was.
    pub fn mismatch(&self, ending: &Ending) -> Option<String> {
        let mut found = Vec::new();
        let mut differs = |what: &str, expected: String, got: String| {
            found.push(format!("{what}: expected {expected}, got {got}"));
        };
        if let Some(result) = self.result.filter(|result| *result != ending.result) {
            differs("result", name(&result), name(&ending.result));
        }
        if let Some(code) = self.exit_code.filter(|code| *code != ending.exit_code) {
            differs("exit code", code.to_string(), ending.exit_code.to_string());
        }
        if let Some(verdict) = self.verdict.filter(|verdict| Some(*verdict) != ending.verdict) {
            let got = ending.verdict.map_or_else(|| "none".to_owned(), |verdict| name(&verdict));
            differs("verdict", name(&verdict), got);
        }
        if let Some(part) = self.first_line.as_ref().filter(|part| !ending.first_line.contains(part.as_str())) {
            differs("first line", format!("one with `{part}`"), format!("`{}`", ending.first_line));
        }
        if let Some(bounds) = self.makespan {
            let got = format!("{} s", ending.makespan);
            if let Some(min) = bounds.min.filter(|min| ending.makespan < *min) {
                differs("makespan", format!("at least {min} s"), got.clone());
            }
            if let Some(max) = bounds.max.filter(|max| ending.makespan > *max) {
                differs("makespan", format!("at most {max} s"), got);
            }
        }
        (!found.is_empty()).then(|| found.join("; "))
    }
}

/// A value as files spell it.
fn name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(Words)
}

fn words_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
}

struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a verb with its arguments, in one line or as a list")
    }
    fn visit_str<E: Error>(self, line: &str) -> Result<Vec<String>, E> {
        Ok(line.split_whitespace().map(ToOwned::to_owned).collect())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(value: serde_json::Value) -> Expect {
        serde_json::from_value(value).unwrap()
    }

    fn failed() -> Ending {
        Ending {
            result: RunResult::Failed,
            exit_code: 1,
            verdict: Some(FailureVerdict::Capacity),
            first_line: "error: Machine/a/b: no stock".to_owned(),
            makespan: 12.5,
        }
    }

    #[test]
    fn what_is_not_said_may_be_anything() {
        assert_eq!(expect(serde_json::json!({})).mismatch(&failed()), None);
        let all = serde_json::json!({
            "command": "cluster scale x 1", "result": "failed", "exitCode": 1, "verdict": "capacity",
            "firstLine": "no stock", "makespan": {"min": 12, "max": 13},
        });
        assert_eq!(expect(all.clone()).mismatch(&failed()), None);
        assert_eq!(expect(all).command, ["cluster", "scale", "x", "1"]);
        assert_eq!(expect(serde_json::json!({"command": ["a b", "c"]})).command, ["a b", "c"]);
    }

    #[test]
    fn each_difference_says_what_was_expected_and_what_came() {
        for (said, line) in [
            (serde_json::json!({"result": "passed"}), "result: expected passed, got failed"),
            (serde_json::json!({"exitCode": 5}), "exit code: expected 5, got 1"),
            (serde_json::json!({"verdict": "product"}), "verdict: expected product, got capacity"),
            (
                serde_json::json!({"firstLine": "quota"}),
                "first line: expected one with `quota`, got `error: Machine/a/b: no stock`",
            ),
            (serde_json::json!({"makespan": {"min": 13}}), "makespan: expected at least 13 s, got 12.5 s"),
            (
                serde_json::json!({"makespan": {"max": 10}, "exitCode": 0}),
                "exit code: expected 0, got 1; makespan: expected at most 10 s, got 12.5 s",
            ),
        ] {
            assert_eq!(expect(said).mismatch(&failed()).as_deref(), Some(line));
        }
    }
}
