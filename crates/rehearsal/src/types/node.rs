//! A place in a type: what the field itself says, and the type that it refers to.

use serde_json::Value;

use super::{REFERENCE, named};

/// A place in a schema. References to recorded types are followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    /// As the field says it.
    field: &'a Value,
    /// What it refers to; the field itself when it refers to nothing.
    schema: &'a Value,
    name: &'a str,
    required: bool,
}

impl<'a> Node<'a> {
    /// A place whose schema is this; a reference in it is followed.
    pub(crate) fn new(field: &'a Value) -> Self {
        let direct = |value: &'a Value| value.get("$ref").and_then(Value::as_str);
        let wrapped = || field.get("allOf").and_then(Value::as_array).and_then(|list| direct(list.first()?));
        let target = direct(field).or_else(wrapped).and_then(|text| named(text.strip_prefix(REFERENCE)?));
        match target {
            Some(target) => Self { field, ..target },
            None => Self { field, schema: field, name: "", required: false },
        }
    }

    pub(super) fn named(name: &'a str, schema: &'a Value) -> Self {
        Self { field: schema, schema, name, required: false }
    }

    /// The full name of the type referred to; empty when there is none.
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// The type's last name, such as `DeploymentSpec`.
    pub(crate) fn last_name(&self) -> &'a str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// The schema, references followed.
    pub(crate) fn schema(&self) -> &'a Value {
        self.schema
    }

    /// What the field says of this, or else its type.
    pub(crate) fn get(&self, word: &str) -> Option<&'a Value> {
        self.field.get(word).or_else(|| self.schema.get(word))
    }

    /// The same as text, empty when nothing is said.
    pub(crate) fn text(&self, word: &str) -> &'a str {
        self.get(word).and_then(Value::as_str).unwrap_or_default()
    }

    /// `object`, `array`, `string`, …; empty when it is not said.
    pub(crate) fn kind(&self) -> &'a str {
        self.text("type")
    }

    /// A named field.
    pub(crate) fn property(&self, name: &str) -> Option<Self> {
        let field = self.schema.get("properties")?.get(name)?;
        let required = self.schema.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|list| list.iter().any(|one| one.as_str() == Some(name)));
        Some(Self { required, ..Self::new(field) })
    }

    /// What a map holds under names of the user's choice.
    pub(crate) fn additional(&self) -> Option<Self> {
        self.schema.get("additionalProperties").filter(|value| value.is_object()).map(Self::new)
    }

    /// A named field, or what the map holds under that name.
    pub(crate) fn child(&self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional())
    }

    /// What a list holds.
    pub(crate) fn items(&self) -> Option<Self> {
        self.schema.get("items").map(Self::new)
    }

    /// Whether this has fields, or holds something under names of the user's choice.
    pub(crate) fn has_members(&self) -> bool {
        self.schema.get("properties").is_some() || self.schema.get("additionalProperties").is_some()
    }

    /// Whether an object as the server holds it has this field in any case.
    pub(crate) fn is_always_there(&self) -> bool {
        self.required
            || self.field.get("default").is_some_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
    }
}
