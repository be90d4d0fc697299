//! The kinds that controllers read and write.

use kube::core::{ApiResource, DynamicObject};

/// A kind by its constant names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) name: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Kind {
    Kind { group, version, name: kind, plural, namespaced }
}

pub(crate) const NAMESPACE: Kind = kind("", "v1", "Namespace", "namespaces", false);
pub(crate) const NODE: Kind = kind("", "v1", "Node", "nodes", false);
pub(crate) const POD: Kind = kind("", "v1", "Pod", "pods", true);
pub(crate) const EVENT: Kind = kind("", "v1", "Event", "events", true);
pub(crate) const SERVICE_ACCOUNT: Kind = kind("", "v1", "ServiceAccount", "serviceaccounts", true);
pub(crate) const DEPLOYMENT: Kind = kind("apps", "v1", "Deployment", "deployments", true);
pub(crate) const REPLICA_SET: Kind = kind("apps", "v1", "ReplicaSet", "replicasets", true);
pub(crate) const DAEMON_SET: Kind = kind("apps", "v1", "DaemonSet", "daemonsets", true);
pub(crate) const JOB: Kind = kind("batch", "v1", "Job", "jobs", true);
pub(crate) const CRD: Kind =
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false);
pub(crate) const MACHINE_SET: Kind = kind("machine.openshift.io", "v1beta1", "MachineSet", "machinesets", true);
pub(crate) const MACHINE: Kind = kind("machine.openshift.io", "v1beta1", "Machine", "machines", true);
pub(crate) const INFRASTRUCTURE: Kind = kind("config.openshift.io", "v1", "Infrastructure", "infrastructures", false);
pub(crate) const CLUSTER_VERSION: Kind = kind("config.openshift.io", "v1", "ClusterVersion", "clusterversions", false);
pub(crate) const CATALOG_SOURCE: Kind =
    kind("operators.coreos.com", "v1alpha1", "CatalogSource", "catalogsources", true);
pub(crate) const OPERATOR_GROUP: Kind = kind("operators.coreos.com", "v1", "OperatorGroup", "operatorgroups", true);
pub(crate) const SUBSCRIPTION: Kind = kind("operators.coreos.com", "v1alpha1", "Subscription", "subscriptions", true);
pub(crate) const INSTALL_PLAN: Kind = kind("operators.coreos.com", "v1alpha1", "InstallPlan", "installplans", true);
pub(crate) const CSV: Kind =
    kind("operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "clusterserviceversions", true);
pub(crate) const NFD: Kind = kind("nfd.openshift.io", "v1", "NodeFeatureDiscovery", "nodefeaturediscoveries", true);
pub(crate) const CLUSTER_POLICY: Kind = kind("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", false);

impl Kind {
    /// `group/version` as objects spell it.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: self.api_version(),
            kind: self.name.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// An object of this kind without content. An empty namespace means none.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> DynamicObject {
        let mut object = DynamicObject::new(name, &self.resource());
        object.data = serde_json::json!({});
        if self.namespaced {
            object.metadata.namespace = Some(namespace.to_owned());
        }
        object
    }
}
