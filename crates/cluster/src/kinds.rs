//! Every kind that the tools touch, each with its group and version: short names are owned by several groups.

use toolbox_engine::plan::Kind;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $group:literal $version:literal $kind:literal $plural:literal $namespaced:literal;)*) => {
        $($(#[$doc])* pub const $name: Kind = Kind::new($group, $version, $kind, $plural, $namespaced);)*

        /// All of them.
        pub const ALL: &[Kind] = &[$($name),*];
    };
}

kinds! {
    /// A node.
    NODE = "" "v1" "Node" "nodes" false;
    /// A namespace.
    NAMESPACE = "" "v1" "Namespace" "namespaces" false;
    /// A pod.
    POD = "" "v1" "Pod" "pods" true;
    /// A service.
    SERVICE = "" "v1" "Service" "services" true;
    /// A service account.
    SERVICE_ACCOUNT = "" "v1" "ServiceAccount" "serviceaccounts" true;
    /// A config map.
    CONFIG_MAP = "" "v1" "ConfigMap" "configmaps" true;
    /// A secret.
    SECRET = "" "v1" "Secret" "secrets" true;
    /// An event, as the core API shows it.
    EVENT = "" "v1" "Event" "events" true;
    /// A deployment.
    DEPLOYMENT = "apps" "v1" "Deployment" "deployments" true;
    /// A daemon set.
    DAEMON_SET = "apps" "v1" "DaemonSet" "daemonsets" true;
    /// A replica set.
    REPLICA_SET = "apps" "v1" "ReplicaSet" "replicasets" true;
    /// A stateful set.
    STATEFUL_SET = "apps" "v1" "StatefulSet" "statefulsets" true;
    /// A job.
    JOB = "batch" "v1" "Job" "jobs" true;
    /// A lease.
    LEASE = "coordination.k8s.io" "v1" "Lease" "leases" true;
    /// A role.
    ROLE = "rbac.authorization.k8s.io" "v1" "Role" "roles" true;
    /// A role binding.
    ROLE_BINDING = "rbac.authorization.k8s.io" "v1" "RoleBinding" "rolebindings" true;
    /// A cluster role.
    CLUSTER_ROLE = "rbac.authorization.k8s.io" "v1" "ClusterRole" "clusterroles" false;
    /// A cluster role binding.
    CLUSTER_ROLE_BINDING = "rbac.authorization.k8s.io" "v1" "ClusterRoleBinding" "clusterrolebindings" false;
    /// A custom resource definition.
    CRD = "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" false;
    /// A registered group of an aggregated API.
    API_SERVICE = "apiregistration.k8s.io" "v1" "APIService" "apiservices" false;
    /// A machine of the Machine API (not Cluster API's kind of the same name).
    MACHINE = "machine.openshift.io" "v1beta1" "Machine" "machines" true;
    /// A machine set of the Machine API (not Cluster API's kind of the same name).
    MACHINE_SET = "machine.openshift.io" "v1beta1" "MachineSet" "machinesets" true;
    /// A cluster autoscaler of the Machine API.
    MACHINE_AUTOSCALER = "autoscaling.openshift.io" "v1beta1" "MachineAutoscaler" "machineautoscalers" true;
    /// OpenShift's version.
    CLUSTER_VERSION = "config.openshift.io" "v1" "ClusterVersion" "clusterversions" false;
    /// OpenShift's operators.
    CLUSTER_OPERATOR = "config.openshift.io" "v1" "ClusterOperator" "clusteroperators" false;
    /// OpenShift's platform.
    INFRASTRUCTURE = "config.openshift.io" "v1" "Infrastructure" "infrastructures" false;
    /// A tagged set of images.
    IMAGE_STREAM = "image.openshift.io" "v1" "ImageStream" "imagestreams" true;
    /// A package in a catalog.
    PACKAGE_MANIFEST = "packages.operators.coreos.com" "v1" "PackageManifest" "packagemanifests" true;
    /// A catalog of operators.
    CATALOG_SOURCE = "operators.coreos.com" "v1alpha1" "CatalogSource" "catalogsources" true;
    /// Which namespaces the operators of a namespace serve.
    OPERATOR_GROUP = "operators.coreos.com" "v1" "OperatorGroup" "operatorgroups" true;
    /// A wish to have an operator (not Knative's kind of the same name).
    SUBSCRIPTION = "operators.coreos.com" "v1alpha1" "Subscription" "subscriptions" true;
    /// What OLM is about to install.
    INSTALL_PLAN = "operators.coreos.com" "v1alpha1" "InstallPlan" "installplans" true;
    /// An installed operator version.
    CSV = "operators.coreos.com" "v1alpha1" "ClusterServiceVersion" "clusterserviceversions" true;
    /// NFD's operand.
    NODE_FEATURE_DISCOVERY = "nfd.openshift.io" "v1" "NodeFeatureDiscovery" "nodefeaturediscoveries" true;
    /// What an NFD worker found on a node.
    NODE_FEATURE = "nfd.k8s-sigs.io" "v1alpha1" "NodeFeature" "nodefeatures" true;
    /// The GPU Operator's operand (not the policy engine's kind of the same name).
    CLUSTER_POLICY = "nvidia.com" "v1" "ClusterPolicy" "clusterpolicies" false;
}

/// One of [`ALL`] by API version and kind.
pub fn find(api_version: &str, kind: &str) -> Option<Kind> {
    ALL.iter().find(|known| known.kind == kind && known.api_version() == api_version).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_group_and_not_by_name_alone() {
        assert_eq!(find("machine.openshift.io/v1beta1", "MachineSet"), Some(MACHINE_SET));
        assert_eq!(find("cluster.x-k8s.io/v1beta1", "MachineSet"), None);
        assert_eq!(find("v1", "Pod"), Some(POD));
    }
}
