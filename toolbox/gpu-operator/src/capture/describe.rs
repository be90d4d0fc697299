//! A pod's description, for people: what `kubectl describe pod` tells, as far as it explains trouble.

use std::fmt::Write as _;

use serde_json::Value;
use toolbox_core::cluster::Object;

use super::table::pod_status;

/// Describes a pod with its events, oldest first.
pub(crate) fn pod(pod: &Object, events: &[Object]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<18}{value}", format!("{name}:"));
    };
    line("Name", pod.name());
    line("Namespace", pod.namespace().unwrap_or(""));
    line("Uid", pod.uid());
    line("Node", pod.text("/spec/nodeName").unwrap_or("<none>"));
    line("Created", pod.created().unwrap_or("<unknown>"));
    line("Status", &pod_status(pod));
    line("Phase", pod.text("/status/phase").unwrap_or("<unknown>"));
    if let Some(message) = pod.text("/status/message") {
        line("Message", message);
    }
    for (name, value) in pod.labels() {
        line("Label", &format!("{name}={value}"));
    }
    for (title, spec, status) in [
        ("Init container", "/spec/initContainers", "/status/initContainerStatuses"),
        ("Container", "/spec/containers", "/status/containerStatuses"),
    ] {
        for container in pod.list(spec) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or("");
            let state = pod.list(status).iter().find(|state| state.get("name").and_then(Value::as_str) == Some(name));
            container_lines(&mut text, title, container, state);
        }
    }
    let _ = writeln!(text, "Conditions:");
    for condition in pod.list("/status/conditions") {
        let of = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or("");
        let _ = writeln!(text, "  {:<18}{:<8}{} {}", of("type"), of("status"), of("reason"), of("message"));
    }
    let _ = writeln!(text, "Events:");
    let mut events: Vec<&Object> =
        events.iter().filter(|event| event.text("/involvedObject/uid") == Some(pod.uid())).collect();
    events.sort_by_key(|event| last_seen(event).to_owned());
    for event in events {
        let of = |pointer: &str| event.text(pointer).unwrap_or("");
        let count = event.number("/count").unwrap_or(1);
        let _ =
            writeln!(text, "  {} {:<8}{} (x{count}): {}", last_seen(event), of("/type"), of("/reason"), of("/message"));
    }
    text
}

/// When an event was last seen; either API's field may be null.
fn last_seen(event: &Object) -> &str {
    ["/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/metadata/creationTimestamp"]
        .iter()
        .find_map(|pointer| event.text(pointer))
        .unwrap_or("")
}

fn container_lines(text: &mut String, title: &str, container: &Value, status: Option<&Value>) {
    let of = |pointer: &str| container.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let _ = writeln!(text, "{title} {}:", of("/name"));
    let _ = writeln!(text, "  Image:          {}", of("/image"));
    let Some(status) = status else {
        let _ = writeln!(text, "  State:          not started");
        return;
    };
    let number = |pointer: &str| status.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    if let Some(id) = status.get("imageID").and_then(Value::as_str) {
        let _ = writeln!(text, "  Image id:       {id}");
    }
    let _ = writeln!(text, "  Restarts:       {}", number("/restartCount"));
    for (name, pointer) in [("State", "/state"), ("Last state", "/lastState")] {
        if let Some(state) = status.pointer(pointer).and_then(Value::as_object)
            && let Some((kind, detail)) = state.iter().next()
        {
            let of = |key: &str| detail.get(key).and_then(Value::as_str).unwrap_or("");
            let code = detail
                .get("exitCode")
                .and_then(Value::as_i64)
                .map(|code| format!(" exit status {code}"))
                .unwrap_or_default();
            let words = format!("{kind} {}{code} {}", of("reason"), of("message"));
            let _ = writeln!(text, "  {:<16}{}", format!("{name}:"), words.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_description_has_states_and_events_in_order() {
        let object = Object::new(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u1"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]},
        }));
        let event = |at: &str, reason: &str, uid: &str| {
            Object::new(
                json!({"involvedObject": {"uid": uid}, "lastTimestamp": at, "type": "Warning", "reason": reason, "message": "m"}),
            )
        };
        let events = [
            event("2026-01-01T00:02:00Z", "BackOff", "u1"),
            event("2026-01-01T00:01:00Z", "Pulled", "u1"),
            event("2026-01-01T00:01:30Z", "Other", "u2"),
        ];
        let text = pod(&object, &events);
        assert!(
            text.contains(
                "  State:          waiting CrashLoopBackOff\n  Last state:     terminated Error exit status 1\n"
            ),
            "{text}"
        );
        let pulled = text.find("Pulled").unwrap();
        assert!(pulled < text.find("BackOff (x1)").unwrap() && !text.contains("Other"), "{text}");
    }
}
