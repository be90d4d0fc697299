//! The conditions of the stack, on objects as they are at one moment.

use toolbox_core::cluster::Object;
use toolbox_core::cluster::kinds;
use toolbox_core::cluster::nodes::has_nfd_labels;
use toolbox_core::engine::{FailureVerdict, ObjectRef, Verdict, Why};

use super::cause::StackCause;
use super::sets::{self, Late};
use super::trouble::{self, Troubles};
use crate::burn::{allocatable_gpus, is_gpu_node};
use crate::capture::{pod_status, pods_of};
use crate::count;
use crate::names::{GPU_COUNT, GPU_RESOURCE};
use crate::version::OperatorVersion;

/// Everything that is looked at, all of it at the same moment.
pub(crate) struct Look<'a> {
    pub(crate) version: &'a OperatorVersion,
    pub(crate) operand_namespace: &'a str,
    pub(crate) nodes: &'a [Object],
    pub(crate) policies: &'a [Object],
    pub(crate) sets: &'a [Object],
    pub(crate) pods: &'a [Object],
    pub(crate) now: jiff::Timestamp,
}

impl Look<'_> {
    fn gpu_nodes(&self) -> Vec<Object> {
        let gpu = |node: &&Object| is_gpu_node(node) && !node.is_deleting();
        self.nodes.iter().filter(gpu).cloned().collect()
    }

    /// The GPU nodes, and the ClusterPolicy that the operator obeys. Without a GPU node everything looks ready.
    fn base(&self) -> Verdict<(Vec<Object>, &Object)> {
        let gpu_nodes = self.gpu_nodes();
        if gpu_nodes.is_empty() {
            return Verdict::Failed(no_gpu_node(self.nodes.len()));
        }
        let state = |policy: &&Object| policy.text("/status/state").unwrap_or("").to_owned();
        let alive: Vec<&Object> = self.policies.iter().filter(|policy| !policy.is_deleting()).collect();
        if let Some(policy) = alive.iter().find(|policy| state(policy) != "ignored") {
            return Verdict::Done((gpu_nodes, policy));
        }
        match alive.first() {
            Some(policy) => Verdict::Failed(Why::new(
                policy.refer(),
                &StackCause::Ignored { obeyed: "another one, which is being deleted".to_owned() },
            )),
            None => Verdict::Pending(Why::new(policy_kind(), &StackCause::NoClusterPolicy)),
        }
    }

    fn late(&self, policy: &Object, gpu_nodes: &[Object]) -> Vec<Late> {
        sets::late_sets(policy, self.version, self.sets, gpu_nodes)
    }

    /// The driver runs on every GPU node.
    pub(crate) fn driver(&self, troubles: &mut Troubles) -> Verdict<String> {
        self.base().and_then(|(gpu_nodes, policy)| {
            if !sets::wants_driver(policy) {
                return Verdict::Done("the ClusterPolicy asks for no driver".to_owned());
            }
            let drivers: Vec<&Object> = self.pods.iter().filter(|pod| trouble::is_driver_pod(pod)).collect();
            if let Some(why) = troubles.first(&drivers, self.now) {
                return Verdict::Failed(why);
            }
            let late = self.late(policy, &gpu_nodes);
            let driver = late.iter().find(|late| sets::is_driver(&late.name));
            match driver {
                Some(driver) => self.waits_for(driver, &late),
                None => Verdict::Done(format!("the driver is loaded on {}", count(gpu_nodes.len(), "node"))),
            }
        })
    }

    /// Every operand runs on every node it is for.
    pub(crate) fn operands(&self, troubles: &mut Troubles) -> Verdict<String> {
        self.base().and_then(|(gpu_nodes, policy)| {
            let pods: Vec<&Object> = self.pods.iter().collect();
            if let Some(why) = troubles.first(&pods, self.now) {
                return Verdict::Failed(why);
            }
            let late = self.late(policy, &gpu_nodes);
            if let Some(first) = late.first() {
                return self.waits_for(first, &late);
            }
            if !self.version.has_validator()
                && !self.pods.iter().any(|pod| {
                    pod.name().starts_with("nvidia-device-plugin-validation")
                        && pod.text("/status/phase") == Some("Succeeded")
                })
            {
                let object = kinds::POD.object(Some(self.operand_namespace), "nvidia-device-plugin-validation");
                let why = Why::waiting(object, "validation-not-done", "has not succeeded yet");
                return Verdict::Pending(why);
            }
            let running =
                self.sets.iter().filter(|set| set.number("/status/desiredNumberScheduled").unwrap_or(0) > 0).count();
            Verdict::Done(format!("{} ready", count(running, "DaemonSet")))
        })
    }

    /// Every GPU node is described by GPU feature discovery and offers its GPUs to pods.
    pub(crate) fn capacity(&self) -> Verdict<String> {
        self.base().and_then(|(gpu_nodes, policy)| {
            let wants_labels = policy.flag("/spec/gfd/enabled") != Some(false);
            let mut total = 0;
            for node in &gpu_nodes {
                if wants_labels && node.label(GPU_COUNT).is_none() {
                    let text = format!("has no label {GPU_COUNT} yet, which GPU feature discovery sets");
                    return Verdict::Pending(product(Why::waiting(node.refer(), "no-gpu-count-label", text)));
                }
                let gpus = allocatable_gpus(node);
                if gpus == 0 {
                    let text = format!("offers no {GPU_RESOURCE} to pods yet");
                    return Verdict::Pending(product(Why::waiting(node.refer(), "no-allocatable-gpu", text)));
                }
                total += gpus;
            }
            Verdict::Done(format!("{} on {} can be used", count(total as usize, "GPU"), count(gpu_nodes.len(), "node")))
        })
    }

    /// The ClusterPolicy is ready, and what it manages still is: a `ready` of before a change is not believed.
    pub(crate) fn policy(&self, troubles: &mut Troubles) -> Verdict<String> {
        self.operands(troubles)
            .and_then(|_| self.capacity())
            .and_then(|what| self.base().map(|(_, policy)| (policy.clone(), what)))
            .and_then(|(policy, what)| {
                let state = policy.text("/status/state").unwrap_or("");
                let ready = policy.condition("Ready");
                let stale = ready.is_some_and(|ready| {
                    ready.observed_generation.is_some_and(|observed| observed < policy.generation())
                });
                if state == "ready" && !stale && !ready.is_some_and(|ready| ready.is_false()) {
                    return Verdict::Done(format!("{} is ready: {what}", policy.name()));
                }
                let detail = match (state, ready.map(|ready| ready.text())) {
                    (_, Some(text)) if !text.is_empty() => text,
                    ("", _) => "the operator has not set its state yet".to_owned(),
                    (state, _) => format!("its state is {state}"),
                };
                let text = format!("is not ready although everything it manages is: {detail}");
                Verdict::Pending(product(Why::waiting(policy.refer(), "cluster-policy-not-ready", text)))
            })
    }

    /// All that is late, one line each: which DaemonSet, how many pods, and what one of them says.
    pub(crate) fn late_lines(&self) -> Vec<String> {
        let Verdict::Done((gpu_nodes, policy)) = self.base() else {
            return Vec::new();
        };
        self.late(policy, &gpu_nodes)
            .iter()
            .map(|late| format!("{}: {}{}", late.name, late.text, self.one_pod(late)))
            .collect()
    }

    fn waits_for(&self, late: &Late, others: &[Late]) -> Verdict<String> {
        let object = kinds::DAEMON_SET.object(Some(self.operand_namespace), &late.name);
        if let Some((taint, nodes)) = &late.taint {
            let cause = StackCause::Tainted { taint: taint.clone(), nodes: nodes.clone() };
            return Verdict::Failed(Why::new(object, &cause));
        }
        let text = format!("{}{}{}", late.text, self.one_pod(late), also(others, late));
        Verdict::Pending(product(Why::waiting(object, "operand-not-ready", text)))
    }

    /// What one of the set's pods that are not ready says.
    fn one_pod(&self, late: &Late) -> String {
        let set = self.sets.iter().find(|set| set.name() == late.name);
        let not_ready = |pod: &&&Object| !pod.condition("Ready").is_some_and(|ready| ready.is_true());
        let pod = set.and_then(|set| pods_of(set, self.pods).iter().find(not_ready).copied());
        pod.map_or_else(String::new, |pod| {
            let node = pod.text("/spec/nodeName").unwrap_or("no node");
            format!(" ({} on {node} is {})", pod.name(), pod_status(pod))
        })
    }
}

/// The names of the others that are late, so that a line tells of all of them.
fn also(late: &[Late], but: &Late) -> String {
    let names: Vec<&str> = late.iter().map(|late| late.name.as_str()).filter(|name| *name != but.name).collect();
    if names.is_empty() { String::new() } else { format!("; also late: {}", names.join(", ")) }
}

/// A pending reason that, should it outlive its deadline, is the operator's or the driver's fault.
fn product(why: Why) -> Why {
    why.or_else(
        FailureVerdict::Product,
        "see the operator's log and the pods of its namespace: tbx gpu-operator capture-deployment-state",
    )
}

fn policy_kind() -> ObjectRef {
    kinds::CLUSTER_POLICY.object(None, "<any>")
}

/// No node is a GPU node.
pub(crate) fn no_gpu_node(nodes: usize) -> Why {
    let object = kinds::NODE.object(None, "<feature.node.kubernetes.io/pci-10de.present=true>");
    Why::new(object, &StackCause::NoGpuNode { nodes })
}

/// The nodes that can be used for GPUs; failed when NFD has not labelled any node, or none has a GPU.
pub(crate) fn gpu_nodes(nodes: &[Object]) -> Result<Vec<String>, Why> {
    let names: Vec<String> = nodes
        .iter()
        .filter(|node| is_gpu_node(node) && !node.is_deleting())
        .map(|node| node.name().to_owned())
        .collect();
    if !names.is_empty() {
        return Ok(names);
    }
    if nodes.iter().any(has_nfd_labels) {
        return Err(no_gpu_node(nodes.len()));
    }
    let object = kinds::NODE.object(None, "<feature.node.kubernetes.io/>");
    Err(Why::new(object, &StackCause::NoNfdLabels))
}
