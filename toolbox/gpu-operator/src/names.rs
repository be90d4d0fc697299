//! Names that the operator, its catalog and the cluster agree on.

/// Package of the operator.
pub(crate) const PACKAGE: &str = "gpu-operator-certified";
/// The catalog it is published in.
pub(crate) const CATALOG: &str = "certified-operators";
/// Where operators that watch every namespace live.
pub(crate) const GLOBAL_NAMESPACE: &str = "openshift-operators";
/// The namespace of its own that the operator gets when its bundle suggests none.
pub(crate) const OWN_NAMESPACE: &str = "nvidia-gpu-operator";
/// Where operators before 1.9 put the workloads they manage.
pub(crate) const LEGACY_OPERAND_NAMESPACE: &str = "gpu-operator-resources";
/// The group we make when the namespace has none.
pub(crate) const OPERATOR_GROUP: &str = "nvidia-gpu-operator-group";
/// Label of the operator's own pods.
pub(crate) const POD_SELECTOR: &str = "app=gpu-operator";
/// The CRD of the ClusterPolicy.
pub(crate) const CRD: &str = "clusterpolicies.nvidia.com";
/// The resource that the device plugin announces.
pub(crate) const GPU_RESOURCE: &str = "nvidia.com/gpu";
/// Set on a node by the operator once it takes the node for a GPU node.
pub(crate) const GPU_PRESENT: &str = "nvidia.com/gpu.present";
/// Set on a node by GPU feature discovery.
pub(crate) const GPU_COUNT: &str = "nvidia.com/gpu.count";
/// Makes OpenShift's Prometheus look into a namespace.
pub(crate) const MONITORING_LABEL: &str = "openshift.io/cluster-monitoring";
/// The namespace that the burn pods run in.
pub(crate) const BURN_NAMESPACE: &str = "default";
/// The image that the burn is compiled and run in.
pub(crate) const BURN_IMAGE: &str = "nvcr.io/nvidia/cuda:11.2.2-devel-ubi8";

/// The file that readers look in for the operator's version.
pub(crate) const VERSION_FILE: &str = "gpu_operator.version";

/// The workloads' namespace, given the operator's.
pub(crate) fn operand_namespace(operator_namespace: &str) -> &str {
    if operator_namespace == GLOBAL_NAMESPACE { LEGACY_OPERAND_NAMESPACE } else { operator_namespace }
}
