//! What an object says of itself.

use toolbox_cluster::machines::{self, MachineCause};
use toolbox_cluster::{Object, conditions};
use toolbox_engine::{ObjectRef, Verdict, Why};

/// Conditions that are good when they are true.
const GOOD: &[&str] = &[
    "Ready",
    "Available",
    "Succeeded",
    "Established",
    "Complete",
    "ContainersReady",
    "PodScheduled",
    "Initialized",
    "Progressing",
];

/// Ends of names of conditions that are bad when they are true.
const BAD: &[&str] = &[
    "Failed",
    "Failing",
    "Degraded",
    "Pressure",
    "Unhealthy",
    "Unavailable",
    "Error",
    "Remaining",
    "Failure",
    "Pending",
    "FailureTarget",
];

/// Done with a few words, or what it waits for.
pub(super) fn judge(object: &Object) -> Verdict<String> {
    let meant = object.refer();
    if object.is_deleting() {
        return conditions::gone(std::slice::from_ref(object), &meant).map(|()| "is gone".to_owned());
    }
    let found = Some(object);
    let done = |words: &str| {
        let words = words.to_owned();
        move |_: Object| words
    };
    match object.kind() {
        "Pod" if object.text("/status/phase") == Some("Succeeded") => Verdict::Done("has succeeded".to_owned()),
        "Pod" => conditions::pod_ready(found, &meant).map(done("is ready")),
        "Deployment" => conditions::deployment_available(found, &meant).map(done("is available")),
        "DaemonSet" => {
            conditions::daemon_set_ready(found, &meant, 1).map(done("is ready on every node it should run on"))
        }
        "ReplicaSet" | "StatefulSet" => replicas(object),
        "Job" => conditions::job_complete(found, &meant).map(done("is complete")),
        "Node" => conditions::node_ready(found, &meant).map(done("is Ready")),
        "CustomResourceDefinition" => conditions::crd_established(found, &meant).map(done("is established")),
        "MachineSet" => machine_set(object),
        "Machine" => machine(object),
        _ => in_general(object, &meant),
    }
}

fn replicas(set: &Object) -> Verdict<String> {
    let wanted = set.number("/spec/replicas").unwrap_or(1);
    let ready = set.number("/status/readyReplicas").unwrap_or(0);
    if ready >= wanted {
        Verdict::Done(format!("has its {wanted} pods"))
    } else {
        Verdict::Pending(Why::waiting(set.refer(), "pods", format!("{ready} of {wanted} pods are ready")))
    }
}

fn machine_set(set: &Object) -> Verdict<String> {
    let (wanted, there) = (machines::replicas(set), machines::available(set));
    if there >= wanted {
        Verdict::Done(format!("has its {wanted} machines"))
    } else {
        Verdict::Pending(Why::waiting(set.refer(), "machines", format!("{there} of {wanted} machines are available")))
    }
}

fn machine(machine: &Object) -> Verdict<String> {
    if let Some(failure) = machines::failure(machine).or_else(|| machines::trouble(machine)) {
        return Verdict::Failed(Why::new(machine.refer(), &MachineCause::Failed(failure)));
    }
    match machine.text("/status/phase") {
        Some("Running") => Verdict::Done("is Running".to_owned()),
        phase => Verdict::Pending(Why::waiting(
            machine.refer(),
            "machine",
            format!("is {}", phase.unwrap_or("not looked at yet")),
        )),
    }
}

/// A kind we know nothing special of: its phase, its state, its conditions.
fn in_general(object: &Object, meant: &ObjectRef) -> Verdict<String> {
    let phase = ["/status/phase", "/status/state", "/status/connectionState/lastObservedState"]
        .into_iter()
        .find_map(|at| object.text(at))
        .filter(|phase| !phase.is_empty());
    let said: Vec<String> = ["/status/reason", "/status/message"]
        .into_iter()
        .filter_map(|at| object.text(at))
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect();
    let fine = phase.is_none_or(|phase| {
        matches!(
            phase.to_lowercase().as_str(),
            "ready"
                | "running"
                | "succeeded"
                | "complete"
                | "active"
                | "bound"
                | "available"
                | "installed"
                | "atlatestknown"
        )
    });
    let complaints = complaints(object);
    if fine && complaints.is_empty() {
        return Verdict::Done(
            phase.map_or_else(|| "says nothing against itself".to_owned(), |phase| format!("is {phase}")),
        );
    }
    let mut text: Vec<String> = phase.map(|phase| format!("is {phase}")).into_iter().collect();
    text.extend(if fine { complaints } else { [said, complaints].concat() });
    let bad = phase.is_some_and(|phase| phase.eq_ignore_ascii_case("failed"));
    let why = Why::waiting(meant.clone(), "status", text.join("; "));
    if bad { Verdict::Failed(why) } else { Verdict::Pending(why) }
}

fn complaints(object: &Object) -> Vec<String> {
    let text = |condition: &serde_json::Value, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    object
        .list("/status/conditions")
        .iter()
        .filter(|condition| {
            let (kind, status) = (text(condition, "type"), text(condition, "status"));
            (GOOD.contains(&kind.as_str()) && status != "True")
                || (BAD.iter().any(|bad| kind.ends_with(bad)) && status == "True")
        })
        .map(|condition| {
            let parts = [text(condition, "reason"), text(condition, "message")];
            let said: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let head = format!("{} is {}", text(condition, "type"), text(condition, "status"));
            if said.is_empty() { head } else { format!("{head}: {}", said.join(": ")) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(status: serde_json::Value) -> Object {
        Object::new(
            json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "status": status}),
        )
    }

    #[test]
    fn a_kind_we_know_nothing_of_speaks_by_its_state_and_conditions() {
        assert_eq!(judge(&policy(json!({"state": "ready"}))), Verdict::Done("is ready".into()));
        assert_eq!(judge(&policy(json!({}))), Verdict::Done("says nothing against itself".into()));
        let Verdict::Pending(why) = judge(&policy(json!({"state": "notReady", "conditions": [
            {"type": "Ready", "status": "False", "reason": "OperandNotReady", "message": "driver"},
            {"type": "CatalogSourcesUnhealthy", "status": "False"},
            {"type": "ResolutionFailed", "status": "True", "message": "no such channel"},
        ]}))) else {
            panic!("not pending")
        };
        assert_eq!(
            why.cause,
            "is notReady; Ready is False: OperandNotReady: driver; ResolutionFailed is True: no such channel"
        );
    }

    #[test]
    fn a_failed_phase_is_final_and_says_why() {
        let Verdict::Failed(why) = judge(&policy(json!({"phase": "Failed", "message": "quota"}))) else {
            panic!("not failed")
        };
        assert_eq!(why.cause, "is Failed; quota");
    }
}
