//! What Machines and Nodes say: made, on their way, or never to come.

use std::collections::BTreeMap;

use toolbox_core::cluster::machines::{self, MachineCause, failure, instance_type, replicas, set_of, trouble};
use toolbox_core::cluster::{Object, kinds, nodes};
use toolbox_core::engine::{FailureVerdict, Verdict, Why};

use super::intent::machine_set;

/// Whether each set has exactly its machines, each made by the cloud and of the type.
pub(super) fn machines_verdict(
    expected: &BTreeMap<String, i64>,
    wanted_type: &str,
    sets: &[Object],
    all: &[Object],
) -> Verdict<Vec<Object>> {
    let of = |set: &str| -> Vec<&Object> { all.iter().filter(|machine| set_of(machine) == Some(set)).collect() };
    for (set, count) in expected {
        let staying: Vec<&Object> = of(set).into_iter().filter(|machine| !machine.is_deleting()).collect();
        // Of more machines than wanted some are about to go, and a failed one is the first of them.
        if i64::try_from(staying.len()).is_ok_and(|there| there > *count) {
            continue;
        }
        // A failed machine is never replaced: it ends the wait whatever the counters say.
        for machine in staying {
            if let Some(failure) = failure(machine) {
                return Verdict::Failed(Why::new(machine.refer(), &MachineCause::Failed(failure)));
            }
        }
    }
    let verdicts = expected.iter().map(|(set, count)| set_verdict(set, *count, wanted_type, sets, &of(set)));
    Verdict::all(verdicts).map(|machines| machines.into_iter().flatten().collect())
}

fn set_verdict(
    name: &str,
    count: i64,
    wanted_type: &str,
    sets: &[Object],
    machines: &[&Object],
) -> Verdict<Vec<Object>> {
    let waiting = |code, text: String| Verdict::Pending(Why::waiting(machine_set(name), code, text));
    let Some(set) = sets.iter().find(|set| set.name() == name) else {
        return waiting("set-absent", "does not exist yet".to_owned());
    };
    if replicas(set) != count {
        return waiting(
            "replicas-differ",
            format!("wants {} machines, not {count}: something else scales it", replicas(set)),
        );
    }
    if let Some(leaving) = machines.iter().find(|machine| machine.is_deleting()) {
        let why = Why::waiting(leaving.refer(), "machine-deleting", "is being deleted");
        return Verdict::Pending(why);
    }
    if i64::try_from(machines.len()).ok() != Some(count) {
        return waiting("machines-missing", format!("has {} of {count} machines", machines.len()));
    }
    let wrong: Vec<&&Object> =
        machines.iter().filter(|machine| instance_type(machine).is_some_and(|found| found != wanted_type)).collect();
    if let Some(first) = wrong.first() {
        let cause = MachineCause::WrongType {
            count: wrong.len(),
            total: machines.len(),
            found: instance_type(first).unwrap_or_default().to_owned(),
            machines: wrong.iter().map(|machine| machine.name().to_owned()).collect(),
        };
        return Verdict::Failed(Why::new(machine_set(name), &cause));
    }
    Verdict::all(machines.iter().map(|machine| machine_verdict(machine)))
}

fn machine_verdict(machine: &Object) -> Verdict<Object> {
    let phase = machine.text("/status/phase").unwrap_or("not looked at yet");
    if matches!(phase, "Provisioned" | "Running") {
        return Verdict::Done(machine.clone());
    }
    let why = match trouble(machine) {
        Some(trouble) => {
            let why = Why::new(machine.refer(), &MachineCause::Failed(trouble));
            Why { cause: format!("is {phase}, and {}", why.cause), ..why }
        }
        None => Why::waiting(machine.refer(), "machine-provisioning", format!("is {phase}"))
            .or_else(FailureVerdict::Infrastructure, "see the machine-api-controllers log in openshift-machine-api"),
    };
    Verdict::Pending(why)
}

/// Whether the machine's node is there, Ready and of the type.
pub(super) fn node_verdict(machine: &Object, all: &[Object], wanted_type: &str) -> Verdict<String> {
    let found = machine.text("/status/nodeRef/name").and_then(|name| all.iter().find(|node| node.name() == name));
    let Some(node) = found else {
        let why = Why::waiting(machine.refer(), "node-absent", "its node has not joined yet").or_else(
            FailureVerdict::Infrastructure,
            "see the machine's console log, and pending certificate requests (kubectl get certificatesigningrequests)",
        );
        return Verdict::Pending(why);
    };
    if let Some(found) = nodes::instance_type(node).filter(|found| *found != wanted_type) {
        let cause = MachineCause::WrongType {
            count: 1,
            total: 1,
            found: found.to_owned(),
            machines: vec![machine.name().to_owned()],
        };
        return Verdict::Failed(Why::new(node.refer(), &cause));
    }
    match node.condition("Ready") {
        Some(ready) if ready.is_true() => Verdict::Done(node.name().to_owned()),
        ready => {
            let text = ready.map_or_else(String::new, |ready| format!(": {}", ready.text()));
            let why = Why::waiting(node.refer(), "node-not-ready", format!("is not Ready{text}"));
            Verdict::Pending(why.or_else(
                FailureVerdict::Infrastructure,
                "see the node's conditions and its kubelet's log; the machine stays for inspection",
            ))
        }
    }
}

/// A machine by name, for those that have gone.
pub(super) fn gone(name: &str) -> Why {
    let object = kinds::MACHINE.object(Some(machines::NAMESPACE), name);
    Why::waiting(object, "machine-gone", "was made and is gone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(replicas: i64) -> Object {
        Object::new(json!({"kind": "MachineSet", "metadata": {"name": "gpu-a"}, "spec": {"replicas": replicas}}))
    }

    fn machine(name: &str, size: &str, status: Value) -> Object {
        Object::new(json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": name, "namespace": machines::NAMESPACE, "labels": {machines::SET_LABEL: "gpu-a"}},
            "spec": {"providerSpec": {"value": {"kind": "AWSMachineProviderConfig", "instanceType": size}}},
            "status": status,
        }))
    }

    fn judge(count: i64, all: &[Object]) -> Verdict<Vec<Object>> {
        machines_verdict(&BTreeMap::from([("gpu-a".to_owned(), count)]), "g4dn.xlarge", &[set(count)], all)
    }

    fn cause(verdict: Verdict<Vec<Object>>) -> (bool, String) {
        match verdict {
            Verdict::Failed(why) => (true, why.to_string()),
            Verdict::Pending(why) => (false, why.to_string()),
            Verdict::Done(_) => panic!("done"),
        }
    }

    #[test]
    fn machines_are_waited_for_with_their_count_and_their_trouble() {
        assert_eq!(cause(judge(1, &[])).1, "MachineSet/openshift-machine-api/gpu-a: has 0 of 1 machines");
        let making = machine(
            "m",
            "g4dn.xlarge",
            json!({"phase": "Provisioning", "conditions": [
            {"type": "MachineCreation", "status": "False", "reason": "MachineCreationFailed", "message": "no capacity for g4dn.xlarge"}]}),
        );
        let (failed, text) = cause(judge(1, &[making]));
        assert!(!failed);
        assert!(text.contains("is Provisioning, and the cloud has no g4dn.xlarge left"), "{text}");
        let made = machine("m", "g4dn.xlarge", json!({"phase": "Provisioned"}));
        assert!(matches!(judge(1, &[made]), Verdict::Done(machines) if machines.len() == 1));
        assert!(matches!(judge(0, &[]), Verdict::Done(machines) if machines.is_empty()));
    }

    #[test]
    fn a_failed_machine_ends_the_wait_even_beside_good_ones() {
        let good = machine("good", "g4dn.xlarge", json!({"phase": "Running"}));
        let bad = machine(
            "bad",
            "g4dn.xlarge",
            json!({"phase": "Failed", "errorReason": "InsufficientResources",
            "errorMessage": "no capacity for g4dn.xlarge in us-test-1a"}),
        );
        let (failed, text) = cause(judge(3, &[good.clone(), bad.clone()]));
        assert!(failed);
        assert!(text.starts_with("Machine/openshift-machine-api/bad: "), "{text}");
        // One too many: it is the failed one that goes.
        assert!(!cause(judge(1, &[good, bad.clone()])).0);
        assert!(!cause(judge(0, &[bad])).0);
    }

    #[test]
    fn counters_alone_are_no_success_when_the_machines_are_of_another_type() {
        let old = machine("demo-gpu-a-abc12", "m5.large", json!({"phase": "Running"}));
        let (failed, text) = cause(judge(1, &[old]));
        assert!(failed);
        assert!(text.contains("1 of 1 machines is m5.large"), "{text}");
    }

    #[test]
    fn a_node_must_be_there_ready_and_of_the_type() {
        let machine = machine("m", "g4dn.xlarge", json!({"phase": "Running", "nodeRef": {"name": "n"}}));
        let node = |size: &str, ready: &str| {
            Object::new(json!({"kind": "Node",
                "metadata": {"name": "n", "labels": {"node.kubernetes.io/instance-type": size}},
                "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": "no CNI"}]}}))
        };
        assert!(
            matches!(node_verdict(&machine, &[], "g4dn.xlarge"), Verdict::Pending(why) if why.code == "node-absent")
        );
        let not_ready = node_verdict(&machine, &[node("g4dn.xlarge", "False")], "g4dn.xlarge");
        assert!(matches!(not_ready, Verdict::Pending(why) if why.cause == "is not Ready: KubeletNotReady: no CNI"));
        assert_eq!(
            node_verdict(&machine, &[node("g4dn.xlarge", "True")], "g4dn.xlarge"),
            Verdict::Done("n".to_owned())
        );
        assert!(matches!(node_verdict(&machine, &[node("m5.large", "True")], "g4dn.xlarge"), Verdict::Failed(_)));
    }
}
