//! YAML and templates: the only place that knows which crates read and write them.
//!
//! Reading follows YAML 1.2's core schema (`yes` and `0755` are text); writing quotes every word that a YAML 1.1 reader
//! would take for something else, so that PyYAML and Go read back what was meant.

mod ambiguous;
mod error;
mod filters;
mod manifest;
pub(crate) use read::plain;
mod read;
mod strict;
mod template;
mod write;

pub use ambiguous::{Ambiguous, ambiguous};
pub use error::ConfigError;
pub use manifest::{manifests, read_manifests};
pub use read::{documents, read_file, typed, with_seed};
pub use template::{Style, Templates};
pub use write::{to_yaml, to_yaml_documents};
