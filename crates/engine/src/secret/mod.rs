//! Secrets as a type, and the redactor that takes their values out of whatever is written or shown.
//!
//! A [`Secret`] cannot be printed by accident. A [`Redactor`] knows secret values, in every encoding they are likely to
//! turn up in, and the shapes of secrets it was never told about (private keys, bearer tokens, passwords in addresses).

mod fields;
mod forms;
mod patterns;
mod redactor;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use fields::{is_plain_word, is_secret_key};
pub use redactor::Redactor;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// A value that prints as `***` everywhere. Hand [`Secret::expose`] only to what needs the value.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes the value in.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        Ok(Self(value.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

#[cfg(test)]
mod tests;
