//! Instance types, nodes, machine sets, and whether the cloud has anything to sell.

use std::collections::BTreeMap;

use super::{Checked, Objection, field, known, object_name, unique};
use crate::scenario::yaml::Path;
use crate::scenario::{Platform, Scenario};

pub(super) fn instance_types(scenario: &Scenario) -> Checked {
    for (name, kind) in &scenario.instance_types {
        let path = field("instanceTypes").key(name.as_str());
        if kind.cpu == 0 {
            return Err(Objection::new(path.key("cpu"), "an instance has at least one CPU"));
        }
        if kind.memory_mi_b == 0 {
            return Err(Objection::new(path.key("memoryMiB"), "an instance has memory"));
        }
        if kind.gpus > 0 && kind.gpu_product.is_empty() {
            return Err(Objection::new(path.key("gpuProduct"), "it has GPUs, and they have no product name"));
        }
        if kind.gpus > 0 && !matches!(kind.pci_class.as_str(), "0300" | "0302") {
            let text = format!("`{}` is no class of a GPU: 0302, or 0300 for one with a display", kind.pci_class);
            return Err(Objection::new(path.key("pciClass"), text));
        }
    }
    Ok(())
}

pub(super) fn nodes(scenario: &Scenario) -> Checked {
    let list = field("nodes");
    for (n, node) in scenario.nodes.iter().enumerate() {
        let path = list.place(n);
        object_name(&path, &node.name)?;
        if !matches!(node.role.as_str(), "master" | "worker") {
            let text = format!("`{}` is no role: `master` or `worker`", node.role);
            return Err(Objection::new(path.key("role"), text));
        }
        sold(scenario, &path, &node.instance_type)?;
    }
    unique(&list, "name", scenario.nodes.iter().map(|node| node.name.as_str()))
}

fn sold(scenario: &Scenario, path: &Path, kind: &str) -> Checked {
    if scenario.instance_types.contains_key(kind) {
        return Ok(());
    }
    let names = known(scenario.instance_types.keys().map(String::as_str));
    let text = format!("`{kind}` is not among instanceTypes; {names}");
    Err(Objection::new(path.key("instanceType"), text).see(field("instanceTypes").key(kind)))
}

pub(super) fn sets(scenario: &Scenario) -> Checked {
    let list = field("machineSets");
    if scenario.platform == Platform::None && !scenario.machine_sets.is_empty() {
        let text = "platform `none` has no Machine API, and so no machine sets; write `machineSets: []`";
        return Err(Objection::new(list, text).see(field("platform")));
    }
    let mut there: BTreeMap<&str, u32> = BTreeMap::new();
    for (n, set) in scenario.machine_sets.iter().enumerate() {
        let path = list.place(n);
        object_name(&path, &set.name)?;
        sold(scenario, &path, &set.instance_type)?;
        if set.zone.is_empty() {
            return Err(Objection::new(path.key("zone"), "its machines are in no zone"));
        }
        for (m, taint) in set.taints.iter().enumerate() {
            let effect = taint.rsplit_once(':').filter(|(key, _)| !key.is_empty()).map(|(_, effect)| effect);
            if !matches!(effect, Some("NoSchedule" | "PreferNoSchedule" | "NoExecute")) {
                let text = format!("`{taint}` is no taint: `key=value:NoSchedule`");
                return Err(Objection::new(path.key("taints").place(m), text));
            }
        }
        let count = there.entry(&set.instance_type).or_default();
        *count = count.saturating_add(set.replicas.unwrap_or(1));
        let quota = scenario.instance_types.get(&set.instance_type).and_then(|kind| kind.quota);
        if let Some(quota) = quota.filter(|quota| *count > *quota) {
            let kind = &set.instance_type;
            let text = format!("{count} machines of {kind} are there from the start, and the quota is {quota}");
            let see = field("instanceTypes").key(kind.as_str()).key("quota");
            return Err(Objection::new(path.key("replicas"), text).see(see));
        }
        if set.replicas.unwrap_or(1) > MOST {
            return Err(Objection::new(path.key("replicas"), format!("more than {MOST} machines in one set")));
        }
    }
    unique(&list, "name", scenario.machine_sets.iter().map(|set| set.name.as_str()))
}

/// More machines than a rehearsal can have in reasonable time.
const MOST: u32 = 1000;

/// Pods run on workers only. A recording says itself what ran where.
pub(super) fn place_for_pods(scenario: &Scenario) -> Checked {
    let fixed = scenario.nodes.iter().any(|node| node.role == "worker");
    let made = scenario.machine_sets.iter().any(|set| set.replicas != Some(0));
    if fixed || made || scenario.recorded.is_some() {
        return Ok(());
    }
    let text = "there is no worker, so that no operator could ever run; give a node the role `worker`, or a machine \
                set replicas";
    Err(Objection::new(field("nodes"), text).see(field("machineSets")))
}

/// Whether a zone with machine sets has anything in stock, unless the run is to fail.
pub(super) fn stock(scenario: &Scenario) -> Checked {
    let clouds = scenario.platform != Platform::None && !scenario.openshift.is_empty();
    if !clouds || scenario.is_meant_to_fail() || scenario.recorded.is_some() {
        return Ok(());
    }
    for (n, set) in scenario.machine_sets.iter().enumerate() {
        let stock = |kind: &crate::scenario::InstanceType| kind.zones.get(&set.zone).is_some_and(|stock| *stock > 0);
        if !scenario.instance_types.values().any(stock) {
            let text = format!(
                "zone `{}` has no instance of any type in stock, so that no machine could be made there; say so in \
                 instanceTypes, or what the run is to end with (expect)",
                set.zone
            );
            let path = field("machineSets").place(n).key("zone");
            return Err(Objection::new(path, text).see(field("instanceTypes")));
        }
    }
    Ok(())
}
