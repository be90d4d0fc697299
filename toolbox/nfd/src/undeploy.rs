//! `nfd undeploy`: the instance, the operator and what came with it; the labels when asked.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolbox_core::cluster::nodes::NFD_PREFIX;
use toolbox_core::cluster::olm::PackageRef;
use toolbox_core::cluster::olm::steps::{Found, UninstallSpec, uninstall};
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{Plan, Report, Step, StepSpec, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::deploy::{NAMESPACE, PACKAGE};

/// Remove the NFD Operator
///
/// In the order that lets finalizers finish: instance, Subscription, CSV, CRD, namespace. Namespace and OperatorGroup go
/// only if this program made them. Node labels stay unless they are asked to go.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct UndeployArgs {
    /// Namespace it is installed in; found by its Subscription when not given
    #[arg(long, value_name = "NAMESPACE", value_parser = toolbox_core::cli::namespace)]
    namespace: Option<String>,
    /// Also remove NFD's labels from the nodes
    #[arg(long)]
    remove_labels: bool,
    /// Strip finalizers that nobody removes
    #[arg(long)]
    strip_finalizers: bool,
}

/// The removal, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndeploySpec {
    /// The namespace asked for.
    pub namespace: Option<String>,
    /// Whether the nodes lose their labels.
    pub remove_labels: bool,
    /// Whether finalizers that nobody removes are stripped.
    pub strip_finalizers: bool,
}

impl From<UndeployArgs> for UndeploySpec {
    fn from(args: UndeployArgs) -> Self {
        Self {
            namespace: args.namespace.filter(|name| !name.is_empty()),
            remove_labels: args.remove_labels,
            strip_finalizers: args.strip_finalizers,
        }
    }
}

/// Handles to what a removal yields.
#[derive(Clone, Copy, Debug)]
pub struct Undeployed {
    /// What was there.
    pub found: Out<Found>,
    /// Ready when everything that was to go is gone.
    pub gone: Out<()>,
}

/// Adds the steps that remove NFD.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &UndeploySpec, after: After) -> Undeployed {
    let operator = UninstallSpec {
        id: "nfd",
        title: "NFD",
        package: PackageRef::new(PACKAGE, ""),
        namespace: spec.namespace.clone(),
        usual_namespace: NAMESPACE,
        instances: vec![kinds::NODE_FEATURE_DISCOVERY],
        strip_finalizers: spec.strip_finalizers,
        instances_deadline: Duration::from_secs(300),
    };
    let removed = uninstall(plan, cluster, operator, after);
    let gone = if spec.remove_labels { labels_step(plan, cluster, removed.gone) } else { removed.gone };
    Undeployed { found: removed.found, gone }
}

/// Only after NFD is gone: its workers would bring the labels back.
fn labels_step(plan: &mut Plan, cluster: &Cluster, gone: Out<()>) -> Out<()> {
    let describe = StepSpec::change("nfd.labels", "NFD's labels go from the nodes").does(Effect::any(
        Act::Patch,
        &kinds::NODE,
        None,
    ));
    let cluster = cluster.clone();
    plan.step(describe, gone, |cx, _| async move {
        let nodes = cluster.list(&Query::all(&kinds::NODE)).await?;
        let mut changed = Vec::new();
        for node in &nodes {
            if let Some(patch) = without_labels(node) {
                cluster.patch(&cx, &kinds::NODE, None, node.name(), patch).await?;
                changed.push(node.name().to_owned());
            }
        }
        if changed.is_empty() {
            return Ok(Step::AlreadySo((), "no node has any".to_owned()));
        }
        Ok(Step::Changed((), format!("removed from {}", changed.join(", "))))
    })
}

/// Says that labels are left, since whoever asks for GPU nodes next takes them for live ones.
fn labels_left(nodes: &[Object]) -> Option<String> {
    let labelled = nodes.iter().filter(|node| without_labels(node).is_some()).count();
    (labelled > 0).then(|| format!("NFD's labels on {labelled} nodes (--remove-labels takes them away)"))
}

/// The merge patch that takes every label with NFD's prefix away, and its annotations about them.
fn without_labels(node: &Object) -> Option<Value> {
    const ANNOTATIONS: &str = "nfd.node.kubernetes.io/";
    let nulls = |pointer: &str, prefix: &str| -> Map<String, Value> {
        let map = node.at(pointer).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter(|(key, _)| key.starts_with(prefix))
            .map(|(key, _)| (key.clone(), Value::Null))
            .collect()
    };
    let labels = nulls("/metadata/labels", NFD_PREFIX);
    let annotations = nulls("/metadata/annotations", ANNOTATIONS);
    if labels.is_empty() && annotations.is_empty() {
        return None;
    }
    Some(json!({"metadata": {"labels": labels, "annotations": annotations}}))
}

impl Verb for UndeploySpec {
    fn name(&self) -> VerbName {
        VerbName::new("nfd_operator", "undeploy_from_operatorhub")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("nfd_operator undeploy_from_operatorhub");
        let undeployed = steps(&mut plan, &env.cluster, &self, After::nothing());
        let cluster = env.cluster.clone();
        let answer = plan.step(
            StepSpec::ask("nfd.answer", "what stays").does(Effect::any(Act::Read, &kinds::NODE, None)),
            (undeployed.found, undeployed.gone),
            |_, (found, _)| async move {
                let text =
                    if found.is_empty() { "NFD was not installed".to_owned() } else { "NFD is removed".to_owned() };
                let nodes = cluster.list(&Query::all(&kinds::NODE)).await?;
                let mut stays = found.stays.clone();
                stays.extend(labels_left(&nodes));
                let lines = std::iter::once(text.clone()).chain(stays.iter().map(|what| format!("stays: {what}")));
                let report = Report {
                    text: lines.collect::<Vec<_>>().join("\n"),
                    json: json!({"found": *found, "stays": stays}),
                };
                Ok(Step::AlreadySo(report, text))
            },
        );
        plan.answer(&answer, Report::clone);
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_with_the_prefix_goes_and_no_other() {
        let node = Object::new(json!({"metadata": {"name": "n", "labels": {
            "feature.node.kubernetes.io/pci-10de.present": "true", "kubernetes.io/os": "linux"}}}));
        assert_eq!(
            without_labels(&node).unwrap()["metadata"]["labels"],
            json!({"feature.node.kubernetes.io/pci-10de.present": null})
        );
        let bare = Object::new(json!({"metadata": {"labels": {"a": "b"}}}));
        assert_eq!(without_labels(&bare), None);
        assert_eq!(
            labels_left(&[node, bare.clone()]).unwrap(),
            "NFD's labels on 1 nodes (--remove-labels takes them away)"
        );
        assert_eq!(labels_left(&[bare]), None);
    }
}
