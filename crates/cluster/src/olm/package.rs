//! What a catalog says about a package. PackageManifests are computed, not stored: several catalogs may have one of the
//! same name, so they are listed by their catalog's labels and never read by name.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

/// A package of one catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRef {
    /// `gpu-operator-certified`.
    pub name: String,
    /// The CatalogSource.
    pub catalog: String,
    /// Its namespace.
    pub catalog_namespace: String,
}

impl PackageRef {
    /// A package of a catalog in the usual namespace.
    pub fn new(name: impl Into<String>, catalog: impl Into<String>) -> Self {
        Self { name: name.into(), catalog: catalog.into(), catalog_namespace: super::MARKETPLACE.to_owned() }
    }

    /// The labels its PackageManifest carries.
    pub fn selector(&self) -> String {
        format!("catalog={},catalog-namespace={}", self.catalog, self.catalog_namespace)
    }

    /// The label OLM puts on everything of this package in a namespace; its value is empty.
    pub fn component_label(&self, namespace: &str) -> String {
        format!("operators.coreos.com/{}.{namespace}", self.name)
    }
}

/// What one version supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "OLM's four modes are independent of each other")]
pub struct InstallModes {
    /// The namespace it runs in.
    pub own_namespace: bool,
    /// One other namespace.
    pub single_namespace: bool,
    /// Several namespaces.
    pub multi_namespace: bool,
    /// The whole cluster.
    pub all_namespaces: bool,
}

impl InstallModes {
    /// Reads `[{type: OwnNamespace, supported: true}, …]`.
    pub fn read(modes: &[Value]) -> Self {
        let supports = |name: &str| modes.iter().any(|mode| mode["type"] == name && mode["supported"] == true);
        Self {
            own_namespace: supports("OwnNamespace"),
            single_namespace: supports("SingleNamespace"),
            multi_namespace: supports("MultiNamespace"),
            all_namespaces: supports("AllNamespaces"),
        }
    }

    /// Whether an operator in `namespace` supports a group for `targets`; none means every namespace. The rule is OLM's.
    pub fn supports(self, namespace: &str, targets: &[String]) -> bool {
        match targets {
            [] => self.all_namespaces,
            [one] if one.is_empty() => self.all_namespaces,
            [one] if one == namespace => self.own_namespace,
            [_] => self.single_namespace,
            several => self.multi_namespace && (self.own_namespace || !several.iter().any(|one| one == namespace)),
        }
    }
}

impl fmt::Display for InstallModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modes = [
            (self.own_namespace, "OwnNamespace"),
            (self.single_namespace, "SingleNamespace"),
            (self.multi_namespace, "MultiNamespace"),
            (self.all_namespaces, "AllNamespaces"),
        ];
        let names: Vec<&str> = modes.into_iter().filter_map(|(yes, name)| yes.then_some(name)).collect();
        f.write_str(&if names.is_empty() { "no install mode".to_owned() } else { names.join(" and ") })
    }
}

/// A published version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The CSV's name.
    pub csv: String,
    /// `1.11.0`.
    pub version: String,
}

/// What the catalog says about the newest version of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Which version.
    pub published: Published,
    /// Its install modes.
    pub modes: InstallModes,
    /// `operatorframework.io/suggested-namespace`.
    pub suggested_namespace: Option<String>,
    /// Whether it requires other operators' APIs, so that OLM installs them with it.
    pub requires_others: bool,
}

/// A channel of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Its newest version.
    pub head: Head,
    /// Every version in it; `None` where the package server does not list them (before OLM 0.26).
    pub entries: Option<Vec<Published>>,
}

impl Channel {
    /// The version `version`, if the channel is known to have it.
    pub fn find(&self, version: &str) -> Option<&Published> {
        let head = std::iter::once(&self.head.published);
        head.chain(self.entries.iter().flatten()).find(|published| published.version == version)
    }

    fn offer(&self) -> String {
        let mut versions: Vec<&str> = self.entries.iter().flatten().map(|entry| entry.version.as_str()).collect();
        if !versions.contains(&self.head.published.version.as_str()) {
            versions.insert(0, &self.head.published.version);
        }
        format!("{} ({})", self.name, versions.join(", "))
    }
}

/// A package as one catalog offers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// Which.
    pub id: PackageRef,
    /// The channel used when none is asked for.
    pub default_channel: Option<String>,
    /// Its channels, in the catalog's order.
    pub channels: Vec<Channel>,
    /// The PackageManifest.
    pub manifest: Arc<Value>,
}

impl Package {
    /// The one PackageManifest of this package and catalog. Manifests of other catalogs are passed over.
    pub fn find(manifests: &[Object], id: &PackageRef) -> Option<Self> {
        let ours = |object: &&Object| {
            object.name() == id.name
                && object.text("/status/catalogSource") == Some(id.catalog.as_str())
                && object
                    .text("/status/catalogSourceNamespace")
                    .is_none_or(|namespace| namespace == id.catalog_namespace)
        };
        manifests.iter().find(ours).map(|object| Self::read(object, id))
    }

    /// Other catalogs that offer a package of this name.
    pub fn elsewhere(manifests: &[Object], id: &PackageRef) -> Vec<String> {
        let mut names: Vec<String> = manifests
            .iter()
            .filter(|object| object.name() == id.name)
            .filter_map(|object| object.text("/status/catalogSource"))
            .filter(|catalog| *catalog != id.catalog)
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn read(object: &Object, id: &PackageRef) -> Self {
        let channels = object.list("/status/channels").iter();
        Self {
            id: id.clone(),
            default_channel: object.text("/status/defaultChannel").filter(|name| !name.is_empty()).map(str::to_owned),
            channels: channels.filter_map(channel).collect(),
            manifest: Arc::new(object.value().clone()),
        }
    }

    /// The channel of this name.
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.name == name)
    }

    /// `channel (versions)` for each channel.
    pub fn offers(&self) -> Vec<String> {
        self.channels.iter().map(Channel::offer).collect()
    }

    /// What the catalog says about the version itself, if it is the head of any channel; otherwise about the oldest
    /// head that is newer than it. The second value says whether it is the version itself.
    pub fn describe(&self, published: &Published) -> Option<(&Head, bool)> {
        let heads = || self.channels.iter().map(|channel| &channel.head);
        if let Some(head) = heads().find(|head| head.published.csv == published.csv) {
            return Some((head, true));
        }
        heads()
            .filter(|head| super::resolve::compare_versions(&head.published.version, &published.version).is_gt())
            .min_by(|a, b| super::resolve::compare_versions(&a.published.version, &b.published.version))
            .or_else(|| heads().next())
            .map(|head| (head, false))
    }
}

fn channel(value: &Value) -> Option<Channel> {
    let csv = value["currentCSV"].as_str()?;
    let description = &value["currentCSVDesc"];
    let version = description["version"].as_str();
    let entries = value["entries"].as_array().map(|entries| {
        let entries = entries.iter().filter_map(|entry| {
            let csv = entry["name"].as_str()?;
            let version = entry["version"].as_str();
            Some(Published { csv: csv.to_owned(), version: version.map_or_else(|| version_of(csv), str::to_owned) })
        });
        entries.collect()
    });
    let modes = description["installModes"].as_array();
    Some(Channel {
        name: value["name"].as_str()?.to_owned(),
        head: Head {
            published: Published {
                csv: csv.to_owned(),
                version: version.map_or_else(|| version_of(csv), str::to_owned),
            },
            modes: InstallModes::read(modes.map_or(&[], Vec::as_slice)),
            suggested_namespace: description["annotations"]["operatorframework.io/suggested-namespace"]
                .as_str()
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
            requires_others: description["customresourcedefinitions"]["required"]
                .as_array()
                .is_some_and(|required| !required.is_empty()),
        },
        entries,
    })
}

/// The version in a CSV's name: `gpu-operator-certified.v1.8.2` is 1.8.2.
pub(crate) fn version_of(csv: &str) -> String {
    let rest = csv.split_once('.').map_or(csv, |(_, rest)| rest);
    rest.strip_prefix('v').unwrap_or(rest).to_owned()
}
