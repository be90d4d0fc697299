//! Names of objects, as causes, journals and leftovers carry them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An object by kind and name; the uid when it is one particular life of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObjectRef {
    /// `machine.openshift.io/v1beta1`; empty when the thing is no API object (a file, a flag, the server).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `Machine`, or `file`, `flag`, `server` when it is no API object.
    pub kind: String,
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name; a selector in angle brackets when any object would do.
    pub name: String,
    /// Set when one particular life of the object is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl ObjectRef {
    /// An object of the API. `namespace` is `None` for cluster-scoped kinds.
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            uid: None,
        }
    }

    /// Something that is no API object: a file, a flag, the API server.
    pub fn thing(kind: &str, name: impl Into<String>) -> Self {
        Self { api_version: String::new(), kind: kind.to_owned(), namespace: None, name: name.into(), uid: None }
    }

    /// The same object, this life of it.
    #[must_use]
    pub fn with_uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// `Kind/name -n namespace`, as `tbx why` takes it.
    pub fn as_argument(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/{} -n {namespace}", self.kind, self.name),
            None => format!("{}/{}", self.kind, self.name),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{namespace}/{}", self.kind, self.name),
            None => write!(f, "{}/{}", self.kind, self.name),
        }
    }
}
