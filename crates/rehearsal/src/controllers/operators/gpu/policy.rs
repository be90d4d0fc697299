//! The operator itself: labels GPU nodes, makes the operands, and says `ready` in the way version 1.11 does.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::json;

use super::operands;
use crate::controllers::kit::{
    CLUSTER_POLICY, CRD, Cache, Context, Controller, DAEMON_SET, DEPLOYMENT, Kind, NAMESPACE, NODE, Read, Timers,
};
use crate::controllers::olm::GLOBAL_NAMESPACE;
use crate::controllers::operators::presence;

/// The operator's own Deployment.
pub(crate) const DEPLOYMENT_NAME: &str = "gpu-operator";
const MONITORING: &str = "openshift.io/cluster-monitoring";
/// Spellings of "there is an NVIDIA device" in NFD's labels.
const PCI_LABELS: [&str; 3] = [
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
];

/// The GPU Operator.
pub(crate) struct GpuOperator;

impl Controller for GpuOperator {
    const KINDS: &'static [Kind] = &[CRD, DEPLOYMENT, DAEMON_SET, NODE, NAMESPACE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        if !presence::served(cache, CLUSTER_POLICY) {
            return Ok(());
        }
        add_finalizers(context, cache).await?;
        let Some(operator) = presence::running(cache, DEPLOYMENT_NAME) else { return Ok(()) };
        let policies = cache.all(CLUSTER_POLICY);
        let Some(policy) = policies.iter().min_by_key(|policy| policy.metadata.creation_timestamp.clone()) else {
            return Ok(());
        };
        for surplus in policies.iter().filter(|other| other.uid() != policy.uid()) {
            cache.status(CLUSTER_POLICY, surplus, json!({"state": "ignored"})).await?;
        }
        if policy.is_deleted() {
            return Ok(());
        }
        let wait = context.draw(context.scenario.timings.operator_reconcile, "operatorReconcile", DEPLOYMENT_NAME);
        if timers.passed(format!("{}/reconcile", policy.uid()), wait) {
            one(context, cache, timers, policy, operator.namespace()).await?;
        }
        Ok(())
    }
}

async fn one(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    policy: &DynamicObject,
    operator_namespace: &str,
) -> Result<(), kube::Error> {
    let namespace = operand_namespace(operator_namespace);
    prepare_namespace(cache, operator_namespace, namespace).await?;
    let nodes = cache.all(NODE);
    if !nodes.iter().any(|node| has_nfd_labels(node)) {
        return set_state(cache, policy, namespace, "notReady").await;
    }
    let gpu_nodes: Vec<&Arc<DynamicObject>> = nodes.iter().filter(|node| has_gpu_label(node)).collect();
    for node in &gpu_nodes {
        let kind = node.label("node.kubernetes.io/instance-type").unwrap_or_default();
        let mig = context.scenario.instance_types.get(kind).is_some_and(crate::scenario::InstanceType::has_mig);
        cache.patch(NODE, node, json!({"metadata": {"labels": operands::node_labels(mig)}})).await?;
    }
    if gpu_nodes.is_empty() {
        // Plain NFD labels are no event for the operator: it notices them when it looks again.
        let waits = policy.text("/status/state") == "notReady";
        let resync = context.draw(context.scenario.timings.gpu_operator_resync, "gpuOperatorResync", "");
        if !waits || timers.passed(format!("{}/resync", policy.uid()), resync) {
            return set_state(cache, policy, namespace, "ready").await;
        }
        return Ok(());
    }
    for set in operands::wanted(context, policy, namespace) {
        match cache.get(DAEMON_SET, namespace, set.name()) {
            None => cache.create(DAEMON_SET, &set).await?,
            Some(old) if old.annotation(operands::HASH) == set.annotation(operands::HASH) => {}
            Some(old) => {
                let annotations = json!({operands::HASH: set.annotation(operands::HASH)});
                let template = json!({"spec": set.at("/spec/template/spec")});
                let patch = json!({"metadata": {"annotations": annotations}, "spec": {"template": template}});
                cache.patch(DAEMON_SET, &old, patch).await?;
            }
        }
    }
    let late = operands::wanted(context, policy, namespace)
        .iter()
        .any(|set| cache.get(DAEMON_SET, namespace, set.name()).is_none_or(|set| !is_complete(&set)));
    match (late, policy.text("/status/state")) {
        (false, _) => set_state(cache, policy, namespace, "ready").await,
        // A policy that has not been ready yet keeps an empty state.
        (true, "ready") => set_state(cache, policy, namespace, "notReady").await,
        (true, _) => Ok(()),
    }
}

fn is_complete(set: &DynamicObject) -> bool {
    set.int("/status/observedGeneration") >= set.generation()
        && set.at("/status/desiredNumberScheduled").is_number()
        && set.int("/status/numberReady") == set.int("/status/desiredNumberScheduled")
}

async fn set_state(cache: &mut Cache, policy: &DynamicObject, namespace: &str, state: &str) -> Result<(), kube::Error> {
    cache.status(CLUSTER_POLICY, policy, json!({"namespace": namespace, "state": state})).await
}

/// Before 1.9 operands have a namespace of their own.
fn operand_namespace(operator_namespace: &str) -> &str {
    if operator_namespace == GLOBAL_NAMESPACE { "gpu-operator-resources" } else { operator_namespace }
}

/// From 1.9 on the operator labels its namespace for monitoring; before, it makes the operands' one.
async fn prepare_namespace(cache: &mut Cache, operator_namespace: &str, namespace: &str) -> Result<(), kube::Error> {
    match cache.get(NAMESPACE, "", namespace) {
        None => cache.create(NAMESPACE, &NAMESPACE.object("", namespace)).await,
        Some(found) if namespace == operator_namespace => {
            cache.patch(NAMESPACE, &found, json!({"metadata": {"labels": {MONITORING: "true"}}})).await
        }
        Some(_) => Ok(()),
    }
}

/// A finalizer that nobody removes, where the scenario wants it.
async fn add_finalizers(context: &Context, cache: &mut Cache) -> Result<(), kube::Error> {
    if context.scenario.quirks.stuck_finalizer != CLUSTER_POLICY.plural {
        return Ok(());
    }
    for policy in cache.all(CLUSTER_POLICY) {
        if policy.metadata.finalizers.is_none() && !policy.is_deleted() {
            cache.patch(CLUSTER_POLICY, &policy, json!({"metadata": {"finalizers": ["example.test/cleanup"]}})).await?;
        }
    }
    Ok(())
}

fn has_nfd_labels(node: &DynamicObject) -> bool {
    node.metadata.labels.iter().flatten().any(|(key, _)| key.starts_with("feature.node.kubernetes.io/"))
}

fn has_gpu_label(node: &DynamicObject) -> bool {
    PCI_LABELS.iter().any(|label| node.label(label) == Some("true"))
}
