//! The cluster around the recording: what a scenario needs so that verbs can go on from there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolbox_cluster::machines::{instance_type, zone};
use toolbox_cluster::{ClusterInfo, Object, Watched, kinds};
use toolbox_engine::plan::Kind;
use toolbox_rehearsal::Scenario;

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";
const GPU: &str = "/status/capacity/nvidia.com~1gpu";
/// How many instances a zone has in stock, which no cluster says.
const STOCK: u32 = 8;

/// Everything but `recorded`.
pub(super) fn scenario(
    info: &ClusterInfo,
    infrastructure: Option<&Object>,
    watches: &[Watched],
    packages: &[Object],
) -> Value {
    let of = |kind: &Kind| -> Vec<Object> {
        let found = watches.iter().find(|watched| watched.query().kind == *kind);
        found.map(Watched::objects).unwrap_or_default()
    };
    let (nodes, sets) = (of(&kinds::NODE), of(&kinds::MACHINE_SET));
    let status = |pointer: &str| infrastructure.and_then(|object| object.text(pointer)).unwrap_or_default().to_owned();
    let platform = match status("/status/platformStatus/type").to_lowercase().as_str() {
        known @ ("aws" | "azure" | "gcp" | "vsphere") if !sets.is_empty() => known.to_owned(),
        _ => "none".to_owned(),
    };
    let region = nodes.iter().find_map(|node| node.label("topology.kubernetes.io/region")).unwrap_or_default();
    let machine_sets: Vec<Value> =
        if platform == "none" { Vec::new() } else { sets.iter().filter_map(machine_set).collect() };
    json!({
        "description": format!("Recorded from {}.", info.server),
        "kubernetes": numbers(&info.version),
        "openshift": info.openshift_version.clone().unwrap_or_default(),
        "platform": platform,
        "infra": status("/status/infrastructureName"),
        "region": region,
        "nodes": nodes.iter().filter(|node| !is_made(node)).map(fixed_node).collect::<Vec<_>>(),
        "machineSets": machine_sets,
        "instanceTypes": instance_types(&nodes, &sets),
        "images": images(packages, &of(&kinds::CSV)),
        "catalogs": catalogs(&of(&kinds::CATALOG_SOURCE), packages, &of(&kinds::SUBSCRIPTION), &of(&kinds::CSV)),
    })
}

/// `v1.24.17+abc` → `1.24.17`.
fn numbers(version: &str) -> String {
    let version = version.trim_start_matches('v');
    version.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect()
}

/// Whether a machine set's machine is behind a node.
fn is_made(node: &Object) -> bool {
    node.annotation("machine.openshift.io/machine").is_some() && !is_master(node)
}

fn is_master(node: &Object) -> bool {
    ["master", "control-plane"].iter().any(|role| node.label(&format!("node-role.kubernetes.io/{role}")).is_some())
}

fn type_of(node: &Object) -> String {
    node.label(TYPE).filter(|name| !name.is_empty()).map_or_else(|| format!("like-{}", node.name()), ToOwned::to_owned)
}

fn fixed_node(node: &Object) -> Value {
    json!({
        "name": node.name(), "role": if is_master(node) { "master" } else { "worker" },
        "zone": node.label(ZONE).unwrap_or_default(), "instanceType": type_of(node),
    })
}

fn machine_set(set: &Object) -> Option<Value> {
    let mut found = json!({
        "name": set.name(), "zone": zone(set).unwrap_or("unknown"), "instanceType": instance_type(set)?,
    });
    if let Some(replicas) = set.number("/spec/replicas") {
        found["replicas"] = replicas.into();
    }
    Some(found)
}

/// What nodes and machine sets are made of, and GPU types of the default scenario in their zones; nothing else is sold.
fn instance_types(nodes: &[Object], sets: &[Object]) -> Value {
    let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in nodes {
        zones.entry(type_of(node)).or_default().extend(node.label(ZONE).map(ToOwned::to_owned));
    }
    for set in sets {
        if let Some(kind) = instance_type(set) {
            zones.entry(kind.to_owned()).or_default().extend(zone(set).map(ToOwned::to_owned));
        }
    }
    let everywhere: BTreeSet<String> = sets.iter().filter_map(|set| zone(set).map(ToOwned::to_owned)).collect();
    let default = Scenario::embedded("default").unwrap_or_default().instance_types;
    let mut types = Map::new();
    for (name, known) in &default {
        let seen = zones.remove(name);
        let stock = match &seen {
            Some(seen) => seen.clone(),
            None if known.gpus > 0 => everywhere.clone(),
            None => BTreeSet::new(),
        };
        if stock.is_empty() && seen.is_none() {
            types.insert(name.clone(), Value::Null);
            continue;
        }
        let mut offered: Map<String, Value> = known.zones.keys().map(|zone| (zone.clone(), Value::Null)).collect();
        offered.extend(stock.into_iter().map(|zone| (zone, STOCK.into())));
        types.insert(name.clone(), json!({"zones": offered}));
    }
    for (name, seen) in zones {
        let node = nodes.iter().find(|node| type_of(node) == name);
        let quantity = |pointer: &str| node.and_then(|node| node.text(pointer)).map_or(0, bytes);
        let mut kind = json!({
            "cpu": quantity("/status/capacity/cpu").max(1),
            "memoryMiB": (quantity("/status/capacity/memory") / 1_048_576).max(1),
            "zones": seen.into_iter().map(|zone| (zone, STOCK.into())).collect::<Map<_, _>>(),
        });
        let gpus = quantity(GPU);
        if gpus > 0 {
            let product = node.and_then(|node| node.label("nvidia.com/gpu.product")).unwrap_or("unknown");
            kind["gpus"] = gpus.into();
            kind["gpuProduct"] = product.into();
            kind["pciClass"] = "0302".into();
        }
        types.insert(name, kind);
    }
    types.into()
}

/// A quantity as Kubernetes writes it, without its fraction: `4`, `3500m`, `16384Mi`, `15896616Ki`.
fn bytes(text: &str) -> u64 {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().unwrap_or_default();
    match &text[digits..] {
        "Ki" => number << 10,
        "Mi" => number << 20,
        "Gi" => number << 30,
        "Ti" => number << 40,
        "m" => number / 1000,
        _ => number,
    }
}

/// The packages worth knowing: those that somebody subscribed to, and those that the tools install.
fn is_known(package: &Object, subscriptions: &[Object]) -> bool {
    matches!(package.name(), "nfd" | "gpu-operator-certified")
        || subscriptions.iter().any(|wish| wish.text("/spec/name") == Some(package.name()))
}

fn catalogs(sources: &[Object], packages: &[Object], subscriptions: &[Object], csvs: &[Object]) -> Value {
    let catalogs = sources.iter().filter(|source| source.namespace() == Some("openshift-marketplace")).map(|source| {
        let offered = packages.iter().filter(|package| {
            package.text("/status/catalogSource") == Some(source.name()) && is_known(package, subscriptions)
        });
        let state = source.text("/status/connectionState/lastObservedState").unwrap_or_default();
        json!({
            "name": source.name(), "displayName": source.text("/spec/displayName").unwrap_or_default(),
            "settled": true, "stuckAt": if state == "READY" { "" } else { state },
            "packages": offered.map(|package| self::package(package, csvs)).collect::<Vec<_>>(),
        })
    });
    catalogs.collect()
}

fn package(package: &Object, csvs: &[Object]) -> Value {
    let (mut channels, mut bundles) = (Map::new(), BTreeMap::new());
    for channel in package.list("/status/channels") {
        let csv = channel["currentCSV"].as_str().unwrap_or_default();
        channels.insert(channel["name"].as_str().unwrap_or_default().to_owned(), json!([csv]));
        bundles.entry(csv.to_owned()).or_insert_with(|| bundle(package.name(), csv, &channel["currentCSVDesc"], csvs));
    }
    json!({
        "name": package.name(), "defaultChannel": package.text("/status/defaultChannel").unwrap_or_default(),
        "channels": channels, "bundles": bundles.into_values().collect::<Vec<_>>(),
    })
}

/// What a catalog says of a version, with what only the installed version says.
fn bundle(package: &str, name: &str, about: &Value, csvs: &[Object]) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let installed = csvs.iter().find(|csv| csv.name() == name);
    let deployment = installed.and_then(|csv| csv.at("/spec/install/spec/deployments/0")).unwrap_or(&Value::Null);
    let usual = match package {
        "nfd" => ["nfd-controller-manager", "nfd-manager"],
        "gpu-operator-certified" => ["gpu-operator", "gpu-operator"],
        other => [other, other],
    };
    let or = |found: String, usual: &str| if found.is_empty() { usual.to_owned() } else { found };
    let modes = about["installModes"].as_array().into_iter().flatten();
    let owned = about["customresourcedefinitions"]["owned"].as_array().into_iter().flatten();
    let owned = owned.filter_map(|kind| {
        let (plural, group) = kind["name"].as_str()?.split_once('.')?;
        let namespaced = plural != "clusterpolicies";
        Some(json!({
            "group": group, "version": kind["version"], "kind": kind["kind"], "plural": plural, "namespaced": namespaced,
        }))
    });
    let annotations = &about["annotations"];
    let examples: Value = annotations["alm-examples"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .filter(Value::is_array)
        .unwrap_or_else(|| json!([]));
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    json!({
        "csv": name, "version": or(text(&about["version"]), "0.0.0"), "displayName": text(&about["displayName"]),
        "suggestedNamespace": text(&annotations["operatorframework.io/suggested-namespace"]),
        "installModes": modes.filter(|mode| mode["supported"] == true).map(|mode| mode["type"].clone()).collect::<Vec<_>>(),
        "owned": owned.collect::<Vec<_>>(),
        "deployment": or(text(&deployment["name"]), usual[0]),
        "serviceAccount": or(text(&deployment["spec"]["template"]["spec"]["serviceAccountName"]), usual[1]),
        "image": image_of(package),
        "podLabels": if labels.is_object() { labels.clone() } else { json!({"name": usual[0]}) },
        "examples": examples,
    })
}

/// The default scenario's name of an operator's image, else the package's.
fn image_of(package: &str) -> &str {
    match package {
        "nfd" => "nfd-operator",
        "gpu-operator-certified" => "gpu-operator",
        other => other,
    }
}

/// The operators' images, where a catalog or an installed version names them.
fn images(packages: &[Object], csvs: &[Object]) -> Value {
    let mut images = Map::new();
    for package in packages {
        let channel = package.list("/status/channels").first().unwrap_or(&Value::Null);
        let named = channel["currentCSVDesc"]["annotations"]["containerImage"].as_str();
        let csv = csvs.iter().find(|csv| Some(csv.name()) == channel["currentCSV"].as_str());
        let place = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
        let reference = csv.and_then(|csv| csv.text(place)).or(named).unwrap_or(package.name());
        let known = ["nfd", "gpu-operator-certified"].contains(&package.name());
        if !known {
            images.insert(image_of(package.name()).to_owned(), json!({"reference": reference, "pull": 5}));
        }
    }
    images.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_and_versions_are_read() {
        assert_eq!(["4", "3500m", "1Mi", "2Ki", "x"].map(bytes), [4, 3, 1 << 20, 2048, 0]);
        assert_eq!(numbers("v1.24.17+abc1"), "1.24.17");
    }
}
