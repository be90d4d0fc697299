//! What a step does to the cluster: printed with the plan and checked against the user's rights beforehand.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::why::ObjectRef;

/// A kind of the API, always with its group and version: short names are owned by several groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Kind {
    /// Empty for the core group.
    pub group: Cow<'static, str>,
    /// `v1`.
    pub version: Cow<'static, str>,
    /// `Subscription`.
    pub kind: Cow<'static, str>,
    /// `subscriptions`.
    pub plural: Cow<'static, str>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// A kind known when the program is built.
    pub const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        namespaced: bool,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced,
        }
    }

    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `subscriptions.operators.coreos.com`, the spelling that is safe in every printed command.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// A reference to an object of this kind.
    pub fn object(&self, namespace: Option<&str>, name: &str) -> ObjectRef {
        ObjectRef::new(&self.api_version(), &self.kind, namespace.filter(|_| self.namespaced), name)
    }
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Get and list.
    Read,
    /// List and watch.
    Watch,
    /// Read a pod's log.
    Logs,
    /// Create; the object must be new.
    Create,
    /// Server-side apply: create or change.
    Apply,
    /// Change something that is there.
    Patch,
    /// Delete.
    Delete,
}

impl Act {
    /// The API verbs that it needs. Changes look at what is there first, and deletions are waited for.
    pub fn api_verbs(self) -> &'static [&'static str] {
        match self {
            Act::Read => &["get", "list"],
            Act::Watch => &["list", "watch"],
            Act::Logs => &["get"],
            Act::Create => &["get", "create"],
            Act::Apply => &["get", "create", "patch"],
            Act::Patch => &["get", "patch"],
            Act::Delete => &["get", "list", "watch", "delete"],
        }
    }

    /// Whether the cluster is the same afterwards.
    pub fn is_read_only(self) -> bool {
        matches!(self, Act::Read | Act::Watch | Act::Logs)
    }
}

/// The name of what is touched, as far as it is known beforehand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Name {
    /// This one.
    Is(String),
    /// Several, or whichever matches.
    Any,
    /// Not known yet; says what it will be decided from.
    From(String),
}

/// One thing that a step does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Effect {
    /// What is done.
    pub act: Act,
    /// To which kind.
    pub kind: Kind,
    /// `log`, `status`, `scale`, when a subresource is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<&'static str>,
    /// Where; `None` is every namespace, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Which.
    pub name: Name,
}

impl Effect {
    /// Something done to one object that is known by name.
    pub fn on(act: Act, kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        Self {
            act,
            kind: kind.clone(),
            subresource: (act == Act::Logs).then_some("log"),
            namespace: namespace.map(str::to_owned),
            name: Name::Is(name.to_owned()),
        }
    }

    /// Something done to whichever objects match.
    pub fn any(act: Act, kind: &Kind, namespace: Option<&str>) -> Self {
        Self { name: Name::Any, ..Self::on(act, kind, namespace, "") }
    }

    /// Something done to an object whose name is decided on the way.
    pub fn decided(act: Act, kind: &Kind, namespace: Option<&str>, from: &str) -> Self {
        Self { name: Name::From(from.to_owned()), ..Self::on(act, kind, namespace, "") }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = match self.act {
            Act::Read => "read",
            Act::Watch => "watch",
            Act::Logs => "read the log of",
            Act::Create => "create",
            Act::Apply => "apply",
            Act::Patch => "change",
            Act::Delete => "delete",
        };
        write!(f, "{act} {}", self.kind.full_name())?;
        match &self.name {
            Name::Is(name) => write!(f, " {name}")?,
            Name::Any => {}
            Name::From(from) => write!(f, " (decided from {from})")?,
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None if self.kind.namespaced => write!(f, " in every namespace"),
            None => Ok(()),
        }
    }
}
