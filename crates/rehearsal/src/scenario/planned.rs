//! A fault of a scenario with its moment and its object.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Fault, Scenario};

/// A fault by name, or with its moment and its object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedFault {
    /// What goes wrong.
    pub name: Fault,
    /// When, in seconds after the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// When, by what happens in the run: the id of a step that starts, or a part of a reason that a wait gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Which object it is about, instead of the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

impl PlannedFault {
    /// A fault that is there from the start.
    pub fn new(name: Fault) -> Self {
        Self { name, at: None, when: None, on: None }
    }

    /// Whether it is there from the start, so that the scenario can be changed before anything happens.
    pub fn is_from_start(&self) -> bool {
        self.at.is_none() && self.when.is_none()
    }

    /// Changes `scenario` so that this goes wrong in it.
    pub fn apply(&self, scenario: &mut Scenario) {
        self.name.apply_on(scenario, self.on.as_deref());
    }
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if let Some(on) = &self.on {
            write!(f, " on {on}")?;
        }
        if let Some(at) = self.at {
            write!(f, " at {at} s")?;
        }
        if let Some(when) = &self.when {
            write!(f, " when `{when}`")?;
        }
        Ok(())
    }
}

/// The form with fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fields {
    /// What goes wrong.
    name: Fault,
    /// When, in seconds after the start.
    at: Option<f64>,
    /// When, by what happens in the run: the id of a step that starts, or a part of a reason that a wait gives.
    when: Option<String>,
    /// Which object it is about, instead of the usual one.
    on: Option<String>,
}

/// Both forms, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema is made from the type, and nothing of it is built")]
enum Form {
    /// A fault from the start.
    Name(Fault),
    /// A fault with its moment and its object.
    Fields(Fields),
}

impl JsonSchema for PlannedFault {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PlannedFault".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Form::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for PlannedFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = PlannedFault;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a fault, or {name: …, at: …, on: …}")
    }
    fn visit_str<E: Error>(self, name: &str) -> Result<PlannedFault, E> {
        Fault::deserialize(StrDeserializer::new(name)).map(PlannedFault::new)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PlannedFault, A::Error> {
        let Fields { name, at, when, on } = Fields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(PlannedFault { name, at, when, on })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_said() {
        let read = |value: serde_json::Value| serde_json::from_value::<PlannedFault>(value).unwrap().to_string();
        assert_eq!(read("api-restart".into()), "api-restart");
        let long = serde_json::json!({"name": "csv-failed", "at": 90, "on": "nfd"});
        assert_eq!(read(long), "csv-failed on nfd at 90 s");
        let when = serde_json::json!({"name": "csv-failed", "when": "nfd.wait-csv"});
        assert_eq!(read(when), "csv-failed when `nfd.wait-csv`");
    }
}
