//! Node life: a registered node becomes Ready, and nodes that are not are tainted.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::cloud::conditions;
use crate::controllers::kit::{Cache, Context, Controller, Kind, NODE, Read, Timers, identity, is_true};

/// The kubelet's node status and the node lifecycle controller.
pub(crate) struct Nodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl Controller for Nodes {
    const KINDS: &'static [Kind] = &[NODE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for node in cache.all(NODE) {
            if node.is_deleted() {
                continue;
            }
            let quirks = &context.scenario.quirks;
            let never = quirks.node_never_ready && quirks.concerns("nodeNeverReady", identity::names_of_node(&node));
            if !is_true(&node, "Ready") && !never {
                let wait = context.draw(context.scenario.timings.node_ready, "nodeReady", &identity::of_node(&node));
                if timers.passed(format!("{}/ready", node.uid()), wait) {
                    cache.status(NODE, &node, json!({"conditions": conditions(true, &context.stamp())})).await?;
                }
            }
            let node = cache.get(NODE, "", node.name()).unwrap_or(node);
            taint(cache, &node).await?;
        }
        Ok(())
    }
}

async fn taint(cache: &mut Cache, node: &DynamicObject) -> Result<(), kube::Error> {
    let mut taints: Vec<Value> = node.list("/spec/taints").to_vec();
    let ready = is_true(node, "Ready");
    taints.retain(|taint| taint["key"] != NOT_READY || (!ready && taint["effect"] == "NoSchedule"));
    if !ready && !taints.iter().any(|taint| taint["key"] == NOT_READY) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
    let taints = if taints.is_empty() { Value::Null } else { taints.into() };
    cache.patch(NODE, node, json!({"spec": {"taints": taints}})).await
}
