//! The cloud: turns Machines into Nodes, or says why it does not.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::hardware;
use super::watch::{Change, watch};
use crate::control::Fault;
use crate::supervise::{Shared, resource, say};

const NAMESPACE: &str = "openshift-machine-api";
const FINALIZER: &str = "machine.machine.openshift.io";
/// On a Node: the Machine it belongs to.
const MACHINE: &str = "machine.openshift.io/machine";

struct Cloud {
    shared: Shared,
    nodes: Api<Node>,
    machines: Api<DynamicObject>,
}

pub(super) async fn run(shared: Shared, client: Client) {
    let kind = resource("machine.openshift.io/v1beta1", "Machine");
    let cloud =
        Cloud { shared, nodes: Api::all(client.clone()), machines: Api::namespaced_with(client, NAMESPACE, &kind) };
    tokio::join!(cloud.watch_machines(), cloud.watch_nodes());
}

impl Cloud {
    async fn watch_machines(&self) {
        let mut changes = watch(self.machines.clone(), "machines");
        while let Some(change) = changes.recv().await {
            let Change::Seen(machine) = change else { continue };
            if let Err(error) = self.machine(&machine).await {
                say(&format!("machine {}: {error:#}", machine.name_any()));
            }
        }
    }

    async fn watch_nodes(&self) {
        let mut ready = BTreeSet::new();
        let mut changes = watch(self.nodes.clone(), "nodes");
        while let Some(change) = changes.recv().await {
            match change {
                Change::Seen(node) if hardware::is_ready(&node) => {
                    if ready.insert(node.name_any()) {
                        self.ready(&node);
                    }
                }
                Change::Seen(_) => {}
                Change::Gone(node) => drop(ready.remove(&node.name_any())),
            }
        }
    }

    /// One step for a machine; the change it makes brings the next one.
    async fn machine(&self, machine: &DynamicObject) -> Result<()> {
        let name = machine.name_any();
        if machine.metadata.deletion_timestamp.is_some() {
            return self.terminate(machine).await;
        }
        if !machine.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            let patch = json!({ "metadata": { "finalizers": [FINALIZER] } });
            self.machines.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            return Ok(());
        }
        match machine.data["status"]["phase"].as_str() {
            None | Some("") => self.status(&name, json!({ "phase": "Provisioning" })).await,
            Some("Provisioning") => self.provision(machine).await,
            Some("Provisioned") => self.link(&name).await,
            _ => Ok(()),
        }
    }

    async fn provision(&self, machine: &DynamicObject) -> Result<()> {
        let name = machine.name_any();
        let order = Order::of(machine)?;
        if let Some((reason, message)) = self.refusal(&order) {
            let status = json!({ "phase": "Failed", "errorReason": reason, "errorMessage": message });
            return self.status(&name, status).await;
        }
        let uid = machine.uid().context("a machine without a uid")?;
        let id = format!("aws:///{}/i-0{:.16}", order.zone, uid.replace('-', ""));
        let patch = json!({ "spec": { "providerID": id } });
        self.machines.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        let node = node(&name, &uid, &id, &order, machine)?;
        let node_name = node.name_any();
        match self.nodes.create(&PostParams::default(), &node).await {
            Ok(_) => {}
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(error).context("cannot make its node"),
        }
        let status = json!({
            "phase": "Provisioned",
            "addresses": [{ "type": "InternalDNS", "address": node_name }, { "type": "Hostname", "address": node_name }],
            "providerStatus": { "instanceId": id.rsplit('/').next(), "instanceState": "running" },
        });
        self.status(&name, status).await
    }

    /// As the provider words it.
    fn refusal(&self, order: &Order) -> Option<(&'static str, String)> {
        self.shared.faults.all().into_iter().find_map(|fault| match fault {
            Fault::Quota { instance_type } if instance_type == order.instance_type => Some((
                "InvalidConfiguration",
                "error launching instance: You have requested more vCPU capacity than your current vCPU limit of 0 \
                 allows for the instance bucket that the specified instance type belongs to. Please visit \
                 http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
                    .to_owned(),
            )),
            Fault::NoStock { instance_type, zone } if instance_type == order.instance_type && zone == order.zone => {
                Some((
                    "InsufficientResources",
                    format!(
                        "error launching instance: We currently do not have sufficient {instance_type} capacity in \
                         the Availability Zone you requested ({zone}). Our system will be working on provisioning \
                         additional capacity. You can currently get {instance_type} capacity by not specifying an \
                         Availability Zone in your request or choosing another one."
                    ),
                ))
            }
            _ => None,
        })
    }

    /// A node that has joined belongs to its machine, Ready or not.
    async fn link(&self, machine: &str) -> Result<()> {
        let owner = format!("{NAMESPACE}/{machine}");
        let nodes = self.nodes.list(&kube::api::ListParams::default()).await?;
        let Some(node) = nodes.iter().find(|node| node.annotations().get(MACHINE) == Some(&owner)) else {
            return Ok(());
        };
        let status = json!({
            "phase": "Running",
            "nodeRef": { "kind": "Node", "name": node.name_any(), "uid": node.uid() },
        });
        self.status(machine, status).await
    }

    /// A node is Ready: its machine set is told.
    fn ready(&self, node: &Node) {
        let Some(machine) = node.annotations().get(MACHINE).and_then(|name| name.split('/').nth(1)) else {
            return;
        };
        // The machine set's controller looks at a node only when its machine changes, and its own view of
        // the node may be older than ours.
        let (machines, machine) = (self.machines.clone(), machine.to_owned());
        tokio::spawn(async move {
            for round in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let patch = json!({ "metadata": { "annotations": { "toolbox-stack/seen": round.to_string() } } });
                // A machine that is gone by now needs no touch.
                let _ = machines.patch(&machine, &PatchParams::default(), &Patch::Merge(&patch)).await;
            }
        });
    }

    async fn terminate(&self, machine: &DynamicObject) -> Result<()> {
        let name = machine.name_any();
        let owner = format!("{NAMESPACE}/{name}");
        for node in self.nodes.list(&kube::api::ListParams::default()).await? {
            if node.annotations().get(MACHINE) == Some(&owner) {
                match self.nodes.delete(&node.name_any(), &DeleteParams::default()).await {
                    Err(error) if !is_missing(&error) => return Err(error).context("cannot delete its node"),
                    _ => {}
                }
            }
        }
        let kept: Vec<&String> = machine.finalizers().iter().filter(|name| *name != FINALIZER).collect();
        if kept.len() < machine.finalizers().len() {
            let patch = json!({ "metadata": { "finalizers": kept } });
            match self.machines.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Err(error) if !is_missing(&error) => return Err(error).context("cannot let it go"),
                _ => {}
            }
        }
        Ok(())
    }

    async fn status(&self, name: &str, mut status: Value) -> Result<()> {
        status["lastUpdated"] = json!(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let patch = json!({ "status": status });
        self.machines
            .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .context("cannot set its status")?;
        Ok(())
    }
}

/// What a machine asks the cloud for.
struct Order {
    instance_type: String,
    zone: String,
    region: String,
}

impl Order {
    fn of(machine: &DynamicObject) -> Result<Self> {
        let value = &machine.data["spec"]["providerSpec"]["value"];
        let text = |value: &Value, what: &str| value.as_str().map(str::to_owned).with_context(|| format!("no {what}"));
        Ok(Self {
            instance_type: text(&value["instanceType"], "instance type")?,
            zone: text(&value["placement"]["availabilityZone"], "zone")?,
            region: text(&value["placement"]["region"], "region")?,
        })
    }
}

fn node(machine: &str, uid: &str, id: &str, order: &Order, object: &DynamicObject) -> Result<Node> {
    // Two octets from the machine's uid are as good as any address plan.
    let octet = |at: usize| u8::from_str_radix(uid.get(at..at + 2).unwrap_or("07"), 16).unwrap_or(7);
    let name = format!("ip-10-0-{}-{}.{}.compute.internal", octet(0), octet(2), order.region);
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "node-role.kubernetes.io/worker": "",
        "node.kubernetes.io/instance-type": order.instance_type,
        "node.openshift.io/os_id": "rhcos",
        "topology.kubernetes.io/region": order.region,
        "topology.kubernetes.io/zone": order.zone,
    });
    if let (Some(labels), Some(more)) = (labels.as_object_mut(), object.data["spec"]["metadata"]["labels"].as_object())
    {
        labels.extend(more.clone());
    }
    let resources = hardware::resources(&order.instance_type);
    let node = json!({
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": { MACHINE: format!("{NAMESPACE}/{machine}"), "kwok.x-k8s.io/node": "fake" },
        },
        "spec": { "providerID": id, "taints": object.data["spec"]["taints"] },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "nodeInfo": hardware::node_info(uid),
        },
    });
    serde_json::from_value(node).context("its node is malformed")
}

pub(super) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

pub(super) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
