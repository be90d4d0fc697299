//! The default scheduler: nodes that fit, or an event that says why none does.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controllers::kit::{
    Cache, Context, Controller, Kind, NODE, POD, Read, Recorder, Timers, is_true, selects_node, untolerated,
    with_condition,
};

/// The default scheduler.
pub(crate) struct Scheduler {
    events: Recorder,
    /// Pods bound but not yet seen so.
    assumed: BTreeMap<String, String>,
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        Self { events: Recorder::new("default-scheduler", POD), assumed: BTreeMap::new() }
    }
}

impl Controller for Scheduler {
    const KINDS: &'static [Kind] = &[POD, NODE];

    async fn reconcile(&mut self, context: &Context, cache: &mut Cache, _: &mut Timers) -> Result<(), kube::Error> {
        let nodes = cache.all(NODE);
        for pod in cache.all(POD) {
            if !pod.text("/spec/nodeName").is_empty() || pod.is_deleted() {
                self.assumed.remove(pod.uid());
                continue;
            }
            let ours = matches!(pod.text("/spec/schedulerName"), "" | "default-scheduler");
            if !ours || self.assumed.contains_key(pod.uid()) {
                continue;
            }
            match self.place(cache, &nodes, &pod) {
                Ok(node) => {
                    cache.bind(&pod, &node).await?;
                    self.assumed.insert(pod.uid().to_owned(), node.clone());
                    let message = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name());
                    self.events.record(context, cache, &pod, false, "Scheduled", &message).await;
                }
                Err(message) => self.refuse(context, cache, &pod, &message).await?,
            }
        }
        Ok(())
    }
}

impl Scheduler {
    fn place(&self, cache: &Cache, nodes: &[Arc<DynamicObject>], pod: &DynamicObject) -> Result<String, String> {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut fitting = Vec::new();
        for node in nodes {
            match self.objection(cache, pod, node) {
                None => fitting.push((self.on(cache, node.name()).count(), node.name())),
                Some(reason) => *reasons.entry(reason).or_default() += 1,
            }
        }
        if let Some((_, name)) = fitting.into_iter().min() {
            return Ok(name.to_owned());
        }
        let total = nodes.len();
        if total == 0 {
            return Err("no nodes available to schedule pods".to_owned());
        }
        let mut list: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        list.sort();
        let short: usize =
            reasons.iter().filter(|(reason, _)| reason.starts_with("Insufficient")).map(|(_, count)| count).sum();
        let mut preemption = Vec::new();
        if short > 0 {
            preemption.push(format!("{short} No preemption victims found for incoming pod"));
        }
        if total > short {
            preemption.push(format!("{} Preemption is not helpful for scheduling", total - short));
        }
        Err(format!(
            "0/{total} nodes are available: {}. preemption: 0/{total} nodes are available: {}.",
            list.join(", "),
            preemption.join(", "),
        ))
    }

    /// Pods on a node that still need its resources.
    fn on<'a>(&'a self, cache: &Cache, node: &'a str) -> impl Iterator<Item = Arc<DynamicObject>> + 'a {
        cache.all(POD).into_iter().filter(move |pod| {
            let there = pod.text("/spec/nodeName") == node
                || self.assumed.get(pod.uid()).is_some_and(|assumed| assumed == node);
            there && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
        })
    }

    fn objection(&self, cache: &Cache, pod: &DynamicObject, node: &DynamicObject) -> Option<String> {
        let spec = pod.at("/spec");
        let unschedulable = node.at("/spec/unschedulable") == &Value::Bool(true);
        if unschedulable && !is_daemon(pod) {
            return Some("node(s) were unschedulable".to_owned());
        }
        if !selects_node(spec, node) {
            return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
        }
        if let Some(taint) = untolerated(spec, node, &["NoSchedule", "NoExecute"]) {
            let text = |key: &str| taint[key].as_str().unwrap_or_default();
            return Some(format!("node(s) had untolerated taint {{{}: {}}}", text("key"), text("value")));
        }
        for (resource, wanted) in requests(spec) {
            let offered = node.at("/status/allocatable").get(&resource).map(quantity).unwrap_or_default();
            let used: u64 = self
                .on(cache, node.name())
                .filter(|other| other.uid() != pod.uid())
                .filter_map(|other| requests(other.at("/spec")).get(&resource).copied())
                .sum();
            if used + wanted > offered {
                return Some(format!("Insufficient {resource}"));
            }
        }
        None
    }

    async fn refuse(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        pod: &DynamicObject,
        message: &str,
    ) -> Result<(), kube::Error> {
        let known = crate::controllers::kit::condition(pod, "PodScheduled")
            .is_some_and(|condition| condition["message"] == message);
        if known {
            return Ok(());
        }
        let present = pod.list("/status/conditions");
        let conditions = with_condition(present, "PodScheduled", false, "Unschedulable", message, &context.stamp());
        cache.status(POD, pod, json!({"phase": "Pending", "conditions": conditions})).await?;
        self.events.record(context, cache, pod, true, "FailedScheduling", message).await;
        Ok(())
    }
}

fn is_daemon(pod: &DynamicObject) -> bool {
    pod.owner("DaemonSet").is_some()
}

/// Extended resources that a pod asks for. Requests default to limits; zero asks for nothing.
fn requests(spec: &Value) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        for (resource, amount) in container["resources"]["limits"].as_object().into_iter().flatten() {
            let amount = quantity(amount);
            if resource.contains('/') && amount > 0 {
                *sum.entry(resource.clone()).or_default() += amount;
            }
        }
    }
    sum
}

fn quantity(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).unwrap_or_default()
}

/// Whether a node may run anything yet.
pub(super) fn node_is_ready(node: &DynamicObject) -> bool {
    is_true(node, "Ready")
}
