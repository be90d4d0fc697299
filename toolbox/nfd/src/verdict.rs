//! What nodes and NFD's objects say about labels: there, on their way, or not coming as things are.

use toolbox_core::cluster::nodes::{gpu_label, has_nfd_labels, is_worker, taints};
use toolbox_core::cluster::{Object, Watched};
use toolbox_core::engine::{Cause, Exit, FailureVerdict, ObjectRef, Verdict, Why};

use crate::Labels;

/// Why there are no labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoLabels {
    /// Nothing of NFD is on the cluster.
    NotInstalled,
    /// The operator is there, and nobody has made its instance.
    NoInstance,
    /// NFD is there and has not labelled any node.
    NotLabelled {
        /// Nodes that taints keep NFD's workers away from, with the taints.
        tainted: Vec<String>,
    },
    /// NFD has labelled nodes, and sees no GPU on any.
    NoGpu {
        /// Workers it has looked at.
        seen: usize,
        /// Workers it has not looked at, with the taints that keep it away.
        unseen: Vec<String>,
    },
}

impl Cause for NoLabels {
    fn code(&self) -> &'static str {
        match self {
            NoLabels::NotInstalled => "nfd-not-installed",
            NoLabels::NoInstance => "nfd-no-instance",
            NoLabels::NotLabelled { .. } => "nfd-no-labels",
            NoLabels::NoGpu { .. } => "no-gpu-label",
        }
    }

    fn text(&self) -> String {
        match self {
            NoLabels::NotInstalled => "no node has NFD labels, and NFD is not installed".to_owned(),
            NoLabels::NoInstance => {
                "no node has NFD labels: the operator is installed, and there is no NodeFeatureDiscovery".to_owned()
            }
            NoLabels::NotLabelled { tainted } if tainted.is_empty() => "no node has NFD labels yet".to_owned(),
            NoLabels::NotLabelled { tainted } => {
                format!("no node has NFD labels yet; tainted: {}", tainted.join(", "))
            }
            NoLabels::NoGpu { seen, unseen } if unseen.is_empty() => {
                format!("no NVIDIA GPU on any of the {seen} workers that NFD has looked at")
            }
            NoLabels::NoGpu { seen, unseen } => format!(
                "no NVIDIA GPU on any of the {seen} workers that NFD has looked at; it has not looked at {}",
                unseen.join(", ")
            ),
        }
    }

    fn next(&self) -> String {
        match self {
            NoLabels::NotInstalled => "install it: tbx nfd deploy".to_owned(),
            NoLabels::NoInstance => "let it be made: tbx nfd deploy".to_owned(),
            NoLabels::NotLabelled { .. } => {
                "see NFD's workers (daemonsets.apps) in their namespace, and the taints they tolerate".to_owned()
            }
            NoLabels::NoGpu { unseen, .. } if unseen.is_empty() => {
                "add a GPU node (tbx cluster scale), or see NFD's PCI settings in the NodeFeatureDiscovery".to_owned()
            }
            NoLabels::NoGpu { .. } => {
                "let NFD's workers tolerate those taints (spec.operand of the NodeFeatureDiscovery), or add a GPU node"
                    .to_owned()
            }
        }
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            NoLabels::NotInstalled | NoLabels::NoInstance => FailureVerdict::Configuration,
            NoLabels::NotLabelled { .. } | NoLabels::NoGpu { .. } => FailureVerdict::Infrastructure,
        }
    }

    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// What of NFD is on the cluster. `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Whether the operator is installed.
    pub(crate) operator: Option<bool>,
    /// Whether it has an instance.
    pub(crate) instance: Option<bool>,
}

impl Sight {
    /// From what is watched. A kind that is not served has no objects.
    pub(crate) fn of(csvs: &Watched, instances: &Watched) -> Self {
        let any = |watched: &Watched, wanted: &dyn Fn(&Object) -> bool| match watched
            .judge_absence(|objects| Verdict::Done(objects.iter().any(wanted)))
        {
            Verdict::Done(found) => Some(found),
            Verdict::Pending(_) | Verdict::Failed(_) => None,
        };
        Self { operator: any(csvs, &is_installed_operator), instance: any(instances, &|_| true) }
    }
}

/// Whether this is a CSV of the NFD operator that has succeeded.
pub(crate) fn is_installed_operator(csv: &Object) -> bool {
    csv.text("/status/phase") == Some("Succeeded")
        && csv.list("/spec/customresourcedefinitions/owned").iter().any(|owned| owned["kind"] == "NodeFeatureDiscovery")
}

/// The names of the nodes that have the labels.
pub(crate) fn labelled(labels: Labels, nodes: &[Object]) -> Vec<String> {
    nodes
        .iter()
        .filter(|node| match labels {
            Labels::Any => has_nfd_labels(node),
            Labels::Gpu => gpu_label(node).is_some(),
        })
        .map(|node| node.name().to_owned())
        .collect()
}

/// Whether a node has the labels. That NFD is not there at all is a reason to wait too, and so is an operator without an
/// instance: both may be about to be made by somebody else. The reason says at once which it is.
pub(crate) fn verdict(labels: Labels, nodes: &[Object], sight: Sight) -> Verdict<Vec<String>> {
    let found = labelled(labels, nodes);
    if !found.is_empty() {
        return Verdict::Done(found);
    }
    let why = why(labels, nodes, sight);
    Verdict::Pending(why)
}

/// The answer no.
pub(crate) fn answer_no(labels: Labels, nodes: &[Object], sight: Sight) -> Why {
    why(labels, nodes, sight)
}

fn why(labels: Labels, nodes: &[Object], sight: Sight) -> Why {
    let seen = nodes.iter().any(has_nfd_labels);
    let workers = || nodes.iter().filter(|node| is_worker(node));
    let with_taints = |node: &Object| {
        let taints = taints(node);
        if taints.is_empty() { node.name().to_owned() } else { format!("{} ({})", node.name(), taints.join(", ")) }
    };
    let cause = if seen && labels == Labels::Gpu {
        NoLabels::NoGpu {
            seen: workers().filter(|node| has_nfd_labels(node)).count(),
            unseen: workers().filter(|node| !has_nfd_labels(node)).map(with_taints).collect(),
        }
    } else {
        match (sight.operator, sight.instance) {
            (Some(true), Some(false)) => NoLabels::NoInstance,
            (Some(false), Some(false)) => NoLabels::NotInstalled,
            _ => NoLabels::NotLabelled {
                tainted: nodes.iter().filter(|node| !taints(node).is_empty()).map(with_taints).collect(),
            },
        }
    };
    let object = ObjectRef::new("v1", "Node", None, "<any>");
    Why::new(object, &cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(name: &str, labels: Value, taints: Value) -> Object {
        Object::new(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}),
        )
    }

    const OS: &str = "feature.node.kubernetes.io/system-os_release.ID";
    const THERE: Sight = Sight { operator: Some(true), instance: Some(true) };

    #[test]
    fn any_spelling_on_any_node_is_a_hit() {
        let only_3d =
            node("worker-gpu-1", json!({"feature.node.kubernetes.io/pci-0302_10de.present": "true"}), json!([]));
        assert_eq!(verdict(Labels::Gpu, &[only_3d], THERE), Verdict::Done(vec!["worker-gpu-1".to_owned()]));
    }

    #[test]
    fn an_operator_without_an_instance_is_said_so() {
        let bare = [node("w", json!({}), json!([]))];
        let sight = Sight { operator: Some(true), instance: Some(false) };
        assert_eq!(why(Labels::Any, &bare, sight).code, "nfd-no-instance");
        let nothing = Sight { operator: Some(false), instance: Some(false) };
        assert_eq!(why(Labels::Gpu, &bare, nothing).next, "install it: tbx nfd deploy");
        assert_eq!(why(Labels::Any, &bare, Sight::default()).code, "nfd-no-labels");
    }

    #[test]
    fn nodes_that_nfd_cannot_reach_are_named_with_their_taints() {
        let nodes = [
            node("worker-1", json!({OS: "rhcos"}), json!([])),
            node("worker-gpu-1", json!({}), json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])),
            node("master-0", json!({"node-role.kubernetes.io/master": ""}), json!([])),
        ];
        let why = why(Labels::Gpu, &nodes, THERE);
        assert_eq!(
            why.cause,
            "no NVIDIA GPU on any of the 1 workers that NFD has looked at; it has not looked at worker-gpu-1 (nvidia.com/gpu:NoSchedule)"
        );
        assert!(why.next.contains("tolerate"));
    }
}
