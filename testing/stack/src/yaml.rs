//! Reading YAML files with several documents.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// Every document of a text that is not empty.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let value = Value::deserialize(document).context("not YAML")?;
        if !value.is_null() {
            found.push(value);
        }
    }
    Ok(found)
}
