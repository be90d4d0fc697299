//! The Kubernetes version that the server says it is.

use serde_json::{Value, json};

/// A Kubernetes version. It also selects behaviour where versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubeVersion {
    /// Major, always 1 so far.
    pub major: u32,
    /// Minor.
    pub minor: u32,
    /// Patch.
    pub patch: u32,
}

impl KubeVersion {
    /// A version from its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Whether `sendInitialEvents` watches are served, refused or unheard of.
    pub(crate) fn watch_list(self) -> WatchList {
        match self.minor {
            0..=26 => WatchList::Unknown,
            27..=31 | 33 => WatchList::Refused,
            _ => WatchList::Served,
        }
    }

    /// What `/version` answers.
    pub(crate) fn to_json(self) -> Value {
        let mut out = json!({"major": self.major.to_string(), "minor": self.minor.to_string()});
        // A server of today can act as an older one, and says as which it acts.
        if self.minor >= 33 {
            out["emulationMajor"] = self.major.to_string().into();
            out["emulationMinor"] = self.minor.to_string().into();
            out["minCompatibilityMajor"] = self.major.to_string().into();
            out["minCompatibilityMinor"] = (self.minor - 1).to_string().into();
        }
        out["gitVersion"] = self.to_string().into();
        out["gitCommit"] = "0000000000000000000000000000000000000000".into();
        for (name, text) in [
            ("gitTreeState", "clean"),
            ("buildDate", "2022-01-01T00:00:00Z"),
            ("goVersion", "go1.18"),
            ("compiler", "gc"),
            ("platform", "linux/amd64"),
        ] {
            out[name] = text.into();
        }
        out
    }
}

impl std::fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl std::str::FromStr for KubeVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(str::parse::<u32>);
        let mut next = || {
            parts.next().unwrap_or(Ok(0)).map_err(|_| format!("`{text}` is not a Kubernetes version such as 1.34.4"))
        };
        Ok(Self::new(next()?, next()?, next()?))
    }
}

/// What a server makes of `sendInitialEvents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchList {
    Unknown,
    Refused,
    Served,
}
