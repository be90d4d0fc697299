//! Deployments: one ReplicaSet per template, old ones scaled to zero, status from the present one.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::template_hash;
use crate::controllers::kit::{
    Cache, Context, Controller, DEPLOYMENT, Kind, REPLICA_SET, Read, Timers, owner_reference, with_condition,
};

/// The Deployment controller.
pub(crate) struct Deployments;

impl Controller for Deployments {
    const KINDS: &'static [Kind] = &[DEPLOYMENT, REPLICA_SET];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for deployment in cache.all(DEPLOYMENT) {
            if !deployment.is_deleted() {
                one(context, cache, timers, &deployment).await?;
            }
        }
        Ok(())
    }
}

async fn one(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    deployment: &DynamicObject,
) -> Result<(), kube::Error> {
    let wanted = deployment.at("/spec/replicas").as_i64().unwrap_or(1);
    let hash = template_hash(deployment.at("/spec/template"));
    let name = format!("{}-{hash}", deployment.name());
    let mut sets = cache.within(REPLICA_SET, deployment.namespace());
    sets.retain(|set| set.owned_by(deployment.uid()));
    for old in sets.iter().filter(|set| set.name() != name && set.int("/spec/replicas") > 0) {
        cache.patch(REPLICA_SET, old, json!({"spec": {"replicas": 0}})).await?;
    }
    match sets.iter().find(|set| set.name() == name) {
        Some(set) if set.int("/spec/replicas") == wanted => {}
        Some(set) => cache.patch(REPLICA_SET, set, json!({"spec": {"replicas": wanted}})).await?,
        None => cache.create(REPLICA_SET, &replica_set(deployment, &name, &hash, wanted)).await?,
    }
    let Some(set) = cache.get(REPLICA_SET, deployment.namespace(), &name) else { return Ok(()) };
    let status = status(context, timers, deployment, &set, wanted);
    cache.status(DEPLOYMENT, deployment, status).await
}

fn replica_set(deployment: &DynamicObject, name: &str, hash: &str, wanted: i64) -> DynamicObject {
    let mut set = REPLICA_SET.object(deployment.namespace(), name);
    let mut template = deployment.at("/spec/template").clone();
    let mut selector = deployment.at("/spec/selector").clone();
    template["metadata"]["labels"]["pod-template-hash"] = hash.into();
    selector["matchLabels"]["pod-template-hash"] = hash.into();
    set.metadata.labels = serde_json::from_value(template["metadata"]["labels"].clone()).ok();
    set.metadata.owner_references = Some(vec![owner_reference(DEPLOYMENT, deployment)]);
    set.data = json!({"spec": {"replicas": wanted, "selector": selector, "template": template}});
    set
}

fn status(
    context: &Context,
    timers: &mut Timers,
    deployment: &DynamicObject,
    set: &DynamicObject,
    wanted: i64,
) -> Value {
    let ready = set.int("/status/readyReplicas");
    let total = set.int("/status/replicas");
    let now = context.stamp();
    // The default strategy allows a quarter to be missing, rounded down.
    let enough = ready >= wanted - wanted / 4;
    let limit = Duration::from_secs(deployment.at("/spec/progressDeadlineSeconds").as_u64().unwrap_or(600));
    let late = !enough && timers.passed(format!("{}/{}/progress", deployment.uid(), set.name()), limit);
    let (word, text) = if enough {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let conditions = with_condition(deployment.list("/status/conditions"), "Available", enough, word, text, &now);
    let (word, text) = if late {
        ("ProgressDeadlineExceeded", format!("ReplicaSet \"{}\" has timed out progressing.", set.name()))
    } else if ready == wanted {
        ("NewReplicaSetAvailable", format!("ReplicaSet \"{}\" has successfully progressed.", set.name()))
    } else {
        ("ReplicaSetUpdated", format!("ReplicaSet \"{}\" is progressing.", set.name()))
    };
    let conditions = with_condition(&conditions, "Progressing", !late, word, &text, &now);
    json!({
        "observedGeneration": deployment.generation(),
        "replicas": total,
        "updatedReplicas": total,
        "readyReplicas": nonzero(ready),
        "availableReplicas": nonzero(ready),
        "unavailableReplicas": nonzero((wanted - ready).max(0)),
        "conditions": conditions,
    })
}

/// Counters of zero are left out, as the real controllers do.
pub(super) fn nonzero(number: i64) -> Value {
    if number == 0 { Value::Null } else { number.into() }
}
