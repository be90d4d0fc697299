//! What the cloud sells, what it refuses and in which words, and the nodes its instances become.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controllers::kit::{NODE, Read, identity::IDENTITY};
use crate::scenario::{InstanceType, Platform, Scenario};

/// Namespace of the Machine API.
pub(crate) const NAMESPACE: &str = "openshift-machine-api";
/// Label that ties machines to their set.
pub(crate) const MACHINE_SET_LABEL: &str = "machine.openshift.io/cluster-api-machineset";

/// A refusal: the Machine's `errorReason` and `errorMessage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What is taken from the cloud's stock.
#[derive(Debug, Default)]
pub(super) struct Cloud {
    /// Instances by type and zone.
    taken: BTreeMap<(String, String), u32>,
    /// How many instances of a type were ever made.
    made: BTreeMap<String, u32>,
}

impl Cloud {
    /// Notes an instance that is already there.
    pub(super) fn note(&mut self, kind: &str, zone: &str) {
        *self.taken.entry((kind.to_owned(), zone.to_owned())).or_default() += 1;
        *self.made.entry(kind.to_owned()).or_default() += 1;
    }

    /// Takes an instance: its place among all of its type, or why there is none.
    pub(super) fn take(&mut self, scenario: &Scenario, kind: &str, zone: &str) -> Result<u32, Refusal> {
        let prefix = "error launching instance: ";
        let Some(offer) = scenario.instance_types.get(kind) else {
            return Err(Refusal {
                reason: "InvalidConfiguration",
                message: format!("{prefix}Invalid value '{kind}' for InstanceType."),
            });
        };
        let Some(stock) = offer.zones.get(zone) else {
            return Err(Refusal {
                reason: "InvalidConfiguration",
                message: format!(
                    "{prefix}Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone}). \
                     Please retry your request by not specifying an Availability Zone or choosing {}.",
                    others(offer, zone),
                ),
            });
        };
        let of_type: u32 = self.taken.iter().filter(|((taken, _), _)| taken == kind).map(|(_, count)| count).sum();
        if let Some(quota) = offer.quota.filter(|quota| of_type >= *quota) {
            return Err(Refusal {
                reason: "InvalidConfiguration",
                message: format!(
                    "{prefix}You have requested more vCPU capacity than your current vCPU limit of {} allows for the instance \
                     bucket that the specified instance type belongs to. Please visit \
                     http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
                    quota * offer.cpu,
                ),
            });
        }
        let taken = self.taken.entry((kind.to_owned(), zone.to_owned())).or_default();
        if *taken >= *stock {
            return Err(Refusal {
                reason: "InsufficientResources",
                message: format!(
                    "{prefix}We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). \
                     Our system will be working on provisioning additional capacity. You can currently get {kind} capacity by \
                     not specifying an Availability Zone in your request or choosing {}.",
                    others(offer, zone),
                ),
            });
        }
        *taken += 1;
        let made = self.made.entry(kind.to_owned()).or_default();
        *made += 1;
        Ok(*made - 1)
    }

    /// Gives an instance back.
    pub(super) fn give_back(&mut self, kind: &str, zone: &str) {
        if let Some(taken) = self.taken.get_mut(&(kind.to_owned(), zone.to_owned())) {
            *taken = taken.saturating_sub(1);
        }
    }
}

fn others(offer: &InstanceType, zone: &str) -> String {
    let zones = offer.zones.iter().filter(|(other, stock)| *other != zone && **stock > 0);
    zones.map(|(zone, _)| zone.as_str()).collect::<Vec<_>>().join(", ")
}

/// Provider id and node name of the n-th instance of a type.
pub(crate) fn instance(scenario: &Scenario, machine: &str, kind: &str, zone: &str, place: u32) -> (String, String) {
    let number = crate::scenario::Dice::new(0).number("instance", &format!("{kind}/{place}"));
    match scenario.platform {
        Platform::Aws => {
            let (third, fourth) = (128 + number % 96, 20 + (number >> 8) % 200);
            (
                format!("aws:///{zone}/i-{:017x}", number & 0x000f_ffff_ffff_ffff),
                format!("ip-10-0-{third}-{fourth}.{}.compute.internal", scenario.region),
            )
        }
        Platform::Azure => (format!("azure:///subscriptions/0/virtualMachines/{machine}"), machine.to_owned()),
        Platform::Gcp => (format!("gce://demo/{zone}/{machine}"), machine.to_owned()),
        Platform::Vsphere | Platform::None => (format!("vsphere://{number:016x}"), machine.to_owned()),
    }
}

/// What a node is, before anybody has looked at it.
pub(crate) struct NewNode<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) zone: &'a str,
    /// Place among the nodes of its type, or nothing for nodes that no machine made.
    pub(crate) identity: Option<String>,
    pub(crate) provider_id: &'a str,
    pub(crate) machine: Option<&'a str>,
    pub(crate) taints: &'a [Value],
    pub(crate) ready: bool,
}

/// A node object as its kubelet registers it.
pub(crate) fn node_from(scenario: &Scenario, new: &NewNode<'_>, now: &str) -> DynamicObject {
    let offer = scenario.instance_types.get(new.kind).cloned().unwrap_or_default();
    let mut node = NODE.object("", new.name);
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let mut label = |key: &str, value: &str| labels.insert(key.to_owned(), value.to_owned());
    label("kubernetes.io/hostname", new.name);
    label("kubernetes.io/os", "linux");
    label("kubernetes.io/arch", "amd64");
    label("node.openshift.io/os_id", "rhcos");
    label("node.kubernetes.io/instance-type", new.kind);
    label("topology.kubernetes.io/region", &scenario.region);
    label("topology.kubernetes.io/zone", new.zone);
    label(&format!("node-role.kubernetes.io/{}", new.role), "");
    node.metadata.labels = Some(labels);
    let annotations = node.metadata.annotations.get_or_insert_default();
    if let Some(machine) = new.machine {
        annotations.insert("machine.openshift.io/machine".to_owned(), format!("{NAMESPACE}/{machine}"));
    }
    if let Some(identity) = &new.identity {
        annotations.insert(IDENTITY.to_owned(), identity.clone());
    }
    let mut taints = new.taints.to_vec();
    if new.role == "master" {
        taints.push(json!({"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}));
    }
    if !new.ready {
        taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
    }
    let capacity = json!({
        "cpu": offer.cpu.to_string(), "memory": format!("{}Mi", offer.memory_mi_b), "pods": "250",
        "ephemeral-storage": "125293548Ki",
    });
    node.data = json!({
        "spec": {"providerID": new.provider_id, "taints": taints},
        "status": {
            "capacity": capacity, "allocatable": capacity,
            "addresses": [{"type": "Hostname", "address": new.name}, {"type": "InternalDNS", "address": new.name}],
            "conditions": conditions(new.ready, now),
            "nodeInfo": {
                "kubeletVersion": format!("v{}+rehearsal", scenario.kubernetes), "kernelVersion": KERNEL,
                "osImage": format!("Red Hat Enterprise Linux CoreOS {OSTREE} (Ootpa)"), "operatingSystem": "linux",
                "architecture": "amd64", "containerRuntimeVersion": "cri-o://1.24.4", "bootID": "", "machineID": "",
                "systemUUID": "", "kubeProxyVersion": format!("v{}+rehearsal", scenario.kubernetes),
            },
        },
    });
    if new.provider_id.is_empty() {
        node.data["spec"]["providerID"].take();
    }
    if node.list("/spec/taints").is_empty() {
        node.data["spec"]["taints"].take();
    }
    node
}

/// Kernel of the nodes' operating system.
pub(crate) const KERNEL: &str = "4.18.0-372.40.1.el8_6.x86_64";
/// Version of the nodes' operating system.
pub(crate) const OSTREE: &str = "411.86.202301311516-0";

/// A node's conditions when it is ready, or has just registered.
pub(super) fn conditions(ready: bool, now: &str) -> Value {
    let quiet = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "False", "reason": reason, "message": message,
               "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    let (status, reason, message) = if ready {
        ("True", "KubeletReady", "kubelet is posting ready status")
    } else {
        (
            "False",
            "KubeletNotReady",
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
          message:Network plugin returns error: No CNI configuration file in /etc/kubernetes/cni/net.d/. Has your network provider started?",
        )
    };
    json!([
        quiet("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        quiet("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        quiet("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        {"type": "Ready", "status": status, "reason": reason, "message": message,
         "lastHeartbeatTime": now, "lastTransitionTime": now},
    ])
}
