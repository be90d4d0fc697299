//! DaemonSets: one pod on every node that the template selects and tolerates.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::deployment::nonzero;
use super::{is_finished, is_ready, pod_from, template_hash};
use crate::controllers::kit::{
    Cache, Context, Controller, DAEMON_SET, Kind, NODE, POD, Read, Timers, selects_node, untolerated,
};

/// The DaemonSet controller.
pub(crate) struct DaemonSets;

const HASH: &str = "controller-revision-hash";

impl Controller for DaemonSets {
    const KINDS: &'static [Kind] = &[DAEMON_SET, NODE, POD];

    async fn reconcile(&mut self, _: &Context, cache: &mut Cache, _: &mut Timers) -> Result<(), kube::Error> {
        let nodes = cache.all(NODE);
        for set in cache.all(DAEMON_SET) {
            if !set.is_deleted() {
                one(cache, &nodes, &set).await?;
            }
        }
        Ok(())
    }
}

async fn one(
    cache: &mut Cache,
    nodes: &[std::sync::Arc<DynamicObject>],
    set: &DynamicObject,
) -> Result<(), kube::Error> {
    let template = template(set);
    let hash = template_hash(&template);
    let mut pods: BTreeMap<String, std::sync::Arc<DynamicObject>> = BTreeMap::new();
    let mut leaving: BTreeSet<String> = BTreeSet::new();
    for pod in cache.within(POD, set.namespace()).into_iter().filter(|pod| pod.owned_by(set.uid())) {
        let node = target(&pod).to_owned();
        let stale = pod.label(HASH) != Some(&hash) || is_finished(&pod) || pods.contains_key(&node);
        if pod.is_deleted() {
            leaving.insert(node);
        } else if stale {
            cache.delete(POD, &pod, false).await?;
            leaving.insert(node);
        } else {
            pods.insert(node, pod);
        }
    }
    let (mut desired, mut current, mut ready) = (0, 0, 0);
    for node in nodes.iter().filter(|node| !node.is_deleted()) {
        let spec = &template["spec"];
        // A pod that is there stays when only NoSchedule taints appear.
        let stays = selects_node(spec, node) && untolerated(spec, node, &["NoExecute"]).is_none();
        let goes_there = stays && untolerated(spec, node, &["NoSchedule", "NoExecute"]).is_none();
        match pods.remove(node.name()) {
            Some(pod) if stays => {
                desired += 1;
                current += 1;
                ready += i64::from(is_ready(&pod));
            }
            Some(pod) => cache.delete(POD, &pod, false).await?,
            None if goes_there => {
                desired += 1;
                if !leaving.contains(node.name()) {
                    current += 1;
                    cache.create(POD, &pod_on(set, &template, &hash, node.name())).await?;
                }
            }
            None => {}
        }
    }
    for orphan in pods.values() {
        cache.delete(POD, orphan, true).await?;
    }
    let status = json!({
        "observedGeneration": set.generation(),
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": current,
        "updatedNumberScheduled": nonzero(current),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberAvailable": nonzero(ready),
        "numberUnavailable": nonzero(desired - ready),
    });
    cache.status(DAEMON_SET, set, status).await
}

/// The template with the tolerations that every daemon pod gets.
fn template(set: &DynamicObject) -> Value {
    let mut template = set.at("/spec/template").clone();
    let mut tolerations = template["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["not-ready", "unreachable"] {
        tolerations
            .push(json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute"}));
    }
    for key in ["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"] {
        tolerations
            .push(json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoSchedule"}));
    }
    template["spec"]["tolerations"] = tolerations.into();
    template
}

/// A pod for one node; the scheduler binds it there.
fn pod_on(set: &DynamicObject, template: &Value, hash: &str, node: &str) -> DynamicObject {
    let mut pod = pod_from(DAEMON_SET, set, template);
    pod.metadata.labels.get_or_insert_default().insert(HASH.to_owned(), hash.to_owned());
    pod.data["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}],
    }}});
    pod
}

/// The node that a daemon pod is meant for.
fn target(pod: &DynamicObject) -> &str {
    let pinned = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    match pod.text("/spec/nodeName") {
        "" => pod.text(pinned),
        node => node,
    }
}
