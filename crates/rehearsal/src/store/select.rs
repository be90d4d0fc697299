//! Label and field selectors.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::{at, meta};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// A parsed label selector. The empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Test)>);

/// A parsed field selector. The empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(String, bool, String)>);

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`. The error is the server's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut out = Vec::new();
        for term in split_outside_parentheses(text) {
            let term = term.trim();
            if term.is_empty() {
                continue;
            }
            out.push(parse_label_term(term).ok_or_else(|| {
                let found = term.split_whitespace().nth(1).unwrap_or(term);
                format!("unable to parse requirement: found '{found}', expected: in, notin, =, ==, !=, gt, lt")
            })?);
        }
        Ok(Self(out))
    }

    /// A selector from `matchLabels` and `matchExpressions` (a `LabelSelector` in JSON).
    pub fn from_json(selector: &Value) -> Self {
        let mut out = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            out.push((key.clone(), Test::In(BTreeSet::from([value.as_str().unwrap_or_default().to_owned()]))));
        }
        for term in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key = term.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
            let values = term.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            out.push((
                key,
                match term.get("operator").and_then(Value::as_str).unwrap_or_default() {
                    "In" => Test::In(values),
                    "NotIn" => Test::NotIn(values),
                    "DoesNotExist" => Test::Absent,
                    _ => Test::Exists,
                },
            ));
        }
        Self(out)
    }

    /// Whether the object's labels satisfy every term.
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_labels(meta(object, "labels"))
    }

    /// Whether a map of labels satisfies every term.
    pub fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.0.iter().all(|(key, test)| {
            let value = labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
            match test {
                Test::In(set) => value.is_some_and(|value| set.contains(value)),
                Test::NotIn(set) => value.is_none_or(|value| !set.contains(value)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Greater(bound) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *bound),
                Test::Less(bound) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *bound),
            }
        })
    }
}

impl FieldSelector {
    /// Parses `a.b=c,d!=e`. The error is the server's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut out = Vec::new();
        for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            let (key, equal, value) = if let Some((key, value)) = term.split_once("!=") {
                (key, false, value)
            } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
                (key, true, value)
            } else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            out.push((key.to_owned(), equal, value.to_owned()));
        }
        Ok(Self(out))
    }

    /// The fields it asks about.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, ..)| key.as_str())
    }

    /// Whether the object's fields satisfy every term; an absent field reads as empty.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(key, equal, wanted)| {
            let found = match at(object, key) {
                Some(Value::String(text)) => text.clone(),
                None | Some(Value::Null) => default_of(key).to_owned(),
                Some(other) => other.to_string(),
            };
            (found == *wanted) == *equal
        })
    }
}

/// Fields that a server computes for selection although the object leaves them out.
fn default_of(key: &str) -> &'static str {
    match key {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        _ => "",
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn parse_label_term(term: &str) -> Option<(String, Test)> {
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    let result = if let Some(key) = term.strip_prefix('!') {
        (key.trim(), Test::Absent)
    } else if let Some((key, value)) = term.split_once("!=") {
        (key.trim(), Test::NotIn(one(value)))
    } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (key.trim(), Test::In(one(value)))
    } else if let Some((head, rest)) = term.split_once('(') {
        let values = rest.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        match operator {
            "in" => (key.trim(), Test::In(values)),
            "notin" => (key.trim(), Test::NotIn(values)),
            _ => return None,
        }
    } else if let Some((key, value)) = term.split_once('>') {
        (key.trim(), Test::Greater(value.trim().parse().ok()?))
    } else if let Some((key, value)) = term.split_once('<') {
        (key.trim(), Test::Less(value.trim().parse().ok()?))
    } else {
        (term, Test::Exists)
    };
    let sound = !result.0.is_empty() && !result.0.contains(char::is_whitespace);
    sound.then(|| (result.0.to_owned(), result.1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_read_all_operators() {
        let object = json!({"metadata": {"labels": {"a": "1", "b": "x", "n": "7"}}});
        for (text, expected) in [
            ("", true),
            ("a=1,b==x", true),
            ("a!=1", false),
            ("z!=1", true),
            ("a in (1, 2),b notin (y)", true),
            ("a,!c", true),
            ("!a", false),
            ("n>6,n<8", true),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), expected, "{text}");
        }
        assert!(LabelSelector::parse("a b c").is_err());
    }

    #[test]
    fn field_selectors_read_nested_fields() {
        let object = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "involvedObject": {"uid": "u"}});
        for (text, expected) in [
            ("spec.nodeName=n,metadata.name=p", true),
            ("spec.nodeName!=n", false),
            ("involvedObject.uid=u", true),
            ("status.phase=", true),
            ("spec.unschedulable=false", true),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(&object), expected, "{text}");
        }
    }
}
