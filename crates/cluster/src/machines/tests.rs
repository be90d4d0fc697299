//! The rules on a few lines of JSON each.

use serde_json::{Value, json};
use toolbox_engine::{Cause, Exit, FailureVerdict};

use super::*;

fn set_of_kind(name: &str, value: Value) -> Object {
    Object::new(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": "u1", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [{"uid": "o"}],
            "labels": {"machine.openshift.io/cluster-api-cluster": "demo-x7k2p", "app.kubernetes.io/managed-by": "argo"},
            "annotations": {
                "machine.openshift.io/vCPU": "4", "machine.openshift.io/GPU": "0",
                "machine.openshift.io/cluster-api-autoscaler-node-group-min-size": "1",
                "team": "infra",
            },
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"machine.openshift.io/cluster-api-cluster": "demo-x7k2p", SET_LABEL: name}},
            "template": {
                "metadata": {"labels": {
                    "machine.openshift.io/cluster-api-cluster": "demo-x7k2p",
                    "machine.openshift.io/cluster-api-machine-role": "worker",
                    SET_LABEL: name,
                }},
                "spec": {"providerSpec": {"value": value}},
            },
        },
        "status": {"replicas": 1, "availableReplicas": 1},
    }))
}

fn aws(name: &str, zone: &str) -> Object {
    let value = json!({
        "kind": "AWSMachineProviderConfig", "instanceType": "m5.xlarge", "placement": {"availabilityZone": zone},
    });
    set_of_kind(name, value)
}

fn with(object: &Object, change: impl FnOnce(&mut Value)) -> Object {
    let mut value = object.value().clone();
    change(&mut value);
    Object::new(value)
}

fn failed(reason: &str, message: &str) -> Object {
    Object::new(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "demo-x7k2p-gpu-a-h2jq9", "labels": {SET_LABEL: "demo-x7k2p-gpu-a"}},
        "spec": {"providerSpec": {"value": {
            "kind": "AWSMachineProviderConfig", "instanceType": "g4dn.xlarge",
            "placement": {"availabilityZone": "us-test-1a"},
        }}},
        "status": {"phase": "Failed", "errorReason": reason, "errorMessage": message},
    }))
}

#[test]
fn each_platform_has_its_own_size_field_and_some_have_none() {
    let azure = json!({"kind": "AzureMachineProviderSpec", "vmSize": "Standard_NC4as_T4_v3", "zone": "1"});
    let azure = set_of_kind("demo-worker", azure);
    assert_eq!(instance_type(&azure), Some("Standard_NC4as_T4_v3"));
    assert_eq!(zone(&azure), Some("1"));
    let google = json!({"kind": "GCPMachineProviderSpec", "machineType": "a2-highgpu-1g", "zone": "test1-b"});
    assert_eq!(instance_type(&set_of_kind("g", google)), Some("a2-highgpu-1g"));
    assert_eq!(size_field("OpenstackProviderSpec").unwrap().size, "flavor");
    assert_eq!(size_field("IBMCloudMachineProviderSpec").unwrap().size, "profile");
    assert_eq!(size_field("AlibabaCloudMachineProviderConfig").unwrap().size, "instanceType");
    for kind in [
        "VSphereMachineProviderSpec",
        "NutanixMachineProviderConfig",
        "BareMetalMachineProviderSpec",
        "PowerVSMachineProviderConfig",
        "",
    ] {
        let refusal = size_field(kind).unwrap_err();
        assert!(refusal.text().contains("no instance type"), "{kind}");
    }
    // Case is kept: a type of other capitals is another type.
    assert_ne!(instance_type(&azure), Some("standard_nc4as_t4_v3"));
}

#[test]
fn a_platform_without_types_is_refused_by_its_kind() {
    let vsphere = json!({"kind": "VSphereMachineProviderSpec", "numCPUs": 4});
    let refusal = bases(&[set_of_kind("w", vsphere)], None).unwrap_err();
    assert_eq!(refusal.code(), "no-instance-type");
    assert!(refusal.text().contains("VSphereMachineProviderSpec"));
}

#[test]
fn absent_replicas_are_one_and_absent_counters_none() {
    let set = Object::new(json!({"spec": {}, "status": {}}));
    assert_eq!((replicas(&set), current(&set), available(&set)), (1, 0, 0));
}

#[test]
fn the_base_is_chosen_for_its_working_nodes_and_one_is_kept_per_zone() {
    let idle = with(&aws("demo-x7k2p-worker-a", "us-test-1a"), |set| {
        set["status"] = json!({});
    });
    let tainted = with(&aws("demo-x7k2p-infra-b", "us-test-1b"), |set| {
        set["spec"]["template"]["spec"]["taints"] = json!([{"key": "infra", "effect": "NoSchedule"}]);
    });
    let sets = [idle, tainted, aws("demo-x7k2p-worker-b", "us-test-1b"), aws("demo-x7k2p-worker-c", "us-test-1c")];
    let bases = bases(&sets, None).unwrap();
    let order: Vec<&str> = bases.order.iter().map(Object::name).collect();
    assert_eq!(order, ["demo-x7k2p-worker-b", "demo-x7k2p-worker-c", "demo-x7k2p-worker-a"]);
    assert!(bases.because.contains("first of 4"), "{}", bases.because);
    assert!(bases.because.contains("us-test-1b"));
}

#[test]
fn a_base_asked_for_is_taken_or_refused_with_the_candidates() {
    let sets = [aws("demo-worker-a", "a"), aws("demo-worker-b", "b")];
    assert_eq!(bases(&sets, Some("demo-worker-b")).unwrap().order[0].name(), "demo-worker-b");
    let refusal = bases(&sets, Some("demo-worker-z")).unwrap_err();
    assert_eq!(refusal.next(), "choose one: --base-machineset demo-worker-a | demo-worker-b");
    assert_eq!(refusal.exit(), Exit::Configuration);
    let master = with(&sets[0], |set| {
        set["spec"]["template"]["metadata"]["labels"]["machine.openshift.io/cluster-api-machine-role"] =
            json!("master");
    });
    assert_eq!(bases(&[master], None).unwrap_err().code(), "no-machine-sets");
    assert_eq!(bases(&[], None).unwrap_err().text(), "there is no machine set to derive from");
}

#[test]
fn a_set_whose_cluster_api_copy_counts_is_refused() {
    let foreign = with(&aws("w", "a"), |set| {
        set["spec"]["authoritativeAPI"] = json!("ClusterAPI");
    });
    assert!(is_foreign(&foreign));
    assert_eq!(bases(std::slice::from_ref(&foreign), None).unwrap_err(), MachineCause::ClusterApi);
    let migrated_back = with(&foreign, |set| {
        set["status"]["authoritativeAPI"] = json!("MachineAPI");
    });
    assert!(!is_foreign(&migrated_back));
}

#[test]
fn a_derived_set_has_one_new_name_and_nothing_of_the_server_or_the_autoscaler() {
    let base = aws("demo-x7k2p-worker-a", "us-test-1a");
    let name = derived_name(base.name(), "g4dn.xlarge", Some("demo-x7k2p"), false);
    assert_eq!(name, "demo-x7k2p-worker-a--g4dn-xlarge");
    let derived = Object::new(derive(&base, &name, "g4dn.xlarge").unwrap());
    assert_eq!(derived.name(), name);
    for pointer in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        assert_eq!(derived.at(pointer).unwrap()[SET_LABEL], json!(name));
    }
    assert_eq!(instance_type(&derived), Some("g4dn.xlarge"));
    assert_eq!(replicas(&derived), 0);
    for pointer in [
        "/status",
        "/metadata/uid",
        "/metadata/resourceVersion",
        "/metadata/generation",
        "/metadata/creationTimestamp",
        "/metadata/ownerReferences",
    ] {
        assert_eq!(derived.at(pointer), None, "{pointer}");
    }
    assert_eq!(derived.value()["metadata"]["annotations"], json!({"team": "infra"}));
    assert_eq!(derived.label("app.kubernetes.io/managed-by"), None);
    assert_eq!(derived.label("machine.openshift.io/cluster-api-cluster"), Some("demo-x7k2p"));
}

#[test]
fn a_selector_that_would_not_match_is_refused() {
    let base = with(&aws("w", "a"), |set| {
        set["spec"]["selector"]["matchLabels"]["team"] = json!("gpu");
    });
    assert_eq!(derive(&base, "w--x", "x").unwrap_err(), MachineCause::SelectorMismatch { label: "team".to_owned() });
}

#[test]
fn names_are_legal_short_the_same_each_time_and_keep_the_infrastructures_name() {
    let infra = "averylongclustername-for-a-nightly-job-x7k2p";
    let base = format!("{infra}-worker-us-test-1a");
    let name = derived_name(&base, "Standard_NC4as_T4_v3", Some(infra), false);
    assert!(name.len() <= 57, "{name}");
    assert!(name.starts_with(infra), "{name}");
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
    assert!(!name.ends_with('-'));
    assert_eq!(name, derived_name(&base, "Standard_NC4as_T4_v3", Some(infra), false));
    assert_ne!(name, derived_name(&base, "Standard_NC8as_T4_v3", Some(infra), false));
    assert_eq!(derived_name("w", "Standard_NC4as_T4_v3", None, false), "w--standard-nc4as-t4-v3");
    assert_ne!(derived_name("w", "a.b", None, true), derived_name("w", "a-b", None, true));
    // Whatever comes in, something legal comes out.
    for (base, size) in [("x".repeat(200), "y".repeat(200)), (String::new(), ".".to_owned())] {
        assert!(derived_name(&base, &size, Some(&base), false).len() <= 57);
    }
}

#[test]
fn what_clouds_say_is_told_apart() {
    let cases = [
        ("InsufficientResources", "no capacity for g4dn.xlarge in us-test-1a", FailureClass::OutOfStock),
        (
            "InsufficientResources",
            "error launching instance: We currently do not have sufficient g4dn.xlarge capacity in the Availability Zone you requested (us-test-1a)",
            FailureClass::OutOfStock,
        ),
        (
            "InvalidConfiguration",
            "p2.xlarge is not supported in zone us-test-1a, choose us-test-1b",
            FailureClass::NotOffered,
        ),
        (
            "InvalidConfiguration",
            "error launching instance: Your requested instance type (p2.xlarge) is not supported in your requested Availability Zone (us-test-1a). Please retry your request by not specifying an Availability Zone or choosing us-test-1b.",
            FailureClass::NotOffered,
        ),
        (
            "InvalidConfiguration",
            "error launching instance: You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket",
            FailureClass::Quota,
        ),
        (
            "InsufficientResources",
            "Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 0.0 in region us-test1",
            FailureClass::Quota,
        ),
        (
            "CreateError",
            "OperationNotAllowed: exceeding approved standardNCASv3Family Cores quota",
            FailureClass::Quota,
        ),
        (
            "CreateError",
            "ZONE_RESOURCE_POOL_EXHAUSTED: The zone does not have enough resources available",
            FailureClass::OutOfStock,
        ),
        (
            "InvalidConfiguration",
            "SkuNotAvailable: The requested VM size Standard_NC4as_T4_v3 is currently not available in location 'test'",
            FailureClass::NotOffered,
        ),
        (
            "InvalidConfiguration",
            "error launching instance: Invalid value 'g4dn.xlrage' for InstanceType.",
            FailureClass::BadType,
        ),
        (
            "CreateError",
            "UnauthorizedOperation: You are not authorized to perform this operation",
            FailureClass::Credentials,
        ),
        ("CreateError", "subnet subnet-1 is full", FailureClass::Other),
    ];
    for (reason, message, class) in cases {
        assert_eq!(failure(&failed(reason, message)).unwrap().class, class, "{message}");
    }
}

#[test]
fn stock_and_quota_may_pass_and_a_type_that_is_not_sold_may_not() {
    let stock = MachineCause::Failed(
        failure(&failed("InsufficientResources", "no capacity for g4dn.xlarge in us-test-1a")).unwrap(),
    );
    assert_eq!(stock.verdict(), FailureVerdict::Capacity);
    assert_eq!(stock.exit(), Exit::Failed);
    assert!(stock.text().starts_with("zone us-test-1a has no g4dn.xlarge left"), "{}", stock.text());
    let mut refusal =
        failure(&failed("InvalidConfiguration", "p2.xlarge is not supported in zone us-test-1a")).unwrap();
    refusal.other_bases = vec!["w-b".to_owned(), "w-c".to_owned()];
    let refusal = MachineCause::Failed(refusal);
    assert_eq!(refusal.exit(), Exit::Configuration);
    assert_eq!(refusal.next(), "try another base: --base-machineset w-b | w-c");
}

#[test]
fn a_machine_in_the_making_says_its_trouble_before_it_fails() {
    let making = with(&failed("", ""), |machine| {
        machine["status"] = json!({"phase": "Provisioning", "providerStatus": {"conditions": [
            {"type": "MachineCreation", "status": "False", "reason": "MachineCreationFailed", "message": "no capacity for g4dn.xlarge"}]}});
    });
    assert_eq!(failure(&making), None);
    assert_eq!(trouble(&making).unwrap().class, FailureClass::OutOfStock);
    assert_eq!(failure(&failed("", "")).unwrap().class, FailureClass::Other);
}
