//! Machines: an instance from the cloud, or a failure that stays; then a node.

use std::collections::BTreeSet;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::cloud::{Cloud, NewNode, Refusal, instance, node_from};
use super::provider;
use crate::controllers::kit::{Cache, Context, Controller, Kind, MACHINE, NODE, Read, Recorder, Timers};

/// The machine controller and the cloud it talks to.
pub(crate) struct Machines {
    cloud: Cloud,
    events: Recorder,
    /// Uids of machines that were asked of the cloud, with the answer.
    asked: std::collections::BTreeMap<String, Result<u32, Refusal>>,
    returned: BTreeSet<String>,
}

const FINALIZER: &str = "machine.machine.openshift.io";

impl Machines {
    pub(crate) fn new() -> Self {
        Self {
            cloud: Cloud::default(),
            events: Recorder::new("machinecontroller", MACHINE),
            asked: std::collections::BTreeMap::new(),
            returned: BTreeSet::new(),
        }
    }
}

impl Controller for Machines {
    const KINDS: &'static [Kind] = &[MACHINE, NODE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for machine in cache.all(MACHINE) {
            if machine.is_deleted() {
                self.remove(context, cache, timers, &machine).await?;
            } else {
                self.advance(context, cache, timers, &machine).await?;
            }
        }
        Ok(())
    }
}

impl Machines {
    async fn advance(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
        machine: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let scenario = &context.scenario;
        let uid = machine.uid().to_owned();
        let (kind, zone) = provider::wanted(scenario, machine.at("/spec/providerSpec/value"));
        match machine.text("/status/phase") {
            "Failed" => {}
            "" => {
                let labels = json!({
                    "machine.openshift.io/instance-type": kind, "machine.openshift.io/zone": zone,
                    "machine.openshift.io/region": scenario.region,
                });
                cache
                    .patch(MACHINE, machine, json!({"metadata": {"finalizers": [FINALIZER], "labels": labels}}))
                    .await?;
                self.phase(context, cache, machine, "Provisioning", json!({})).await?;
            }
            "Provisioning" => {
                let cloud = &mut self.cloud;
                let answer =
                    self.asked.entry(uid.clone()).or_insert_with(|| cloud.take(scenario, &kind, &zone)).clone();
                let identity = match &answer {
                    Ok(place) => format!("{kind}/{place}"),
                    Err(_) => format!("{kind}/refused"),
                };
                let wait = context.draw(scenario.timings.machine_provision, "machineProvision", &identity);
                if !timers.passed(format!("{uid}/provision"), wait) {
                    return Ok(());
                }
                match answer {
                    Ok(place) => {
                        let (provider_id, node) = instance(scenario, machine.name(), &kind, &zone, place);
                        cache.patch(MACHINE, machine, json!({"spec": {"providerID": provider_id}})).await?;
                        let address = json!({"addresses": [{"type": "InternalDNS", "address": node}]});
                        self.phase(context, cache, machine, "Provisioned", address).await?;
                        self.events
                            .record(
                                context,
                                cache,
                                machine,
                                false,
                                "Create",
                                &format!("Created Machine {}", machine.name()),
                            )
                            .await;
                    }
                    Err(refusal) => {
                        let status = json!({"errorReason": refusal.reason, "errorMessage": refusal.message});
                        self.phase(context, cache, machine, "Failed", status).await?;
                        self.events.record(context, cache, machine, true, "FailedCreate", &refusal.message).await;
                    }
                }
            }
            "Provisioned" => {
                let Some(Ok(place)) = self.asked.get(&uid).cloned() else { return Ok(()) };
                let identity = format!("{kind}/{place}");
                if timers.passed(format!("{uid}/boot"), context.draw(scenario.timings.node_boot, "nodeBoot", &identity))
                {
                    self.boot(context, cache, machine, &kind, &zone, place).await?;
                }
            }
            _ => self.follow(cache, machine, &kind, &zone).await?,
        }
        Ok(())
    }

    async fn boot(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        machine: &DynamicObject,
        kind: &str,
        zone: &str,
        place: u32,
    ) -> Result<(), kube::Error> {
        let (provider_id, name) = instance(&context.scenario, machine.name(), kind, zone, place);
        let new = NewNode {
            name: &name,
            role: "worker",
            kind,
            zone,
            identity: Some(format!("{kind}/{place}")),
            provider_id: &provider_id,
            machine: Some(machine.name()),
            taints: machine.list("/spec/taints"),
            ready: false,
        };
        let mut node = node_from(&context.scenario, &new, &context.stamp());
        let own: std::collections::BTreeMap<String, String> =
            serde_json::from_value(machine.at("/spec/metadata/labels").clone()).unwrap_or_default();
        node.metadata.labels.get_or_insert_default().extend(own);
        let status = node.data["status"].clone();
        cache.create(NODE, &node).await?;
        cache.status(NODE, &node, status).await?;
        let uid = cache.get(NODE, "", &name).map(|node| node.uid().to_owned()).unwrap_or_default();
        let node_ref = json!({"nodeRef": {"kind": "Node", "name": name, "uid": uid}});
        self.phase(context, cache, machine, "Running", node_ref).await
    }

    /// A machine that runs: its instance counts even if it was there before this controller.
    async fn follow(
        &mut self,
        cache: &mut Cache,
        machine: &DynamicObject,
        kind: &str,
        zone: &str,
    ) -> Result<(), kube::Error> {
        if !self.asked.contains_key(machine.uid()) {
            self.cloud.note(kind, zone);
            self.asked.insert(machine.uid().to_owned(), Ok(0));
        }
        let Some(node) = cache.get(NODE, "", machine.text("/status/nodeRef/name")) else { return Ok(()) };
        if node.is_deleted() && node.metadata.finalizers.is_none() {
            cache.delete(NODE, &node, true).await?;
        }
        Ok(())
    }

    async fn remove(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
        machine: &DynamicObject,
    ) -> Result<(), kube::Error> {
        if !machine.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER) {
            return Ok(());
        }
        if machine.text("/status/phase") != "Deleting" {
            self.phase(context, cache, machine, "Deleting", json!({})).await?;
        }
        let has_instance = !machine.text("/spec/providerID").is_empty();
        let wait = context.draw(context.scenario.timings.machine_delete, "machineDelete", machine.name());
        if has_instance && !timers.passed(format!("{}/delete", machine.uid()), wait) {
            return Ok(());
        }
        if let Some(node) = cache.get(NODE, "", machine.text("/status/nodeRef/name")) {
            cache.delete(NODE, &node, true).await?;
        }
        if matches!(self.asked.get(machine.uid()), Some(Ok(_))) && self.returned.insert(machine.uid().to_owned()) {
            let (kind, zone) = provider::wanted(&context.scenario, machine.at("/spec/providerSpec/value"));
            self.cloud.give_back(&kind, &zone);
        }
        let left: Vec<_> =
            machine.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != FINALIZER).collect();
        let left = if left.is_empty() { Value::Null } else { json!(left) };
        cache.patch(MACHINE, machine, json!({"metadata": {"finalizers": left}})).await
    }

    async fn phase(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        machine: &DynamicObject,
        phase: &str,
        mut status: Value,
    ) -> Result<(), kube::Error> {
        status["phase"] = phase.into();
        status["lastUpdated"] = context.stamp().into();
        cache.status(MACHINE, machine, status).await
    }
}
