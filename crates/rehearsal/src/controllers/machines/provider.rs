//! The provider part of a machine on each cloud: where its type and zone are written.

use serde_json::{Value, json};

use crate::scenario::{Platform, Scenario};

/// Kind of the provider spec on a platform.
fn kind(platform: Platform) -> &'static str {
    match platform {
        Platform::Aws => "AWSMachineProviderConfig",
        Platform::Azure => "AzureMachineProviderSpec",
        Platform::Gcp => "GCPMachineProviderSpec",
        Platform::Vsphere => "VSphereMachineProviderSpec",
        Platform::None => "BareMetalMachineProviderSpec",
    }
}

/// The provider spec of a machine of a type in a zone.
pub(crate) fn spec(scenario: &Scenario, instance_type: &str, zone: &str) -> Value {
    let mut value = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": kind(scenario.platform),
        "credentialsSecret": {"name": "cloud-credentials"},
        "userDataSecret": {"name": "worker-user-data"},
    });
    match scenario.platform {
        Platform::Aws => {
            value["ami"] = json!({"id": "ami-0123456789abcdef0"});
            value["instanceType"] = instance_type.into();
            value["placement"] = json!({"availabilityZone": zone, "region": scenario.region});
        }
        Platform::Azure => {
            value["vmSize"] = instance_type.into();
            value["zone"] = zone.into();
            value["location"] = scenario.region.clone().into();
        }
        Platform::Gcp => {
            value["machineType"] = instance_type.into();
            value["zone"] = zone.into();
            value["region"] = scenario.region.clone().into();
        }
        Platform::Vsphere | Platform::None => {
            let size = scenario.instance_types.get(instance_type).cloned().unwrap_or_default();
            value["numCPUs"] = size.cpu.into();
            value["memoryMiB"] = size.memory_mi_b.into();
            value["workspace"] = json!({"datacenter": zone});
        }
    }
    value
}

/// Type and zone that a provider spec asks for.
pub(crate) fn wanted(scenario: &Scenario, spec: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match spec["kind"].as_str().unwrap_or_default() {
        "AWSMachineProviderConfig" => (text(&spec["instanceType"]), text(&spec["placement"]["availabilityZone"])),
        "AzureMachineProviderSpec" => (text(&spec["vmSize"]), text(&spec["zone"])),
        "GCPMachineProviderSpec" => (text(&spec["machineType"]), text(&spec["zone"])),
        _ => {
            let cpus = spec["numCPUs"].as_u64().unwrap_or_default();
            let by_size = scenario.instance_types.iter().find(|(_, kind)| u64::from(kind.cpu) == cpus);
            let name = by_size.map(|(name, _)| name.clone()).unwrap_or_default();
            (name, text(&spec["workspace"]["datacenter"]))
        }
    }
}

/// A taint written as `key=value:Effect`.
pub(crate) fn taint(text: &str) -> Value {
    let (pair, effect) = text.rsplit_once(':').unwrap_or((text, "NoSchedule"));
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let mut taint = json!({"key": key, "effect": effect});
    if !value.is_empty() {
        taint["value"] = value.into();
    }
    taint
}
