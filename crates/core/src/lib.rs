//! What every tool is built on: settings, YAML and templates, and the command line.
//!
//! A tool names its arguments (clap), turns them into a checked spec and implements [`Verb`]; a group of tools is a
//! [`Noun`]. [`cli::main`] does the rest: connecting, the run directory, progress, signals, exit codes.
//!
//! ```
//! use toolbox_core::config::{Style, Templates, to_yaml};
//!
//! // A value cannot change the structure of a manifest, and what is written reads the same everywhere.
//! let values = serde_json::json!({"channel": "4.10: # on"});
//! let objects = Templates::new(Style::Plain).objects("sub.yml.j2", "channel: {{ channel }}", &values)?;
//! assert_eq!(to_yaml(&objects[0])?, "channel: \"4.10: # on\"\n");
//! # Ok::<(), toolbox_core::config::ConfigError>(())
//! ```
//!
//! This crate must not import kube, and only its `config` module imports a YAML or template crate; only `cli` prints,
//! exits and reads the command line and the environment.

pub mod cli;
pub mod config;
mod env;
pub mod settings;

pub use cli::{App, FloorJob, FlowPart, Lone, Noun, Verb, VerbEnv, VerbName};
pub use env::EnvMap;
pub use toolbox_cluster as cluster;
pub use toolbox_engine as engine;
