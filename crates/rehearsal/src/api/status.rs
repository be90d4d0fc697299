//! Errors as `Status` objects, with the reasons, messages and details of a real server.

use serde_json::{Map, Value, json};

use crate::store::Resource;

/// A refusal: an HTTP code and what the body says.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`; empty for plain-text answers.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    details: Map<String, Value>,
    metadata: Map<String, Value>,
    empty_details: bool,
    plain: bool,
}

/// One cause of an invalid object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Such as `FieldValueRequired`.
    pub reason: &'static str,
    /// Such as `Required value`.
    pub message: String,
    /// Such as `spec.replicas`.
    pub field: String,
}

impl Cause {
    /// A field that must be there and is not.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// A field whose value is not allowed.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {detail}", go(value)),
            field: field.into(),
        }
    }

    /// A field that must not be set or changed.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {detail}"), field: field.into() }
    }

    /// A field whose value is none of those allowed.
    pub fn unsupported(field: impl Into<String>, value: &Value, allowed: &[String]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {}: supported values: {}", go(value), allowed.join(", ")),
            field: field.into(),
        }
    }

    /// A field whose value is of another type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {}: {detail}", go(value)),
            field: field.into(),
        }
    }
}

fn go(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".into(),
        Value::Array(_) => "\"array\"".into(),
        other => other.to_string(),
    }
}

impl ApiError {
    /// An error with this code, reason and message.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            metadata: Map::new(),
            empty_details: false,
            plain: false,
        }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        if !name.is_empty() {
            self.details.insert("name".into(), name.into());
        }
        if !resource.group.is_empty() {
            self.details.insert("group".into(), resource.group.clone().into());
        }
        self.details.insert("kind".into(), resource.plural.clone().into());
        self
    }

    /// With something before the message.
    #[must_use]
    pub fn before(mut self, text: &str) -> Self {
        self.message.insert_str(0, text);
        self
    }

    /// With details that are there and say nothing, as some refusals have them.
    #[must_use]
    pub fn with_empty_details(mut self) -> Self {
        self.empty_details = true;
        self
    }

    /// Adds causes to the details.
    #[must_use]
    pub fn with_causes(mut self, causes: impl IntoIterator<Item = Cause>) -> Self {
        let list: Vec<Value> = causes
            .into_iter()
            .map(|cause| {
                let mut map = Map::new();
                for (name, text) in [("reason", cause.reason), ("message", &cause.message), ("field", &cause.field)] {
                    if !text.is_empty() {
                        map.insert(name.into(), text.into());
                    }
                }
                Value::Object(map)
            })
            .collect();
        self.details.insert("causes".into(), list.into());
        self
    }

    /// Says after how many seconds to try again.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.details.insert("retryAfterSeconds".into(), seconds.into());
        self
    }

    /// The seconds to wait before trying again, if said.
    pub fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// Sets the continue token of the list metadata.
    #[must_use]
    pub fn with_continue(mut self, token: String) -> Self {
        self.metadata.insert("continue".into(), token.into());
        self
    }

    /// The `Status` object.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": self.metadata,
            "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        let may_be_empty = ["NotFound", "MethodNotAllowed", "Invalid"].contains(&self.reason);
        if !self.details.is_empty() || may_be_empty || self.empty_details {
            status["details"] = Value::Object(self.details.clone());
        }
        status["code"] = self.code.into();
        status
    }

    /// An error whose body is the bare message.
    pub fn plain(code: u16, message: &str) -> Self {
        Self { plain: true, ..Self::new(code, "", message) }
    }

    /// Whether the body is the bare message.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Nothing is served at this path.
    pub fn no_such_path() -> Self {
        Self::plain(404, "404 page not found")
    }

    /// The group is served, the resource is not.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// The verb is not served here.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// The object does not exist.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", resource.qualified())).about(resource, name)
    }

    /// The object exists.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", resource.qualified()))
            .about(resource, name)
    }

    /// The operation met a newer state.
    pub fn conflict(resource: &Resource, name: &str, detail: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {detail}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The operation was based on an old resource version.
    pub fn stale(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// The object does not pass validation. `kind` is the kind, not the plural.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let texts: Vec<String> = causes
            .iter()
            .map(|cause| {
                if cause.field.is_empty() {
                    cause.message.clone()
                } else {
                    format!("{}: {}", cause.field, cause.message)
                }
            })
            .collect();
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let error = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {text}"));
        error.about(&Resource::new(group, kind), name).with_causes(causes)
    }

    /// The request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Not allowed.
    pub fn forbidden(resource: &Resource, name: &str, detail: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {detail}", resource.qualified())
        } else {
            format!("{} {name:?} is forbidden: {detail}", resource.qualified())
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// Who are you?
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// A watch asks for a revision that is no longer known.
    pub fn too_old(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// A read asks for a revision that does not exist yet.
    pub fn too_large(asked: u64, present: u64) -> Self {
        Self::new(504, "Timeout", format!("Timeout: Too large resource version: {asked}, current: {present}"))
            .with_causes([Cause {
                reason: "ResourceVersionTooLarge",
                message: "Too large resource version".into(),
                field: String::new(),
            }])
            .with_retry_after(1)
    }

    /// The body is in a format that is not understood here.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Something is wrong inside the server.
    pub fn internal(message: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}")).with_causes([Cause {
            reason: "",
            message: message.to_owned(),
            field: String::new(),
        }])
    }
}

/// The `Status` that a deletion answers with when nothing of the object is left.
pub(super) fn deleted(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = Map::new();
    details.insert("name".into(), name.into());
    if !resource.group.is_empty() {
        details.insert("group".into(), resource.group.clone().into());
    }
    details.insert("kind".into(), resource.plural.clone().into());
    details.insert("uid".into(), uid.into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
