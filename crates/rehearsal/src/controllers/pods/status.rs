//! A pod's status, made from its containers.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::container::{Container, State};
use crate::controllers::kit::{Read, with_condition};

/// The status that a kubelet writes.
pub(super) fn pod_status(
    pod: &DynamicObject,
    containers: &[Container],
    started: &str,
    ip: &str,
    node_ready: bool,
    now: &str,
) -> Value {
    let (init, main): (Vec<_>, Vec<_>) = containers.iter().partition(|container| container.init);
    let initialized = init.iter().all(|container| container.succeeded());
    let phase = phase(pod, &init, &main);
    let finished = matches!(phase, "Succeeded" | "Failed");
    let ready = phase == "Running" && main.iter().all(|container| container.ready);
    let unready = |word: &str| {
        let names: Vec<&str> =
            main.iter().filter(|container| !container.ready).map(|container| container.name.as_str()).collect();
        format!("containers with {word} status: [{}]", names.join(" "))
    };
    let mut conditions = pod.list("/status/conditions").to_vec();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    let incomplete: Vec<&str> =
        init.iter().filter(|container| !container.succeeded()).map(|container| container.name.as_str()).collect();
    let (reason, text) = match (initialized, finished) {
        (true, true) if phase == "Succeeded" => ("PodCompleted", String::new()),
        (true, _) => ("", String::new()),
        (false, _) => {
            ("ContainersNotInitialized", format!("containers with incomplete status: [{}]", incomplete.join(" ")))
        }
    };
    conditions = with_condition(&conditions, "Initialized", initialized, reason, &text, now);
    let (reason, text) = match phase {
        _ if ready => ("", String::new()),
        "Succeeded" => ("PodCompleted", String::new()),
        _ => ("ContainersNotReady", unready("unready")),
    };
    conditions = with_condition(&conditions, "Ready", ready && node_ready, reason, &text, now);
    conditions = with_condition(&conditions, "ContainersReady", ready, reason, &text, now);
    conditions = with_condition(&conditions, "PodScheduled", true, "", "", started);
    let statuses = |list: &[&Container]| list.iter().map(|container| container.status()).collect::<Vec<_>>();
    let mut status = json!({
        "phase": phase, "conditions": conditions, "startTime": started, "hostIP": "10.0.128.1",
        "containerStatuses": statuses(&main), "qosClass": pod.at("/status/qosClass"),
    });
    if !init.is_empty() {
        status["initContainerStatuses"] = statuses(&init).into();
    }
    if !ip.is_empty() {
        status["podIP"] = ip.into();
        status["podIPs"] = json!([{"ip": ip}]);
    }
    status
}

fn phase(pod: &DynamicObject, init: &[&Container], main: &[&Container]) -> &'static str {
    let never = pod.text("/spec/restartPolicy") == "Never";
    let always = matches!(pod.text("/spec/restartPolicy"), "" | "Always");
    let failed = |container: &&&Container| matches!(&container.state, State::Ended(end) if end.code != 0);
    if never && init.iter().any(|container| failed(&container)) {
        return "Failed";
    }
    if !init.iter().all(|container| container.succeeded()) {
        return "Pending";
    }
    let ended = main.iter().all(|container| matches!(container.state, State::Ended(_)));
    if ended && !always {
        if main.iter().all(|container| container.succeeded()) {
            return "Succeeded";
        }
        if never {
            return "Failed";
        }
    }
    // A container that has never run keeps the whole pod Pending.
    let begun =
        main.iter().all(|container| container.last.is_some() || !matches!(container.state, State::Waiting { .. }));
    if begun { "Running" } else { "Pending" }
}
