//! Lists as `kubectl get` shows them.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use toolbox_core::cluster::Object;

/// A table of text: a header and rows, in columns.
pub(crate) fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|title| title.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let header: Vec<String> = header.iter().map(|title| (*title).to_owned()).collect();
    for row in std::iter::once(&header).chain(rows) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("   ").trim_end());
        text.push('\n');
    }
    text
}

/// How long ago something was made, as kubectl writes it: `45s`, `12m`, `3h20m`, `5d`.
pub(crate) fn age(object: &Object, now: Timestamp) -> String {
    let created: Option<Timestamp> = object.created().and_then(|text| text.parse().ok());
    let age = created.and_then(|created| Duration::try_from(now.duration_since(created)).ok());
    let Some(seconds) = age.map(|age| age.as_secs()) else {
        return "<unknown>".to_owned();
    };
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text.to_owned() }
}

/// Nodes.
pub(crate) fn nodes(nodes: &[Object], now: Timestamp) -> String {
    let rows = nodes.iter().map(|node| {
        let ready = match node.condition("Ready") {
            Some(ready) if ready.is_true() => "Ready",
            Some(_) => "NotReady",
            None => "Unknown",
        };
        let cordoned = if node.flag("/spec/unschedulable") == Some(true) { ",SchedulingDisabled" } else { "" };
        let roles: Vec<&str> =
            node.labels().keys().filter_map(|key| key.strip_prefix("node-role.kubernetes.io/")).collect();
        vec![
            node.name().to_owned(),
            format!("{ready}{cordoned}"),
            or_none(&roles.join(",")),
            age(node, now),
            or_none(node.text("/status/nodeInfo/kubeletVersion").unwrap_or("")),
            or_none(node.text("/status/nodeInfo/osImage").unwrap_or("")),
            or_none(node.text("/status/nodeInfo/kernelVersion").unwrap_or("")),
            or_none(node.text("/status/allocatable/nvidia.com~1gpu").unwrap_or("")),
            labels(node),
        ]
    });
    let header = ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "OS-IMAGE", "KERNEL", "GPUS", "LABELS"];
    render(&header, &rows.collect::<Vec<_>>())
}

fn labels(object: &Object) -> String {
    let pairs: Vec<String> = object.labels().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    or_none(&pairs.join(","))
}

/// Machines.
pub(crate) fn machines(machines: &[Object], now: Timestamp) -> String {
    let rows = machines.iter().map(|machine| {
        let text = |pointer: &str| or_none(machine.text(pointer).unwrap_or(""));
        vec![
            or_none(machine.namespace().unwrap_or("")),
            machine.name().to_owned(),
            text("/status/phase"),
            or_none(machine.label("machine.openshift.io/instance-type").unwrap_or("")),
            or_none(machine.label("machine.openshift.io/zone").unwrap_or("")),
            age(machine, now),
            text("/status/nodeRef/name"),
            text("/status/errorMessage"),
        ]
    });
    let header = ["NAMESPACE", "NAME", "PHASE", "TYPE", "ZONE", "AGE", "NODE", "ERROR"];
    render(&header, &rows.collect::<Vec<_>>())
}

/// Pods.
pub(crate) fn pods(pods: &[Object], now: Timestamp) -> String {
    let rows = pods.iter().map(|pod| {
        let statuses = pod.list("/status/containerStatuses");
        let ready = statuses.iter().filter(|status| status.get("ready").and_then(Value::as_bool) == Some(true)).count();
        let restarts: i64 =
            statuses.iter().filter_map(|status| status.get("restartCount").and_then(Value::as_i64)).sum();
        vec![
            pod.name().to_owned(),
            format!("{ready}/{}", pod.list("/spec/containers").len()),
            pod_status(pod),
            restarts.to_string(),
            age(pod, now),
            or_none(pod.text("/status/podIP").unwrap_or("")),
            or_none(pod.text("/spec/nodeName").unwrap_or("")),
        ]
    });
    let header = ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"];
    render(&header, &rows.collect::<Vec<_>>())
}

/// The one word that kubectl shows: the most telling reason, or the phase.
pub(crate) fn pod_status(pod: &Object) -> String {
    if pod.is_deleting() {
        return "Terminating".to_owned();
    }
    if let Some(reason) = pod.text("/status/reason") {
        return reason.to_owned();
    }
    let reason = |status: &Value| {
        let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        text("/state/waiting/reason").or_else(|| text("/state/terminated/reason"))
    };
    let inits = pod.list("/status/initContainerStatuses");
    for (at, status) in inits.iter().enumerate() {
        if status.pointer("/state/terminated/exitCode").and_then(Value::as_i64) == Some(0) {
            continue;
        }
        return match reason(status) {
            Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{at}/{}", inits.len()),
        };
    }
    pod.list("/status/containerStatuses")
        .iter()
        .find_map(reason)
        .or_else(|| pod.text("/status/phase").map(str::to_owned))
        .unwrap_or_else(|| "Unknown".to_owned())
}

/// DaemonSets.
pub(crate) fn daemon_sets(sets: &[Object], now: Timestamp) -> String {
    let rows = sets.iter().map(|set| {
        let count = |field: &str| set.number(&format!("/status/{field}")).unwrap_or(0).to_string();
        let selector: Vec<String> = set
            .at("/spec/template/spec/nodeSelector")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
            .collect();
        vec![
            set.name().to_owned(),
            count("desiredNumberScheduled"),
            count("currentNumberScheduled"),
            count("numberReady"),
            count("updatedNumberScheduled"),
            count("numberAvailable"),
            or_none(&selector.join(",")),
            age(set, now),
        ]
    });
    let header = ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "AGE"];
    render(&header, &rows.collect::<Vec<_>>())
}

/// `pod: image image…` for each pod, init containers first.
pub(crate) fn images(pods: &[Object]) -> String {
    let mut text = String::new();
    for pod in pods {
        let containers = pod.list("/spec/initContainers").iter().chain(pod.list("/spec/containers"));
        let images: Vec<&str> =
            containers.filter_map(|container| container.get("image").and_then(Value::as_str)).collect();
        let _ = writeln!(text, "{}/{}: {}", pod.namespace().unwrap_or(""), pod.name(), images.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_show_the_reason_that_matters() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let crashing = Object::new(json!({
            "metadata": {"name": "driver", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "gpu-1", "containers": [{"image": "driver:1"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        }));
        let initialising = Object::new(json!({
            "metadata": {"name": "validator"},
            "spec": {"containers": [{}], "initContainers": [{}, {}]},
            "status": {"phase": "Pending", "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}, {"state": {"running": {}}}]},
        }));
        let evicted = Object::new(
            json!({"metadata": {"name": "old"}, "spec": {"containers": [{}]}, "status": {"phase": "Failed", "reason": "Evicted"}}),
        );
        assert_eq!(
            pods(&[crashing, initialising, evicted], now),
            "NAME        READY   STATUS             RESTARTS   AGE         IP         NODE\n\
             driver      0/1     CrashLoopBackOff   4          10m         10.0.0.1   gpu-1\n\
             validator   0/1     Init:1/2           0          <unknown>   <none>     <none>\n\
             old         0/1     Evicted            0          <unknown>   <none>     <none>\n"
        );
    }

    #[test]
    fn images_are_listed_by_pod() {
        let pod = Object::new(
            json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": {"initContainers": [{"image": "a"}], "containers": [{"image": "b"}]}}),
        );
        assert_eq!(images(&[pod]), "ns/p: a b\n");
    }
}
