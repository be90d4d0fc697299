//! What a body becomes when a server of built-in kinds reads it: fields that the type does not have go and are told
//! of, and a value of the wrong type is refused in the words of Go's decoder.

mod go;
mod twice;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    dispatch::Call,
    status::{ApiError, Cause},
};
use crate::types::{self, Node};

/// What to do about fields that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validation {
    /// Nothing.
    Ignore,
    /// Say so in a header.
    Warn,
    /// Refuse.
    Strict,
}

/// Reads the body of a create or replace.
pub(super) fn body(call: &Call) -> Result<Value, ApiError> {
    let mut object = call.json()?;
    let mut odd = Vec::new();
    if !call.content_type.contains("protobuf") && !call.content_type.contains("yaml") {
        odd = twice::given(&call.body).into_iter().map(|path| format!("duplicate field {path:?}")).collect();
    }
    if let Some(node) = type_of(call) {
        let unknown = fit(node, &mut object).map_err(|problem| cannot_be_handled(call, &problem))?;
        odd.extend(unknown.into_iter().map(|path| format!("unknown field {path:?}")));
    }
    told(call, &odd)?;
    Ok(object)
}

/// Looks at what a patch has made of an object: strategic patches are converted, the others are written out and read.
pub(super) fn patched(call: &Call, node: Node<'_>, object: &mut Value, strategic: bool) -> Result<(), ApiError> {
    let said = if strategic { go::print(&call.json()?) } else { object.to_string() };
    let refuse = |detail: &str| {
        let cause = Cause::invalid("patch", &said.clone().into(), detail);
        let message = format!(" \"\" is invalid: patch: {}", cause.message);
        ApiError::new(422, "Invalid", message).with_causes([cause])
    };
    let unknown = if strategic { Fit::new(Words::Converter) } else { Fit::new(Words::Decoder) }
        .look(node, object)
        .map_err(|problems| refuse(&problems.join(", ")))?;
    let odd: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    if call.validation == Validation::Strict && !odd.is_empty() {
        return Err(refuse(&format!("strict decoding error: {}", odd.join(", "))));
    }
    told(call, &odd)
}

/// What is wrong with an applied configuration, in the words of the merging library.
pub(super) fn undeclared(node: Node<'_>, config: &Value) -> Vec<String> {
    let mut fit = Fit::new(Words::Merger);
    fit.walk(node, &mut config.clone(), "", &Place { owner: "", path: "" });
    fit.wrong
}

/// The recorded type of the call's kind; custom resources have none.
pub(super) fn type_of(call: &Call) -> Option<Node<'static>> {
    let kind = &call.kind;
    if kind.custom { None } else { types::of_kind(&kind.group, &call.target.version, &kind.kind) }
}

/// Refuses or warns of what a strict reader does not like, as the client asked for it.
pub(super) fn told(call: &Call, odd: &[String]) -> Result<(), ApiError> {
    match call.validation {
        Validation::Strict if !odd.is_empty() => {
            Err(cannot_be_handled(call, &format!("strict decoding error: {}", odd.join(", "))))
        }
        Validation::Warn => {
            for text in odd {
                call.warn(text);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn cannot_be_handled(call: &Call, problem: &str) -> ApiError {
    let (kind, version) = (&call.kind.kind, &call.target.version);
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {problem}"))
}

/// Makes a value fit its type: returns the paths of the fields that were taken out, or what is of a wrong type.
fn fit(node: Node<'_>, value: &mut Value) -> Result<Vec<String>, String> {
    Fit::new(Words::Decoder).look(node, value).map_err(|mut problems| problems.swap_remove(0))
}

/// In whose words a wrong type is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// Go's decoder of JSON.
    Decoder,
    /// The converter that strategic merge patches go through.
    Converter,
    /// The library that merges what is applied.
    Merger,
}

/// Where Go's decoder thinks it is: the innermost type with fields, and the fields' names on the way.
struct Place<'a> {
    owner: &'a str,
    path: &'a str,
}

struct Fit {
    words: Words,
    unknown: Vec<String>,
    wrong: Vec<String>,
}

impl Fit {
    fn new(words: Words) -> Self {
        Self { words, unknown: Vec::new(), wrong: Vec::new() }
    }

    fn look(mut self, node: Node<'_>, value: &mut Value) -> Result<Vec<String>, Vec<String>> {
        self.walk(node, value, "", &Place { owner: "", path: "" });
        // All but the merging library stop at the first.
        self.wrong.truncate(1);
        if self.wrong.is_empty() { Ok(self.unknown) } else { Err(self.wrong) }
    }

    fn walk(&mut self, node: Node<'_>, value: &mut Value, path: &str, place: &Place<'_>) {
        if value.is_null() {
            return;
        }
        match (node.kind(), &mut *value) {
            _ if node.text("format") == "int-or-string" => {}
            (_, Value::Number(number)) if node.last_name() == "Quantity" => *value = number.to_string().into(),
            ("" | "string", text) if !node.has_members() && (node.kind().is_empty() || text.is_string()) => {
                self.other(node, text);
            }
            ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => {}
            ("integer", Value::Number(number)) if !number.is_f64() => {}
            ("array", Value::Array(items)) => {
                if let Some(inner) = node.items() {
                    for (index, item) in items.iter_mut().enumerate() {
                        let at = format!("{path}{}", self.item(node, index, item));
                        self.walk(inner, item, &at, place);
                    }
                }
            }
            ("object" | "", Value::Object(map)) => self.members(node, map, path, place),
            (_, found) => {
                let text = match self.words {
                    Words::Decoder => go::decoder(node, found, place.owner, place.path),
                    Words::Converter => go::converter(node, found),
                    Words::Merger => format!("{path}: {}", go::merger(node, found)),
                };
                self.wrong.push(text);
            }
        }
    }

    /// How an item of a list is named on the way.
    fn item(&self, list: Node<'_>, index: usize, item: &Value) -> String {
        let keys =
            list.get("x-kubernetes-list-map-keys").and_then(Value::as_array).filter(|_| self.words == Words::Merger);
        let Some(keys) = keys else { return format!("[{index}]") };
        let pairs: Vec<String> = keys
            .iter()
            .filter_map(Value::as_str)
            .filter_map(|key| item.get(key).map(|value| format!("{key}={value}")))
            .collect();
        format!("[{}]", pairs.join(","))
    }

    fn members(&mut self, node: Node<'_>, map: &mut Map<String, Value>, path: &str, place: &Place<'_>) {
        if !node.has_members() {
            return;
        }
        let start = if path.is_empty() && self.words != Words::Merger { String::new() } else { format!("{path}.") };
        map.retain(|name, value| {
            let below = format!("{start}{name}");
            if let Some(field) = node.property(name) {
                let go = if place.path.is_empty() { name.clone() } else { format!("{}.{name}", place.path) };
                self.walk(field, value, &below, &Place { owner: node.last_name(), path: &go });
                return true;
            }
            if let Some(inner) = node.additional() {
                self.walk(inner, value, &below, place);
                return true;
            }
            if self.words == Words::Merger {
                self.wrong.push(format!("{below}: field not declared in schema"));
            }
            self.unknown.push(below);
            false
        });
    }

    /// Texts with a form of their own.
    fn other(&mut self, node: Node<'_>, value: &Value) {
        if node.text("format") == "byte"
            && let Some(text) = value.as_str()
            && let Err(base64::DecodeError::InvalidByte(offset, _)) = STANDARD.decode(text)
        {
            self.wrong.push(format!("illegal base64 data at input byte {offset}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(spec: Value) -> (Value, Result<Vec<String>, String>) {
        let mut object = json!({"metadata": {"name": "a", "labels": {"free": "text"}}, "spec": spec});
        let result = fit(types::of_kind("apps", "v1", "Deployment").unwrap(), &mut object);
        (object["spec"].take(), result)
    }

    #[test]
    fn what_the_type_does_not_have_goes() {
        let (spec, unknown) = deployment(json!({
            "replica": 1, "template": {"spec": {"containers": [{"name": "a", "img": "b"}], "nodeSelector": {"a": "b"}}},
        }));
        assert_eq!(unknown.unwrap(), ["spec.replica", "spec.template.spec.containers[0].img"]);
        assert_eq!(spec, json!({"template": {"spec": {"containers": [{"name": "a"}], "nodeSelector": {"a": "b"}}}}));
    }

    #[test]
    fn a_wrong_type_is_told_in_gos_words() {
        for (spec, said) in [
            (json!({"replicas": "1"}), "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
            (json!({"replicas": 1.5}), "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
            (json!([]), "array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
            (
                json!({"template": {"spec": {"containers": {}}}}),
                "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                json!({"template": {"metadata": {"labels": {"a": 1}}}}),
                "number into Go struct field ObjectMeta.spec.template.metadata.labels of type string",
            ),
        ] {
            assert_eq!(deployment(spec).1.unwrap_err(), format!("json: cannot unmarshal {said}"));
        }
    }

    #[test]
    fn each_reader_has_its_own_words() {
        let node = types::of_kind("apps", "v1", "Deployment").unwrap();
        let object = |spec: Value| json!({"spec": spec});
        for (spec, said) in [
            (json!({"replicas": "x"}), "unrecognized type: int32"),
            (json!({"replicas": 1.5}), "cannot convert float64 to int32"),
            (json!({"template": []}), "cannot restore struct from: slice"),
            (json!({"template": {"spec": {"containers": "x"}}}), "cannot restore slice from string"),
            (json!({"template": {"metadata": {"labels": {"a": 1}}}}), "cannot convert int64 to string"),
        ] {
            assert_eq!(Fit::new(Words::Converter).look(node, &mut object(spec)).unwrap_err(), [said]);
        }
        let config = object(json!({"replicas": "2", "template": {"spec": {"containers": [{"name": "a", "img": 1}]}}}));
        assert_eq!(
            undeclared(node, &config),
            [
                ".spec.replicas: expected numeric (int or float), got string",
                ".spec.template.spec.containers[name=\"a\"].img: field not declared in schema",
            ]
        );
    }

    #[test]
    fn quantities_may_be_numbers_and_ports_both() {
        let (spec, unknown) = deployment(json!({"template": {"spec": {"containers": [{
            "resources": {"limits": {"cpu": 1}}, "livenessProbe": {"httpGet": {"port": "http"}},
        }]}}}));
        assert!(unknown.unwrap().is_empty());
        assert_eq!(spec["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1");
    }
}
