//! Which objects are meant; equal queries share one watch.

use std::fmt;

use serde_json::Value;
use toolbox_engine::ObjectRef;
use toolbox_engine::journal::GENERATED;
use toolbox_engine::plan::Kind;

use crate::object::Object;

/// Which objects of a kind: everywhere or in a namespace, by labels, by fields, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The kind.
    pub kind: Kind,
    /// Where; `None` is every namespace, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
}

impl Query {
    /// All objects of a kind, in every namespace.
    pub fn all(kind: &Kind) -> Self {
        Self { kind: kind.clone(), namespace: None, labels: None, fields: None }
    }

    /// The objects of a kind in a namespace.
    pub fn within(kind: &Kind, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()).filter(|_| kind.namespaced), ..Self::all(kind) }
    }

    /// The object of that name.
    pub fn named(kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.filter(|_| kind.namespaced).map(str::to_owned),
            fields: Some(format!("metadata.name={name}")),
            ..Self::all(kind)
        }
    }

    /// Only those with these labels: `a=b,c`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only those with these fields: `spec.nodeName=worker-1`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// The name, when it asks for one object.
    pub fn name(&self) -> Option<&str> {
        self.fields.as_deref()?.strip_prefix("metadata.name=").filter(|name| !name.contains(','))
    }

    /// What it asks for, as causes name it: the object, or the kind with the selector in angle brackets.
    pub fn object(&self) -> ObjectRef {
        let name = self.name().map_or_else(
            || {
                let selectors: Vec<&str> =
                    [&self.labels, &self.fields].into_iter().filter_map(|selector| selector.as_deref()).collect();
                if selectors.is_empty() { "<any>".to_owned() } else { format!("<{}>", selectors.join(",")) }
            },
            str::to_owned,
        );
        self.kind.object(self.namespace.as_deref(), &name)
    }

    /// Whether it certainly asks for this object too; selectors that are not plain equalities are not understood.
    pub(crate) fn covers(&self, object: &Object) -> bool {
        let same_kind = object.kind() == self.kind.kind && object.api_version() == self.kind.api_version();
        let same_place = self.namespace.is_none() || self.namespace.as_deref() == object.namespace();
        let fields = self.fields.is_none() || self.name() == Some(object.name());
        let labels = self.labels.as_deref().unwrap_or_default();
        let has = |term: &str| match term.split_once('=') {
            Some((key, value)) => object.label(key.trim()) == Some(value.trim_start_matches('=').trim()),
            None => object.label(term).is_some(),
        };
        let labels = !labels.contains(['!', '(', ')', '<', '>'])
            && labels.split(',').map(str::trim).filter(|term| !term.is_empty()).all(has);
        same_kind && same_place && fields && labels
    }

    /// The path of the collection.
    pub(crate) fn path(&self) -> String {
        collection(&self.kind, self.namespace.as_deref())
    }

    pub(crate) fn selectors(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        if let Some(labels) = &self.labels {
            pairs.push(("labelSelector", labels.clone()));
        }
        if let Some(fields) = &self.fields {
            pairs.push(("fieldSelector", fields.clone()));
        }
        pairs
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object().fmt(f)
    }
}

/// The path of a kind's collection.
pub(crate) fn collection(kind: &Kind, namespace: Option<&str>) -> String {
    let root = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    match namespace.filter(|_| kind.namespaced) {
        Some(namespace) => format!("{root}/namespaces/{}/{}", encode(namespace), kind.plural),
        None => format!("{root}/{}", kind.plural),
    }
}

/// The path of one object.
pub(crate) fn path(kind: &Kind, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{}", collection(kind, namespace), encode(name))
}

/// A path with a query string.
pub(crate) fn with_parameters(path: &str, pairs: &[(&str, String)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// Percent-encodes everything but unreserved characters.
fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The reference to an object in a manifest, before it exists.
pub(crate) fn refer(manifest: &Value) -> ObjectRef {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name")
        .map(str::to_owned)
        .or_else(|| text("/metadata/generateName").map(|prefix| format!("{prefix}{GENERATED}")));
    ObjectRef::new(
        text("/apiVersion").unwrap_or_default(),
        text("/kind").unwrap_or_default(),
        text("/metadata/namespace"),
        &name.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn paths_name_group_and_version() {
        assert_eq!(Query::all(&kinds::NODE).path(), "/api/v1/nodes");
        assert_eq!(
            Query::within(&kinds::MACHINE_SET, "openshift-machine-api").path(),
            "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machinesets"
        );
        assert_eq!(
            with_parameters("/x", &[("labelSelector", "a in (b,c)".to_owned())]),
            "/x?labelSelector=a%20in%20%28b%2Cc%29"
        );
    }

    #[test]
    fn a_query_covers_what_its_equalities_hold_for() {
        let pod = Object::new(serde_json::json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "ns", "labels": {"app": "x", "tier": "y"}}}));
        let covers = |labels: &str| Query::within(&kinds::POD, "ns").labels(labels).covers(&pod);
        assert!(covers("app=x") && covers("app==x,tier") && Query::named(&kinds::POD, Some("ns"), "a").covers(&pod));
        assert!(!covers("app=z") && !covers("other") && !covers("app!=z") && !covers("app in (x)"));
        assert!(!Query::within(&kinds::POD, "elsewhere").covers(&pod) && !Query::all(&kinds::NODE).covers(&pod));
        assert!(!Query::all(&kinds::POD).fields("spec.nodeName=n").covers(&pod));
    }

    #[test]
    fn a_query_by_name_is_one_object() {
        let query = Query::named(&kinds::POD, Some("ns"), "burn");
        assert_eq!(query.name(), Some("burn"));
        assert_eq!(query.to_string(), "Pod/ns/burn");
        assert_eq!(Query::within(&kinds::POD, "ns").labels("app=x").to_string(), "Pod/ns/<app=x>");
        assert_eq!(query, Query::named(&kinds::POD, Some("ns"), "burn"));
    }
}
