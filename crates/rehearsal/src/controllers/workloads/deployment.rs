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
    revise(cache, deployment, &sets, &set, wanted).await?;
    let status = status(context, timers, deployment, &set, wanted);
    cache.status(DEPLOYMENT, deployment, status).await
}

/// The annotation that numbers a deployment's templates in the order of their use.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Numbers the present template's set, and brings the deployment's annotations to it.
async fn revise(
    cache: &mut Cache,
    deployment: &DynamicObject,
    sets: &[std::sync::Arc<DynamicObject>],
    set: &DynamicObject,
    wanted: i64,
) -> Result<(), kube::Error> {
    let number = |object: &DynamicObject| -> i64 {
        let found = object.metadata.annotations.as_ref().and_then(|all| all.get(REVISION)?.parse().ok());
        found.unwrap_or(0)
    };
    let others = sets.iter().filter(|other| other.name() != set.name()).map(|other| number(other)).max().unwrap_or(0);
    let revision = number(set).max(others + 1).to_string();
    let mut annotations: std::collections::BTreeMap<String, String> =
        deployment.metadata.annotations.clone().unwrap_or_default();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    annotations.insert("deployment.kubernetes.io/desired-replicas".to_owned(), wanted.to_string());
    annotations
        .insert("deployment.kubernetes.io/max-replicas".to_owned(), (wanted + surge(deployment, wanted)).to_string());
    annotations.insert(REVISION.to_owned(), revision.clone());
    if set.metadata.annotations.as_ref() != Some(&annotations) {
        cache.patch(REPLICA_SET, set, json!({"metadata": {"annotations": annotations}})).await?;
    }
    let present = deployment.metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
    if present != Some(&revision) {
        cache.patch(DEPLOYMENT, deployment, json!({"metadata": {"annotations": {REVISION: revision}}})).await?;
    }
    Ok(())
}

/// How many pods more than wanted there may be during a change, rounded up.
fn surge(deployment: &DynamicObject, wanted: i64) -> i64 {
    let given = deployment.at("/spec/strategy/rollingUpdate/maxSurge");
    let percent = given.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    given.as_i64().or_else(|| percent.map(|percent| (wanted * percent + 99) / 100)).unwrap_or(0)
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
    let mut conditions = with_condition(&conditions, "Progressing", !late, word, &text, &now);
    for condition in &mut conditions {
        let mut same = deployment
            .list("/status/conditions")
            .iter()
            .filter(|old| ["type", "status", "reason", "message"].iter().all(|field| old[field] == condition[field]));
        condition["lastUpdateTime"] =
            same.next().map_or_else(|| now.clone().into(), |old| old["lastUpdateTime"].clone());
    }
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
