//! Which kinds are served, and how.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::store::Resource;

/// When a write makes a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    None,
    /// When the spec changes.
    Spec,
    /// When anything but metadata and status changes (custom resources).
    AllButStatus,
}

/// One column of the table that a client prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub kind: String,
    /// Where the value is: a JSON path such as `.status.phase`.
    pub path: String,
    /// 0 for the usual columns, more for the wide ones.
    pub priority: i64,
}

impl Column {
    /// A usual text column.
    pub fn new(name: &str, path: &str) -> Self {
        Self { name: name.into(), kind: "string".into(), path: path.into(), priority: 0 }
    }
}

/// Where the scale subresource finds its numbers, as dotted paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted number.
    pub spec: String,
    /// The present number.
    pub status: String,
    /// The label selector as text or as an object; empty when there is none.
    pub selector: String,
}

/// One served version of a kind.
#[derive(Clone, Debug)]
pub struct VersionDef {
    /// Such as `v1beta1`.
    pub name: String,
    /// The structural schema, for custom resources.
    pub schema: Option<Arc<Value>>,
    /// Columns for printing; empty for name and age only.
    pub columns: Vec<Column>,
}

/// A served kind.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a kind, as discovery lists them")]
pub struct KindDef {
    /// The API group, empty for the core group.
    pub group: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The plural, such as `deployments`.
    pub plural: String,
    /// Other names for the command line.
    pub short_names: Vec<String>,
    /// Groups of kinds such as `all`.
    pub categories: Vec<String>,
    /// The served versions, preferred one first.
    pub versions: Vec<VersionDef>,
    /// The version that managed fields and stored objects are in.
    pub storage: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// The scale subresource.
    pub scale: Option<ScalePaths>,
    /// Whether the kind came from a custom resource definition.
    pub custom: bool,
    /// Whether unknown fields are kept and nothing is stored: the objects come from a provider.
    pub virtual_: bool,
    /// When a write makes a new generation.
    pub generation: Generation,
}

impl KindDef {
    /// A namespaced kind, with a status subresource and a generation for its spec.
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
            plural: plural.into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            versions: vec![VersionDef { name: version.into(), schema: None, columns: Vec::new() }],
            storage: version.into(),
            namespaced: true,
            status: true,
            scale: None,
            custom: false,
            virtual_: false,
            generation: Generation::Spec,
        }
    }

    /// A cluster-scoped kind, with a status subresource and a generation for its spec.
    pub fn cluster(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// Without a status subresource and without a generation.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.status = false;
        self.generation = Generation::None;
        self
    }

    /// Without a generation.
    #[must_use]
    pub fn no_generation(mut self) -> Self {
        self.generation = Generation::None;
        self
    }

    /// Behaves as custom resources do: lists are atomic unless a schema says otherwise, no strategic merge patch.
    #[must_use]
    pub fn as_custom(mut self) -> Self {
        self.custom = true;
        self.generation = Generation::AllButStatus;
        self
    }

    /// With a short name.
    #[must_use]
    pub fn short(mut self, names: &[&str]) -> Self {
        self.short_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// In the category `all`.
    #[must_use]
    pub fn in_all(mut self) -> Self {
        self.categories.push("all".into());
        self
    }

    /// With another served version.
    #[must_use]
    pub fn also(mut self, version: &str) -> Self {
        self.versions.push(VersionDef { name: version.into(), schema: None, columns: Vec::new() });
        self
    }

    /// With a scale subresource over `spec.replicas` and `status.replicas`.
    #[must_use]
    pub fn scaled(mut self, selector: &str) -> Self {
        let scale =
            ScalePaths { spec: "spec.replicas".into(), status: "status.replicas".into(), selector: selector.into() };
        self.scale = Some(scale);
        self
    }

    /// With printer columns, as (heading, JSON path) pairs.
    #[must_use]
    pub fn columns(mut self, columns: &[(&str, &str)]) -> Self {
        for version in &mut self.versions {
            version.columns = columns.iter().map(|(name, path)| Column::new(name, path)).collect();
        }
        self
    }

    /// Read-only, its objects come from a provider.
    #[must_use]
    pub fn provided(mut self) -> Self {
        self.virtual_ = true;
        self.plain()
    }

    /// Group and plural.
    pub fn resource(&self) -> Resource {
        Resource::new(self.group.clone(), self.plural.clone())
    }

    /// The `apiVersion` of this kind in one of its versions.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// One of its versions.
    pub fn version(&self, name: &str) -> Option<&VersionDef> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Field selectors that this kind allows besides `metadata.name` and `metadata.namespace`.
    pub fn selectable(&self) -> &'static [&'static str] {
        match (self.group.as_str(), self.plural.as_str()) {
            ("", "pods") => &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ],
            ("", "events") => &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            ("", "nodes") => &["spec.unschedulable"],
            ("", "namespaces") => &["status.phase"],
            ("", "secrets") => &["type"],
            ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
            ("", "services") => &["spec.clusterIP", "spec.type"],
            ("batch", "jobs") => &["status.successful"],
            _ => &[],
        }
    }
}

/// The served kinds, by group and plural.
#[derive(Default)]
pub struct Kinds(BTreeMap<Resource, Arc<KindDef>>);

impl Kinds {
    /// Serves a kind; another one with the same group and plural is replaced.
    pub fn insert(&mut self, kind: KindDef) {
        self.0.insert(kind.resource(), Arc::new(kind));
    }

    /// Stops serving a kind.
    pub fn remove(&mut self, resource: &Resource) {
        self.0.remove(resource);
    }

    /// The kind of a group and plural.
    pub fn get(&self, resource: &Resource) -> Option<&Arc<KindDef>> {
        self.0.get(resource)
    }

    /// All kinds, in order of group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KindDef>> {
        self.0.values()
    }

    /// The kind with this group, version and kind name.
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&Arc<KindDef>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.iter().find(|def| def.group == group && def.kind == kind && def.version(version).is_some())
    }

    /// The versions of a group, those of the first kind first.
    pub fn versions(&self, group: &str) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for version in self.iter().filter(|kind| kind.group == group).flat_map(|kind| &kind.versions) {
            if !out.contains(&version.name) {
                out.push(version.name.clone());
            }
        }
        out.sort_by_key(|version| version_order(version));
        out
    }

    /// All groups but the core one, in order.
    pub fn groups(&self) -> Vec<String> {
        let mut out: Vec<String> =
            self.iter().map(|kind| kind.group.clone()).filter(|group| !group.is_empty()).collect();
        out.dedup();
        out
    }
}

/// Orders versions as Kubernetes does: stable before beta before alpha, higher numbers first.
pub fn version_order(version: &str) -> (u8, i64, i64) {
    let rest = version.strip_prefix('v').unwrap_or(version);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major: i64 = rest[..digits].parse().unwrap_or(0);
    let (rank, minor) = match &rest[digits..] {
        "" => (0, 0),
        tail => match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor.parse().unwrap_or(0)),
            (_, Some(minor)) => (2, minor.parse().unwrap_or(0)),
            _ => (3, 0),
        },
    };
    (rank, -major, -minor)
}
