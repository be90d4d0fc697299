//! The Operator Lifecycle Manager: catalogs, groups, subscriptions, install plans, cluster service versions.

mod bundle;
mod catalog;
mod csv;
mod group;
mod installplan;
mod packages;
mod resolve;
mod subscription;

pub(crate) use catalog::{CATALOG_NAMESPACE, Catalogs, connection};
pub(crate) use csv::Csvs;
pub(crate) use group::OperatorGroups;
pub(crate) use installplan::InstallPlans;
pub(crate) use packages::PackageManifests;
pub(crate) use subscription::Subscriptions;

/// Namespace whose OperatorGroup covers all namespaces.
pub(crate) const GLOBAL_NAMESPACE: &str = "openshift-operators";

/// The label that OLM puts on everything of a package in a namespace.
pub(crate) fn component_label(package: &str, namespace: &str) -> String {
    // Label names end after 63 characters, and with a letter or digit.
    let name: String = format!("{package}.{namespace}").chars().take(63).collect();
    format!("operators.coreos.com/{}", name.trim_end_matches(['.', '-', '_']))
}
