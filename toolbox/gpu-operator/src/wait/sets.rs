//! The operator's DaemonSets: which must be there, and what each of them still waits for.

use toolbox_core::cluster::Object;

use crate::version::OperatorVersion;

/// A DaemonSet that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// Its name; the expected one when it does not exist.
    pub(crate) name: String,
    /// What it still waits for, in words: `0 of 1 pods ready`.
    pub(crate) text: String,
    /// A taint that keeps it off nodes it should run on, with these nodes.
    pub(crate) taint: Option<(String, Vec<String>)>,
}

/// A part of the stack that the ClusterPolicy asks for, by its DaemonSet's name.
struct Part {
    /// `spec.<field>.enabled` switches it off.
    field: &'static str,
    /// The DaemonSet's name, or its beginning: the driver's carries the operating system's version.
    name: &'static str,
}

const PARTS: &[Part] = &[
    Part { field: "driver", name: "nvidia-driver-daemonset" },
    Part { field: "toolkit", name: "nvidia-container-toolkit-daemonset" },
    Part { field: "devicePlugin", name: "nvidia-device-plugin-daemonset" },
    Part { field: "gfd", name: "gpu-feature-discovery" },
    Part { field: "validator", name: VALIDATOR },
];

/// The DaemonSet that checks each node.
pub(crate) const VALIDATOR: &str = "nvidia-operator-validator";
/// The driver's DaemonSet, or the beginning of its name.
pub(crate) const DRIVER: &str = "nvidia-driver-daemonset";

/// Whether the ClusterPolicy asks for a driver at all.
pub(crate) fn wants_driver(policy: &Object) -> bool {
    policy.flag("/spec/driver/enabled") != Some(false)
}

/// Every DaemonSet that is not done, the driver first, for nodes as they are now.
///
/// A DaemonSet is done when it runs, ready and up to date, on every node that its selector matches. `0 of 0` is done
/// only for a part that no node asks for, and never for the validator.
pub(crate) fn late_sets(policy: &Object, version: &OperatorVersion, sets: &[Object], nodes: &[Object]) -> Vec<Late> {
    let mut late = Vec::new();
    for part in PARTS {
        if policy.flag(&format!("/spec/{}/enabled", part.field)) == Some(false)
            || (part.name == VALIDATOR && !version.has_validator())
        {
            continue;
        }
        if !sets.iter().any(|set| is_part(set, part.name)) {
            late.push(Late { name: part.name.to_owned(), text: "does not exist yet".to_owned(), taint: None });
        }
    }
    let order = |set: &Object| PARTS.iter().position(|part| is_part(set, part.name)).unwrap_or(PARTS.len());
    let mut sets: Vec<&Object> = sets.iter().filter(|set| !set.is_deleting()).collect();
    sets.sort_by_key(|set| (order(set), set.name()));
    let waiting = sets.into_iter().filter_map(|set| {
        let must_run = is_part(set, VALIDATOR);
        late_set(set, nodes, must_run)
    });
    late.extend(waiting);
    late.sort_by_key(|late| PARTS.iter().position(|part| late.name.starts_with(part.name)).unwrap_or(PARTS.len()));
    late
}

fn is_part(set: &Object, name: &str) -> bool {
    set.name().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether it is the driver's DaemonSet.
pub(crate) fn is_driver(name: &str) -> bool {
    name.strip_prefix(DRIVER).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn late_set(set: &Object, nodes: &[Object], must_run: bool) -> Option<Late> {
    let late = |text: String| Some(Late { name: set.name().to_owned(), text, taint: None });
    if !set.is_observed() {
        return late("its last change has not been looked at yet".to_owned());
    }
    let count = |field: &str| set.number(&format!("/status/{field}")).unwrap_or(0);
    let (desired, ready) = (count("desiredNumberScheduled"), count("numberReady"));
    let matched: Vec<&Object> = nodes.iter().filter(|node| selects(set, node)).collect();
    if (desired as usize) < matched.len() {
        let kept_off = taints_of(set, &matched);
        let text = format!("wants {desired} pods for {} nodes that match its selector", matched.len());
        return Some(Late { name: set.name().to_owned(), text, taint: kept_off });
    }
    if desired == 0 {
        return must_run.then(|| late("wants no pod: no node matches its selector yet".to_owned())).flatten();
    }
    // A DaemonSet that is only updated by deleting its pods (the driver's) keeps old pods on purpose.
    let rolling = set.text("/spec/updateStrategy/type") != Some("OnDelete");
    let updated = set.number("/status/updatedNumberScheduled").unwrap_or(desired);
    if rolling && updated < desired {
        return late(format!("{updated} of {desired} pods updated"));
    }
    if ready < desired {
        return late(format!("{ready} of {desired} pods ready"));
    }
    None
}

/// Whether the DaemonSet's node selector matches the node.
fn selects(set: &Object, node: &Object) -> bool {
    let Some(selector) = set.at("/spec/template/spec/nodeSelector").and_then(serde_json::Value::as_object) else {
        return true;
    };
    selector.iter().all(|(key, value)| value.as_str().is_some() && node.label(key) == value.as_str())
}

/// The first taint that the DaemonSet does not tolerate, with the nodes that carry it.
fn taints_of(set: &Object, nodes: &[&Object]) -> Option<(String, Vec<String>)> {
    let tolerations = set.list("/spec/template/spec/tolerations");
    let mut found: Option<(String, Vec<String>)> = None;
    for node in nodes {
        let taint = node.list("/spec/taints").iter().find(|taint| {
            let text = |key: &str| taint.get(key).and_then(serde_json::Value::as_str).unwrap_or("");
            // Kubernetes sets and removes its own taints while a node comes up; DaemonSets tolerate most of them.
            let passing = text("key").starts_with("node.kubernetes.io/")
                || text("key").starts_with("node.cloudprovider.kubernetes.io/");
            text("effect") != "PreferNoSchedule" && !passing && !tolerations.iter().any(|one| tolerates(one, taint))
        });
        if let Some(taint) = taint {
            let taint = show_taint(taint);
            match &mut found {
                Some((known, names)) if *known == taint => names.push(node.name().to_owned()),
                Some(_) => {}
                None => found = Some((taint, vec![node.name().to_owned()])),
            }
        }
    }
    found
}

fn tolerates(toleration: &serde_json::Value, taint: &serde_json::Value) -> bool {
    let of = |value: &serde_json::Value, key: &str| {
        value.get(key).and_then(serde_json::Value::as_str).unwrap_or("").to_owned()
    };
    let key = of(toleration, "key");
    let effect = of(toleration, "effect");
    let any_value = of(toleration, "operator") == "Exists";
    (key.is_empty() && any_value || key == of(taint, "key"))
        && (effect.is_empty() || effect == of(taint, "effect"))
        && (any_value || of(toleration, "value") == of(taint, "value"))
}

fn show_taint(taint: &serde_json::Value) -> String {
    let of = |key: &str| taint.get(key).and_then(serde_json::Value::as_str).unwrap_or("");
    match of("value") {
        "" => format!("{}:{}", of("key"), of("effect")),
        value => format!("{}={value}:{}", of("key"), of("effect")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(name: &str, taints: Value) -> Object {
        Object::new(json!({
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.deploy.driver": "true", "nvidia.com/gpu.deploy.operator-validator": "true"}},
            "spec": {"taints": taints},
        }))
    }

    fn set(name: &str, deploy: &str, desired: i64, ready: i64) -> Object {
        Object::new(json!({
            "metadata": {"name": name, "generation": 1},
            "spec": {"template": {"spec": {"nodeSelector": {format!("nvidia.com/gpu.deploy.{deploy}"): "true"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}}},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": desired, "numberReady": ready, "updatedNumberScheduled": desired},
        }))
    }

    fn policy() -> Object {
        Object::new(
            json!({"spec": {"toolkit": {"enabled": false}, "devicePlugin": {"enabled": false}, "gfd": {"enabled": false}}}),
        )
    }

    fn version() -> OperatorVersion {
        OperatorVersion::of(1, 11, 0)
    }

    #[test]
    fn all_is_done_when_every_set_is_ready_on_every_matching_node() {
        let nodes = [node("gpu-1", json!([]))];
        let sets = [
            set("nvidia-driver-daemonset-411.86", "driver", 1, 1),
            set(VALIDATOR, "operator-validator", 1, 1),
            set("nvidia-mig-manager", "mig-manager", 0, 0),
        ];
        assert_eq!(late_sets(&policy(), &version(), &sets, &nodes), []);
    }

    #[test]
    fn a_validator_with_nothing_to_do_is_not_done() {
        let sets = [set(VALIDATOR, "operator-validator", 0, 0)];
        let late = late_sets(&policy(), &version(), &sets, &[]);
        let texts: Vec<String> = late.iter().map(|late| format!("{} {}", late.name, late.text)).collect();
        assert_eq!(
            texts,
            [
                "nvidia-driver-daemonset does not exist yet",
                "nvidia-operator-validator wants no pod: no node matches its selector yet"
            ]
        );
    }

    #[test]
    fn a_taint_that_keeps_a_set_off_its_nodes_is_named() {
        let taint = json!([{"key": "team", "value": "ml", "effect": "NoSchedule"}]);
        let nodes = [node("gpu-1", taint.clone()), node("gpu-2", taint)];
        let sets = [set("nvidia-driver-daemonset", "driver", 0, 0), set(VALIDATOR, "operator-validator", 0, 0)];
        let late = late_sets(&policy(), &version(), &sets, &nodes);
        assert_eq!(
            late[0].taint,
            Some(("team=ml:NoSchedule".to_owned(), vec!["gpu-1".to_owned(), "gpu-2".to_owned()]))
        );
    }

    #[test]
    fn tolerated_and_passing_taints_are_no_reason() {
        let nodes = [node(
            "gpu-1",
            json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
        )];
        let sets = [set("nvidia-driver-daemonset", "driver", 0, 0), set(VALIDATOR, "operator-validator", 1, 0)];
        let late = late_sets(&policy(), &version(), &sets, &nodes);
        assert_eq!(late[0].taint, None);
        assert_eq!(late[0].text, "wants 0 pods for 1 nodes that match its selector");
        assert_eq!(late[1].text, "0 of 1 pods ready");
    }

    #[test]
    fn the_status_of_an_older_generation_is_not_believed() {
        let mut old = set(VALIDATOR, "operator-validator", 1, 1).value().clone();
        old["metadata"]["generation"] = json!(2);
        let nodes = [node("gpu-1", json!([]))];
        let sets = [set("nvidia-driver-daemonset", "driver", 1, 1), Object::new(old)];
        let late = late_sets(&policy(), &version(), &sets, &nodes);
        assert_eq!(late[0].text, "its last change has not been looked at yet");
    }
}
