//! Machine sets: as many machines as wanted, and counts that lag behind until nodes are ready.

use kube::core::DynamicObject;
use serde_json::json;

use crate::controllers::kit::{
    Cache, Context, Controller, Kind, MACHINE, MACHINE_SET, NODE, Read, Timers, is_true, owner_reference,
    selector_matches,
};

/// The machine set controller. It never replaces a Failed machine.
pub(crate) struct MachineSets;

impl Controller for MachineSets {
    const KINDS: &'static [Kind] = &[MACHINE_SET, MACHINE, NODE];

    async fn reconcile(&mut self, _: &Context, cache: &mut Cache, _: &mut Timers) -> Result<(), kube::Error> {
        for set in cache.all(MACHINE_SET) {
            if !set.is_deleted() {
                one(cache, &set).await?;
            }
        }
        Ok(())
    }
}

async fn one(cache: &mut Cache, set: &DynamicObject) -> Result<(), kube::Error> {
    let wanted = set.at("/spec/replicas").as_i64().unwrap_or(1);
    let selector = set.at("/spec/selector");
    let mut machines = cache.within(MACHINE, set.namespace());
    machines.retain(|machine| selector_matches(selector, machine.metadata.labels.as_ref()) && !machine.is_deleted());
    let mut present = i64::try_from(machines.len()).unwrap_or(i64::MAX);
    // A template that the selector does not match would make machines without end; the real webhook refuses it.
    let labels = serde_json::from_value(set.at("/spec/template/metadata/labels").clone()).ok();
    if selector_matches(selector, labels.as_ref()) {
        while present < wanted {
            let mut machine = MACHINE.object(set.namespace(), "");
            machine.metadata.name = None;
            machine.metadata.generate_name = Some(format!("{}-", set.name()));
            machine.metadata.labels.clone_from(&labels);
            machine.metadata.annotations =
                serde_json::from_value(set.at("/spec/template/metadata/annotations").clone()).ok();
            machine.metadata.owner_references = Some(vec![owner_reference(MACHINE_SET, set)]);
            machine.data = json!({"spec": set.at("/spec/template/spec")});
            cache.create(MACHINE, &machine).await?;
            present += 1;
        }
    }
    // Machines that never became nodes go first, then the youngest names.
    machines.sort_by_key(|machine| (!machine.text("/status/nodeRef/name").is_empty(), machine.name().to_owned()));
    for machine in machines.iter().take(usize::try_from(present - wanted).unwrap_or(0)) {
        cache.delete(MACHINE, machine, false).await?;
    }
    let kept = machines.iter().skip(usize::try_from(present - wanted).unwrap_or(0));
    let ready = kept
        .filter_map(|machine| cache.get(NODE, "", machine.text("/status/nodeRef/name")))
        .filter(|node| is_true(node, "Ready"))
        .count();
    let ready = if ready == 0 { serde_json::Value::Null } else { ready.into() };
    let now = present.min(wanted.max(0));
    let status = json!({
        "observedGeneration": set.generation(),
        "replicas": now,
        "fullyLabeledReplicas": if now == 0 { serde_json::Value::Null } else { now.into() },
        "readyReplicas": ready,
        "availableReplicas": ready,
    });
    cache.status(MACHINE_SET, set, status).await
}
