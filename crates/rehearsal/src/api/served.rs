//! What is served, and for whom: the table of kinds and verbs.

use std::fmt::Write as _;

use super::{builtin, discovery, kinds::KindDef, review};

/// Who needs a kind that is served from the start: tools of this workspace first, clients by name.
const NEEDED: &[(&str, &str, &str)] = &[
    ("", "pods", "every wait for an operator; `kubectl`"),
    ("", "services", "OLM, the GPU Operator; `kubectl`"),
    ("", "configmaps", "`tbx gpu-operator` (burn, captures); `kubectl`"),
    ("", "secrets", "OLM, operators; `kubectl`"),
    ("", "serviceaccounts", "OLM, operators; `kubectl create token`"),
    ("", "events", "why a pod does not start; `kubectl describe`"),
    ("", "endpoints", "the garbage collector of a namespace, APIService; `kubectl`"),
    ("", "persistentvolumeclaims", "`kubectl get pvc`, ResourceQuota"),
    ("", "resourcequotas", "why a pod is not made; `kubectl`"),
    ("", "limitranges", "why a pod is not made; `kubectl`"),
    ("", "podtemplates", "the garbage collector of a namespace"),
    ("", "replicationcontrollers", "`kubectl get all`"),
    ("", "namespaces", "every tool"),
    ("", "nodes", "`tbx nfd`, `tbx cluster`, `tbx gpu-operator`; `kubectl`"),
    ("", "persistentvolumes", "`kubectl get pv`"),
    ("apps", "deployments", "OLM, every wait for an operator; `kubectl`, Ansible"),
    ("apps", "replicasets", "deployments; `kubectl describe`"),
    ("apps", "statefulsets", "`kubectl get all`"),
    ("apps", "daemonsets", "`tbx nfd`, `tbx gpu-operator`; `kubectl`"),
    ("apps", "controllerrevisions", "daemon sets; `kubectl rollout history`"),
    ("batch", "jobs", "OLM (unpacking bundles), `tbx cleanup`; `kubectl`"),
    ("batch", "cronjobs", "`kubectl get all`"),
    ("coordination.k8s.io", "leases", "the run's lease of a cluster; nodes, leaders"),
    ("discovery.k8s.io", "endpointslices", "APIService; `kubectl describe service`"),
    ("events.k8s.io", "events", "`kubectl events`, operators that record in the newer form"),
    ("policy", "poddisruptionbudgets", "`kubectl drain`"),
    ("networking.k8s.io", "networkpolicies", "OLM's catalogs; `kubectl`"),
    ("networking.k8s.io", "ingresses", "`kubectl get ingress`"),
    ("autoscaling", "horizontalpodautoscalers", "`kubectl get all`, `kubectl autoscale`"),
    ("rbac.authorization.k8s.io", "roles", "OLM, rights; `kubectl`"),
    ("rbac.authorization.k8s.io", "rolebindings", "OLM, rights; `kubectl`"),
    ("rbac.authorization.k8s.io", "clusterroles", "OLM, rights; `kubectl`"),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "OLM, rights; `kubectl`"),
    ("node.k8s.io", "runtimeclasses", "the GPU Operator (`nvidia`)"),
    ("scheduling.k8s.io", "priorityclasses", "pods of operators; `kubectl`"),
    ("storage.k8s.io", "storageclasses", "`kubectl get sc`"),
    ("storage.k8s.io", "csidrivers", "`kubectl get csidrivers`"),
    ("storage.k8s.io", "csinodes", "`kubectl describe node`"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "OLM, every wait for an operator's kind; `kubectl`"),
    ("apiregistration.k8s.io", "apiservices", "`tbx` (why package manifests are not listed); `kubectl`"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "OLM (operators' webhooks)"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "OLM (operators' webhooks)"),
    ("machine.openshift.io", "machines", "`tbx cluster`"),
    ("machine.openshift.io", "machinesets", "`tbx cluster`; `oc scale`"),
    ("config.openshift.io", "clusterversions", "`tbx` (the platform's version)"),
    ("config.openshift.io", "clusteroperators", "`tbx gpu-operator` (captures); `oc`"),
    ("config.openshift.io", "infrastructures", "`oc`, must-gather"),
    ("config.openshift.io", "networks", "`oc`, must-gather"),
    ("config.openshift.io", "proxies", "the GPU Operator, OLM"),
    ("config.openshift.io", "operatorhubs", "`oc get operatorhub`"),
    ("machineconfiguration.openshift.io", "machineconfigpools", "`oc get mcp`"),
    ("machineconfiguration.openshift.io", "machineconfigs", "`oc get mc`"),
    ("project.openshift.io", "projects", "`oc project`"),
    ("security.openshift.io", "securitycontextconstraints", "the GPU Operator"),
    ("route.openshift.io", "routes", "`oc get route`"),
    ("image.openshift.io", "imagestreams", "`tbx gpu-operator` (driver toolkit)"),
    ("operators.coreos.com", "catalogsources", "`tbx nfd`, `tbx gpu-operator`"),
    ("operators.coreos.com", "subscriptions", "`tbx nfd`, `tbx gpu-operator`"),
    ("operators.coreos.com", "installplans", "`tbx nfd`, `tbx gpu-operator`"),
    ("operators.coreos.com", "clusterserviceversions", "`tbx nfd`, `tbx gpu-operator`"),
    ("operators.coreos.com", "operatorgroups", "`tbx nfd`, `tbx gpu-operator`"),
    ("operators.coreos.com", "operatorconditions", "operators under OLM"),
    ("operators.coreos.com", "operators", "`tbx gpu-operator` (captures); `oc`"),
    ("packages.operators.coreos.com", "packagemanifests", "`tbx nfd`, `tbx gpu-operator`; `oc`"),
];

/// Who needs the kinds that are answered and not stored.
const REVIEWS: &[(&str, &str)] = &[
    ("tokenreviews", "operators' metrics (kube-rbac-proxy)"),
    ("selfsubjectreviews", "`kubectl auth whoami`, whom a run acts as"),
    ("selfsubjectaccessreviews", "what a run may not do, before it changes anything; `kubectl auth can-i`"),
    ("selfsubjectrulesreviews", "`kubectl auth can-i --list`"),
    ("subjectaccessreviews", "operators' metrics (kube-rbac-proxy)"),
    ("localsubjectaccessreviews", "operators with rights in one namespace"),
];

fn needed(group: &str, plural: &str) -> &'static str {
    NEEDED.iter().find(|(own, name, _)| *own == group && *name == plural).map_or("", |(_, _, who)| who)
}

/// The table of everything that a server has from the start, as Markdown.
pub fn table() -> String {
    let mut out = String::from(
        "# What the rehearsal serves\n\nGenerated by `cargo xtask generate` from the kinds themselves. What is not in \
         this table answers as absent,\nuntil a custom resource definition brings it; its kinds are served with all \
         verbs of a stored kind.\n",
    );
    let parts = [
        ("Kubernetes", builtin::kubernetes()),
        ("OpenShift (when the scenario is one)", builtin::openshift()),
        ("Operator Lifecycle Manager (the same)", builtin::olm()),
    ];
    for (title, kinds) in parts {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "\n## {title}\n\n| kind | version | verbs | subresources | needed by |\n|---|---|---|---|---|\n"
        );
        for kind in kinds {
            let _ = writeln!(out, "{}", row(&kind));
        }
    }
    out.push_str("\n## Questions that are answered and not stored\n\n| kind | verbs | needed by |\n|---|---|---|\n");
    for (group, plural) in review::names() {
        let who = REVIEWS.iter().find(|(name, _)| *name == plural).map_or("", |(_, who)| who);
        let _ = writeln!(out, "| {plural}.{group} | create | {who} |");
    }
    out
}

fn row(kind: &KindDef) -> String {
    let versions: Vec<&str> = kind.versions.iter().map(|version| version.name.as_str()).collect();
    let subresources: Vec<String> = discovery::subresources(kind)
        .into_iter()
        .map(|(name, _, _, verbs)| format!("{name} ({})", verbs.join(", ")))
        .collect();
    let verbs = discovery::verbs(kind);
    let verbs = if verbs.len() == 8 { "all".to_owned() } else { verbs.join(", ") };
    let dot = if kind.group.is_empty() { "" } else { "." };
    format!(
        "| {}{dot}{} | {} | {verbs} | {} | {} |",
        kind.plural,
        kind.group,
        versions.join(", "),
        subresources.join(", "),
        needed(&kind.group, &kind.plural)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_needed_by_somebody() {
        let kinds = [builtin::kubernetes(), builtin::openshift(), builtin::olm()].concat();
        let idle: Vec<&str> = kinds
            .iter()
            .filter(|kind| needed(&kind.group, &kind.plural).is_empty())
            .map(|kind| kind.plural.as_str())
            .collect();
        assert!(idle.is_empty(), "nobody needs {idle:?}");
        let gone: Vec<&str> = NEEDED
            .iter()
            .filter(|(group, plural, _)| !kinds.iter().any(|kind| kind.group == *group && kind.plural == *plural))
            .map(|(_, plural, _)| *plural)
            .collect();
        assert!(gone.is_empty(), "not served: {gone:?}");
        for (_, plural) in review::names() {
            assert!(REVIEWS.iter().any(|(name, _)| *name == plural), "nobody needs {plural}");
        }
    }
}
