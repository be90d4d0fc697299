//! What was seen on a real cluster, with the moments at which it changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What was seen on a real cluster. A rehearsal shows the same at the same moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Recording {
    /// When it was seen: times in the objects are moved by as much as the rehearsal begins later.
    pub began: Option<String>,
    /// How long it was watched, in seconds.
    pub seconds: f64,
    /// The objects that were seen.
    pub objects: Vec<Recorded>,
}

/// One object: as it was first seen, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Recorded {
    /// When it was first seen, in seconds; 0 is there from the start.
    pub at: f64,
    /// Its manifest, with its status.
    pub object: Value,
    /// What became of it, in the order of time.
    pub changes: Vec<Change>,
}

/// A change of a recorded object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Change {
    /// When, in seconds.
    pub at: f64,
    /// What is different, as a merge patch.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub set: Value,
    /// Whether it is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}
