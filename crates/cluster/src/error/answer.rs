//! Reading what the server says when it says no.

use serde_json::Value;
use toolbox_engine::ObjectRef;

use super::{ClusterError, FieldConflict, FieldError};
use crate::undeclared;

impl ClusterError {
    /// Reads a failed answer. `verb` is what was asked, `object` about what.
    pub(crate) fn of_answer(code: u16, body: &[u8], verb: &'static str, object: &ObjectRef) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let text = |pointer: &str| {
            let found = status.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let mut message = text("/message");
        if message.is_empty() && status.is_null() {
            let body = String::from_utf8_lossy(body);
            message = body.trim().chars().take(500).collect();
        }
        let reason = text("/reason");
        let object = object.clone();
        let causes = status.pointer("/details/causes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let of_cause = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
        match code {
            400 | 422 | 500 if undeclared::is_about(&message) => {
                ClusterError::Invalid { causes: undeclared::causes(&message), object, message }
            }
            404 if text("/details/name").is_empty() => ClusterError::NotServed { object },
            404 => ClusterError::NotFound {
                // A create in a namespace that is not there is answered about the namespace.
                object: if text("/details/kind") == "namespaces" {
                    ObjectRef::new("v1", "Namespace", None, &text("/details/name"))
                } else {
                    object
                },
            },
            403 if causes.iter().any(|cause| cause["reason"] == "NamespaceTerminating") => {
                ClusterError::Terminating { namespace: object.namespace.clone().unwrap_or_default(), object }
            }
            403 => ClusterError::Forbidden { user: between(&message, "User \"", "\""), object, verb, message },
            409 if reason == "AlreadyExists" => ClusterError::AlreadyExists { object },
            409 => ClusterError::Conflict {
                fields: causes
                    .iter()
                    .filter(|cause| cause["reason"] == "FieldManagerConflict")
                    .map(|cause| FieldConflict {
                        manager: between(&of_cause(cause, "message"), "\"", "\"")
                            .unwrap_or_else(|| of_cause(cause, "message")),
                        field: of_cause(cause, "field"),
                    })
                    .collect(),
                object,
                message,
            },
            // A webhook that refuses answers 400 or 403 with its own words; those stay `Other` and `Forbidden`.
            422 => ClusterError::Invalid {
                causes: causes
                    .iter()
                    .map(|cause| FieldError { field: of_cause(cause, "field"), message: of_cause(cause, "message") })
                    .collect(),
                object,
                message,
            },
            400 if reason == "BadRequest" && verb != "get" && verb != "list" && verb != "log" => {
                ClusterError::Invalid { causes: Vec::new(), object, message }
            }
            410 => ClusterError::Expired { object, message },
            _ => ClusterError::Other { object, code, reason, message },
        }
    }
}

fn between(text: &str, before: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    let (found, _) = rest.split_once(after)?;
    Some(found.to_owned())
}
