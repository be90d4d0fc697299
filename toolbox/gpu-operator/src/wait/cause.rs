//! Everything that keeps the stack from being ready, each with its next action.

use toolbox_core::engine::{Cause, Exit, FailureVerdict};

/// Why the GPU stack is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StackCause {
    /// No node has NFD's labels, so the operator cannot know which have GPUs.
    NoNfdLabels,
    /// NFD labels nodes, and none of them has an NVIDIA GPU.
    NoGpuNode { nodes: usize },
    /// The operator is not installed.
    NotInstalled { looked: String },
    /// Several Subscriptions of the operator.
    SeveralInstalled { namespaces: Vec<String> },
    /// The CRD is there, a ClusterPolicy is not.
    NoClusterPolicy,
    /// The operator obeys another ClusterPolicy.
    Ignored { obeyed: String },
    /// A taint keeps a DaemonSet off GPU nodes.
    Tainted { taint: String, nodes: Vec<String> },
    /// The driver container cannot find the packages of the running kernel.
    NoKernelHeaders { line: String, node: String },
    /// No driver-toolkit image for the nodes' operating system.
    NoToolkitTag { os: String, tags: Vec<String> },
    /// The driver container crashes for another reason.
    DriverCrash { line: String, node: String, restarts: i64 },
    /// A check in the validator failed.
    ValidationFailed { check: String, node: String, last: String },
    /// The namespace lacks the monitoring label although this version sets it.
    NotMonitored { version: String },
}

impl Cause for StackCause {
    fn code(&self) -> &'static str {
        match self {
            StackCause::NoNfdLabels => "no-nfd-label",
            StackCause::NoGpuNode { .. } => "no-gpu-node",
            StackCause::NotInstalled { .. } => "operator-not-installed",
            StackCause::SeveralInstalled { .. } => "several-operators",
            StackCause::NoClusterPolicy => "no-cluster-policy",
            StackCause::Ignored { .. } => "cluster-policy-ignored",
            StackCause::Tainted { .. } => "node-tainted",
            StackCause::NoKernelHeaders { .. } => "no-kernel-headers",
            StackCause::NoToolkitTag { .. } => "no-driver-toolkit-tag",
            StackCause::DriverCrash { .. } => "driver-crash-loop",
            StackCause::ValidationFailed { .. } => "validator-failed",
            StackCause::NotMonitored { .. } => "namespace-not-monitored",
        }
    }

    fn text(&self) -> String {
        match self {
            StackCause::NoNfdLabels => {
                "no node is labelled by node feature discovery, so the operator cannot tell which have GPUs".to_owned()
            }
            StackCause::NoGpuNode { nodes } => {
                format!("no GPU node: none of the {nodes} nodes has an NVIDIA PCI label")
            }
            StackCause::NotInstalled { looked } => {
                format!("the GPU Operator is not installed: {looked}")
            }
            StackCause::SeveralInstalled { namespaces } => {
                format!("the GPU Operator is installed more than once: in {}", namespaces.join(" and "))
            }
            StackCause::NoClusterPolicy => "no ClusterPolicy exists, so the operator has nothing to do".to_owned(),
            StackCause::Ignored { obeyed } => {
                format!("the operator ignores this ClusterPolicy and obeys `{obeyed}`")
            }
            StackCause::Tainted { taint, nodes } => {
                format!("has no pod on {}: the taint {taint} keeps it away", nodes.join(", "))
            }
            StackCause::NoKernelHeaders { line, node } => {
                format!("the driver on node {node} finds no packages for the running kernel: {line}")
            }
            StackCause::NoToolkitTag { os, tags } => format!(
                "no driver-toolkit tag for {os} (there is {}), so the driver cannot be built for the nodes' kernel",
                if tags.is_empty() { "none".to_owned() } else { tags.join(", ") }
            ),
            StackCause::DriverCrash { line, node, restarts } => {
                format!("the driver on node {node} crashed {restarts} times, last with: {line}")
            }
            StackCause::ValidationFailed { check, node, last } => {
                format!("{check} fails on node {node} ({last})")
            }
            StackCause::NotMonitored { version } => format!(
                "lacks the label openshift.io/cluster-monitoring, which version {version} sets itself, so its metrics are not collected"
            ),
        }
    }

    fn next(&self) -> String {
        match self {
            StackCause::NoNfdLabels => "install node feature discovery: tbx nfd deploy",
            StackCause::NoGpuNode { .. } => "add a GPU node: tbx cluster scale g4dn.xlarge 1",
            StackCause::NotInstalled { .. } => {
                "install it: tbx gpu-operator deploy-from-operatorhub"
            }
            StackCause::SeveralInstalled { .. } => {
                "undeploy one of them: tbx gpu-operator undeploy-from-operatorhub --namespace NAMESPACE"
            }
            StackCause::NoClusterPolicy => {
                "create it: tbx gpu-operator deploy-from-operatorhub does, also for an operator that is there"
            }
            StackCause::Ignored { .. } => {
                "delete the ClusterPolicy that is not wanted: kubectl delete clusterpolicies.nvidia.com NAME"
            }
            StackCause::Tainted { .. } => {
                "remove the taint, or add a toleration under spec.daemonsets.tolerations of the ClusterPolicy"
            }
            StackCause::NoKernelHeaders { .. } => {
                "use the driver toolkit (operator 1.9 or later), or renew the nodes' entitlement"
            }
            StackCause::NoToolkitTag { .. } => {
                "mirror the driver-toolkit image of this OpenShift release, or use an entitlement and driver.use_ocp_driver_toolkit=false"
            }
            StackCause::DriverCrash { .. } => {
                "read the driver's log in the run directory; the fault is in the driver image or the GPU"
            }
            StackCause::ValidationFailed { .. } => {
                "read the check's log below; the driver pod looks healthy even when the card is broken"
            }
            StackCause::NotMonitored { .. } => {
                "label it: kubectl label namespaces NAMESPACE openshift.io/cluster-monitoring=true"
            }
        }
        .to_owned()
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            StackCause::NoNfdLabels
            | StackCause::NoGpuNode { .. }
            | StackCause::NotInstalled { .. }
            | StackCause::SeveralInstalled { .. }
            | StackCause::NoClusterPolicy
            | StackCause::Ignored { .. }
            | StackCause::Tainted { .. } => FailureVerdict::Configuration,
            StackCause::NoToolkitTag { .. } => FailureVerdict::Infrastructure,
            StackCause::NoKernelHeaders { .. }
            | StackCause::DriverCrash { .. }
            | StackCause::ValidationFailed { .. }
            | StackCause::NotMonitored { .. } => FailureVerdict::Product,
        }
    }

    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Sorts a crashed driver by what its last log lines say.
pub(crate) fn classify_driver_crash(log: &str, node: &str, restarts: i64) -> StackCause {
    let interesting = |line: &str| {
        let line = line.to_ascii_lowercase();
        ["error", "fail", "unable", "could not", "not found"].iter().any(|word| line.contains(word))
    };
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.iter().rev().copied().find(|line| interesting(line));
    let line = line.or(lines.last().copied());
    let Some(line) = line else {
        return StackCause::DriverCrash { line: "nothing in its log".to_owned(), node: node.to_owned(), restarts };
    };
    let about_packages = [
        "kernel-headers",
        "kernel-devel",
        "kernel-core",
        "linux-headers",
        "elfutils-libelf",
        "Could not resolve Linux kernel version",
    ];
    let named = |text: &str| about_packages.iter().any(|word| text.contains(word));
    if let Some(found) = lines.iter().rev().find(|line| named(line) && interesting(line)) {
        return StackCause::NoKernelHeaders { line: (*found).to_owned(), node: node.to_owned() };
    }
    StackCause::DriverCrash { line: line.to_owned(), node: node.to_owned(), restarts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_kernel_headers_is_told_from_one_that_is_broken() {
        let log = "Installing Linux kernel headers...\nError: Unable to find a match: kernel-headers-4.18.0-000.el8 kernel-devel-4.18.0-000.el8\nStopping NVIDIA persistence daemon...\n";
        let cause = classify_driver_crash(log, "gpu-1", 6);
        assert_eq!(cause.code(), "no-kernel-headers");
        assert!(cause.text().contains("kernel-headers-4.18.0-000.el8"));

        let log = "modprobe: ERROR: could not insert 'nvidia': No such device\n";
        let cause = classify_driver_crash(log, "gpu-1", 3);
        assert_eq!(
            cause.text(),
            "the driver on node gpu-1 crashed 3 times, last with: modprobe: ERROR: could not insert 'nvidia': No such device"
        );
        assert!(classify_driver_crash("", "gpu-1", 3).text().ends_with("nothing in its log"));
    }
}
