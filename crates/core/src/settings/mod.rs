//! Settings in layers: flag over environment over file over default, each value with where it came from.

mod file;
mod layers;
mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use file::{ConfigFile, defaults};
pub use layers::Layers;
pub use schema::{Leaf, Schema};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag on the command line.
    Flag(String),
    /// A variable of the environment.
    Env(String),
    /// A configuration file.
    File(String),
    /// The defaults that come with the program.
    Default,
}

/// `--context`, `$KUBECONFIG`, `tbx.yaml`, `default`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Env(name) => write!(f, "${name}"),
            Origin::File(file) => f.write_str(file),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// One value.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    /// As the configuration file names it: `gpu-operator.deploy-from-operatorhub.channel`.
    pub key: String,
    /// The value as text; several are joined with commas for display.
    pub values: Vec<String>,
    /// Where it came from.
    pub origin: Origin,
    /// Whether it must not be shown.
    pub secret: bool,
}

impl Setting {
    /// What may be shown of it.
    pub fn shown(&self) -> String {
        if self.secret { "***".to_owned() } else { self.values.join(",") }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} ({})", self.key, self.shown(), self.origin)
    }
}

/// The settings of a run, all layers resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, Setting>);

impl Settings {
    /// From resolved values; later ones win.
    pub fn new(settings: impl IntoIterator<Item = Setting>) -> Self {
        Self(settings.into_iter().map(|setting| (setting.key.clone(), setting)).collect())
    }

    /// The setting, with its origin.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.0.get(key)
    }

    /// The value; the first one of a list.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.values.first().map(String::as_str)
    }

    /// Where the value came from.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.0.get(key).map(|setting| &setting.origin)
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.0.values()
    }

    /// The deadlines given by wait name or step id, each with its origin. Ones that are no duration are left out; they
    /// were refused when they were read.
    pub fn deadlines(&self) -> BTreeMap<String, (Duration, Origin)> {
        self.0
            .values()
            .filter_map(|setting| {
                let name = setting.key.strip_prefix("deadlines.")?;
                let text = setting.values.first()?;
                let duration = toolbox_engine::plan::parse_duration(text).ok()?;
                Some((name.to_owned(), (duration, setting.origin.clone())))
            })
            .collect()
    }
}
