//! The kinds that a server has from the start.

use super::kinds::KindDef;

/// The kinds of Kubernetes itself.
pub(super) fn kubernetes() -> Vec<KindDef> {
    let ns = KindDef::namespaced;
    let cluster = KindDef::cluster;
    vec![
        ns("", "v1", "Pod", "pods").short(&["po"]).in_all().no_generation(),
        ns("", "v1", "Service", "services").short(&["svc"]).in_all().no_generation(),
        ns("", "v1", "ConfigMap", "configmaps").short(&["cm"]).plain(),
        ns("", "v1", "Secret", "secrets").plain(),
        ns("", "v1", "ServiceAccount", "serviceaccounts").short(&["sa"]).plain(),
        ns("", "v1", "Event", "events").short(&["ev"]).plain(),
        ns("", "v1", "Endpoints", "endpoints").short(&["ep"]).plain(),
        ns("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims").short(&["pvc"]).no_generation(),
        ns("", "v1", "ResourceQuota", "resourcequotas").short(&["quota"]).no_generation(),
        ns("", "v1", "LimitRange", "limitranges").short(&["limits"]).plain(),
        ns("", "v1", "PodTemplate", "podtemplates").plain(),
        ns("", "v1", "ReplicationController", "replicationcontrollers").short(&["rc"]).in_all().scaled("spec.selector"),
        cluster("", "v1", "Namespace", "namespaces").short(&["ns"]).no_generation(),
        cluster("", "v1", "Node", "nodes").short(&["no"]).no_generation(),
        cluster("", "v1", "PersistentVolume", "persistentvolumes").short(&["pv"]).no_generation(),
        ns("apps", "v1", "Deployment", "deployments").short(&["deploy"]).in_all().scaled("spec.selector"),
        ns("apps", "v1", "ReplicaSet", "replicasets").short(&["rs"]).in_all().scaled("spec.selector"),
        ns("apps", "v1", "StatefulSet", "statefulsets").short(&["sts"]).in_all().scaled("spec.selector"),
        ns("apps", "v1", "DaemonSet", "daemonsets").short(&["ds"]).in_all(),
        ns("apps", "v1", "ControllerRevision", "controllerrevisions").plain(),
        ns("batch", "v1", "Job", "jobs").in_all(),
        ns("batch", "v1", "CronJob", "cronjobs").short(&["cj"]).in_all(),
        ns("coordination.k8s.io", "v1", "Lease", "leases").plain(),
        ns("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices").plain(),
        ns("events.k8s.io", "v1", "Event", "events").short(&["ev"]).plain(),
        ns("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets").short(&["pdb"]),
        ns("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies").short(&["netpol"]),
        ns("networking.k8s.io", "v1", "Ingress", "ingresses").short(&["ing"]),
        ns("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers").short(&["hpa"]).also("v1"),
        ns("rbac.authorization.k8s.io", "v1", "Role", "roles").plain(),
        ns("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings").plain(),
        cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles").plain(),
        cluster("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings").plain(),
        cluster("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses").plain(),
        cluster("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses").short(&["pc"]).plain(),
        cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses").short(&["sc"]).plain(),
        cluster("storage.k8s.io", "v1", "CSIDriver", "csidrivers").plain(),
        cluster("storage.k8s.io", "v1", "CSINode", "csinodes").plain(),
        cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
            .short(&["crd", "crds"]),
        cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices"),
        cluster(
            "admissionregistration.k8s.io",
            "v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        )
        .plain(),
        cluster("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
            .plain(),
    ]
}

/// The kinds that OpenShift adds and tools read.
pub(super) fn openshift() -> Vec<KindDef> {
    let ns = |group: &str, version: &str, kind: &str, plural: &str| {
        KindDef::namespaced(group, version, kind, plural).as_custom()
    };
    let cluster = |group: &str, version: &str, kind: &str, plural: &str| {
        KindDef::cluster(group, version, kind, plural).as_custom()
    };
    vec![
        ns("machine.openshift.io", "v1beta1", "Machine", "machines"),
        ns("machine.openshift.io", "v1beta1", "MachineSet", "machinesets").scaled("status.labelSelector"),
        cluster("config.openshift.io", "v1", "ClusterVersion", "clusterversions"),
        cluster("config.openshift.io", "v1", "ClusterOperator", "clusteroperators").short(&["co"]),
        cluster("config.openshift.io", "v1", "Infrastructure", "infrastructures"),
        cluster("config.openshift.io", "v1", "Network", "networks"),
        cluster("config.openshift.io", "v1", "Proxy", "proxies"),
        cluster("config.openshift.io", "v1", "OperatorHub", "operatorhubs"),
        cluster("machineconfiguration.openshift.io", "v1", "MachineConfigPool", "machineconfigpools").short(&["mcp"]),
        cluster("machineconfiguration.openshift.io", "v1", "MachineConfig", "machineconfigs").short(&["mc"]),
        cluster("project.openshift.io", "v1", "Project", "projects"),
        cluster("security.openshift.io", "v1", "SecurityContextConstraints", "securitycontextconstraints")
            .short(&["scc"]),
        ns("route.openshift.io", "v1", "Route", "routes"),
        ns("image.openshift.io", "v1", "ImageStream", "imagestreams").short(&["is"]),
    ]
}

/// The kinds of the Operator Lifecycle Manager.
pub(super) fn olm() -> Vec<KindDef> {
    let ns = |version: &str, kind: &str, plural: &str| {
        KindDef::namespaced("operators.coreos.com", version, kind, plural).as_custom()
    };
    vec![
        ns("v1alpha1", "CatalogSource", "catalogsources").short(&["catsrc"]),
        ns("v1alpha1", "Subscription", "subscriptions").short(&["sub", "subs"]),
        ns("v1alpha1", "InstallPlan", "installplans").short(&["ip"]),
        ns("v1alpha1", "ClusterServiceVersion", "clusterserviceversions").short(&["csv", "csvs"]),
        ns("v1", "OperatorGroup", "operatorgroups").short(&["og"]).also("v1alpha2"),
        ns("v2", "OperatorCondition", "operatorconditions").short(&["condition"]).also("v1"),
        KindDef::cluster("operators.coreos.com", "v1", "Operator", "operators").as_custom(),
        KindDef::namespaced("packages.operators.coreos.com", "v1", "PackageManifest", "packagemanifests").provided(),
    ]
}
