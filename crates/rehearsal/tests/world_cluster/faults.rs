//! Each fault by name ends in its own terminal state, with the words that a tool has to find.

use serde_json::{Value, json};
use toolbox_rehearsal::FloorRequest;
use toolbox_rehearsal::scenario::Fault;

use crate::support::*;

const GPU: &str = "g4dn.xlarge";

async fn failed_machine(fault: Fault) -> Value {
    let world = world("default", &[fault], 1).await;
    let set = scale(&world, "demo-x7k2p-worker-a", GPU, 1).await;
    let (_, machine) = until_any(&world, MACHINE, MACHINES, |machine| phase(machine) == "Failed").await;
    assert!(machine["metadata"]["name"].as_str().unwrap().starts_with(&set));
    world.api().clock().sleep(std::time::Duration::from_secs(3600)).await;
    let set = get(&world, MACHINE_SET, MACHINES, &set).await.unwrap();
    assert_eq!(set["status"]["replicas"], 1, "a Failed machine is not replaced");
    assert!(set["status"].get("availableReplicas").is_none());
    machine
}

#[tokio::test(start_paused = true)]
async fn quota_exhausted() {
    let machine = failed_machine(Fault::QuotaExhausted).await;
    assert_eq!(machine["status"]["errorReason"], "InvalidConfiguration");
    let message = machine["status"]["errorMessage"].as_str().unwrap();
    assert!(message.contains("your current vCPU limit of 0"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn zone_out_of_stock_but_another_one_works() {
    let machine = failed_machine(Fault::ZoneOutOfStock).await;
    assert_eq!(machine["status"]["errorReason"], "InsufficientResources");
    assert!(machine["status"]["errorMessage"].as_str().unwrap().contains("(us-test-1a)"));

    let world = world("default", &[Fault::ZoneOutOfStock], 1).await;
    scale(&world, "demo-x7k2p-worker-b", GPU, 1).await;
    until_any(&world, MACHINE, MACHINES, |machine| {
        label(machine, "machine.openshift.io/zone") == Some("us-test-1b") && phase(machine) == "Provisioned"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn type_not_offered() {
    let machine = failed_machine(Fault::TypeNotOffered).await;
    assert_eq!(machine["status"]["errorReason"], "InvalidConfiguration");
    let message = machine["status"]["errorMessage"].as_str().unwrap();
    assert!(message.contains("not supported in your requested Availability Zone (us-test-1a)"), "{message}");
    assert!(message.contains("choosing us-test-1b, us-test-1c"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn node_not_ready() {
    let world = world("default", &[Fault::NodeNotReady], 1).await;
    let set = scale(&world, "demo-x7k2p-worker-a", GPU, 1).await;
    let (_, machine) = until_any(&world, MACHINE, MACHINES, |machine| {
        phase(machine) == "Running" && label(machine, "machine.openshift.io/instance-type") == Some(GPU)
    })
    .await;
    world.api().clock().sleep(std::time::Duration::from_secs(1800)).await;
    let node = get(&world, NODE, "", machine["status"]["nodeRef"]["name"].as_str().unwrap()).await.unwrap();
    assert_eq!(condition(&node, "Ready").unwrap()["reason"], "KubeletNotReady");
    let set = get(&world, MACHINE_SET, MACHINES, &set).await.unwrap();
    assert!(set["status"].get("availableReplicas").is_none());
}

#[tokio::test(start_paused = true)]
async fn catalog_not_ready() {
    let world = world("default", &[Fault::CatalogNotReady], 1).await;
    let catalog = get(&world, CATALOG, MARKET, "certified-operators").await.unwrap();
    assert_eq!(catalog["status"]["connectionState"]["lastObservedState"], "TRANSIENT_FAILURE");
    assert!(list(&world, PACKAGE, MARKET).await.iter().all(|package| package["metadata"]["name"] == "nfd"));
    // Somebody else's broken catalog stops this install as well.
    subscribe(&world, "nfd", "openshift-nfd", "stable", "", "Automatic").await;
    let (_, subscription) =
        until(&world, SUBSCRIPTION, "openshift-nfd", "nfd", |it| is_true(it, "ResolutionFailed")).await;
    let why = condition(&subscription, "ResolutionFailed").unwrap();
    assert_eq!(why["reason"], "ErrorPreventedResolution");
    assert!(why["message"].as_str().unwrap().contains("certified-operators/openshift-marketplace"));
    assert!(is_true(&subscription, "CatalogSourcesUnhealthy"));
}

#[tokio::test(start_paused = true)]
async fn package_missing() {
    let world = world("default", &[Fault::PackageMissing], 1).await;
    let names: Vec<Value> =
        list(&world, PACKAGE, MARKET).await.iter().map(|it| it["metadata"]["name"].clone()).collect();
    assert_eq!(names, [json!("nfd")]);
}

async fn unresolved(faults: &[Fault], channel: &str, csv: &str) -> String {
    let world = world("default", faults, 1).await;
    subscribe(&world, "gpu-operator-certified", GPU_NS, channel, csv, "Manual").await;
    let fits = |it: &Value| is_true(it, "ResolutionFailed");
    let (_, subscription) = until(&world, SUBSCRIPTION, GPU_NS, "gpu-operator-certified", fits).await;
    assert!(list(&world, PLAN, GPU_NS).await.is_empty());
    let why = condition(&subscription, "ResolutionFailed").unwrap();
    assert_eq!(why["reason"], "ConstraintsNotSatisfiable");
    why["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn resolution_failed() {
    let message = unresolved(&[Fault::ResolutionFailed], "stable", GPU_CSV).await;
    assert!(
        message.starts_with("constraints not satisfiable: subscription gpu-operator-certified requires"),
        "{message}"
    );
    let message = unresolved(&[], "v9.9", GPU_CSV).await;
    assert!(message.contains("no operators found in channel v9.9"), "{message}");
    let message = unresolved(&[], "v1.8", GPU_CSV).await;
    assert!(
        message.contains("no operators found with name gpu-operator-certified.v1.11.0 in channel v1.8"),
        "{message}"
    );
}

async fn failed_csv(faults: &[Fault], namespace: &str, csv: &str, channel: &str) -> (f64, Value) {
    let world = world("default", faults, 1).await;
    subscribe(&world, "gpu-operator-certified", namespace, channel, csv, "Manual").await;
    approve(&world, namespace, csv).await;
    until(&world, CSV, namespace, csv, |csv| phase(csv) == "Failed").await
}

#[tokio::test(start_paused = true)]
async fn second_operator_group() {
    let (_, csv) = failed_csv(&[Fault::SecondOperatorGroup], GPU_NS, GPU_CSV, "stable").await;
    assert_eq!(csv["status"]["reason"], "TooManyOperatorGroups");
}

#[tokio::test(start_paused = true)]
async fn a_group_whose_scope_the_version_does_not_support() {
    let old = "gpu-operator-certified.v1.8.2";
    let (_, csv) = failed_csv(&[], GPU_NS, old, "v1.8").await;
    assert_eq!(csv["status"]["reason"], "UnsupportedOperatorGroup");
    let (_, csv) = failed_csv(&[], "openshift-operators", GPU_CSV, "stable").await;
    assert_eq!(
        csv["status"]["message"],
        "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces"
    );
}

#[tokio::test(start_paused = true)]
async fn csv_failed() {
    let (at, csv) = failed_csv(&[Fault::CsvFailed], GPU_NS, GPU_CSV, "stable").await;
    assert_eq!(csv["status"]["reason"], "InstallCheckFailed");
    assert!((300.0..330.0).contains(&at), "{at}");
}

async fn with_gpu_node(fault: Fault) -> toolbox_rehearsal::World {
    let world = world("gpu-node", &[fault], 1).await;
    tokio::join!(deploy_nfd(&world), deploy_gpu_operator(&world));
    world
}

#[tokio::test(start_paused = true)]
async fn no_gpu_label_and_yet_everything_is_ready() {
    let world = with_gpu_node(Fault::NoGpuLabel).await;
    until(&world, POLICY, "", "gpu-cluster-policy", |policy| policy["status"]["state"] == "ready").await;
    let nodes = list(&world, NODE, "").await;
    assert!(nodes.iter().all(|node| label(node, GPU_LABEL).is_none()));
    assert!(nodes.iter().any(|node| label(node, "feature.node.kubernetes.io/system-os_release.ID") == Some("rhcos")));
    assert!(list(&world, DAEMON_SET, GPU_NS).await.is_empty(), "no GPU node, no operands");
}

#[tokio::test(start_paused = true)]
async fn image_pull_failure_alternates_and_never_ends() {
    let world = with_gpu_node(Fault::ImagePullFailure).await;
    let tape = Tape::of(&world, POD, GPU_NS, |pod| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str().unwrap_or_default().to_owned()
    });
    let waiting = |pod: &Value| {
        label(pod, "app") == Some("nvidia-driver-daemonset")
            && pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
    };
    let (at, _) = until_any(&world, POD, GPU_NS, waiting).await;
    world.api().clock().sleep(std::time::Duration::from_secs(120)).await;
    let states = tape.states("nvidia-driver-daemonset");
    let tail: Vec<&str> =
        states.iter().map(String::as_str).skip_while(|state| *state != "ErrImagePull").take(4).collect();
    assert_eq!(tail, ["ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"], "from {at}");
    let events = list(&world, EVENT, GPU_NS).await;
    assert!(events.iter().any(|event| event["message"].as_str().unwrap_or_default().contains("manifest unknown")));
}

#[tokio::test(start_paused = true)]
async fn driver_crash_loop_counts_its_restarts() {
    let world = with_gpu_node(Fault::DriverCrashLoop).await;
    let crashing = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"][0];
        label(pod, "app") == Some("nvidia-driver-daemonset")
            && status["restartCount"].as_u64() >= Some(3)
            && status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    };
    let (_, pod) = until_any(&world, POD, GPU_NS, crashing).await;
    assert_eq!(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 1);
    let text = world.api().logs().text(GPU_NS, pod["metadata"]["name"].as_str().unwrap(), "nvidia-driver-ctr");
    assert!(text.trim_end().ends_with("kernel-devel-4.18.0-372.40.1.el8_6"), "{text}");
    let policy = get(&world, POLICY, "", "gpu-cluster-policy").await.unwrap();
    assert_ne!(policy["status"]["state"], "ready");
}

#[tokio::test(start_paused = true)]
async fn validator_failed_although_the_driver_is_ready() {
    let world = with_gpu_node(Fault::ValidatorFailed).await;
    let crashing = |pod: &Value| {
        let init = pod["status"]["initContainerStatuses"].as_array();
        label(pod, "app") == Some("nvidia-operator-validator")
            && init
                .into_iter()
                .flatten()
                .any(|it| it["name"] == "cuda-validation" && it["restartCount"].as_u64() >= Some(2))
    };
    let (_, pod) = until_any(&world, POD, GPU_NS, crashing).await;
    assert_eq!(phase(&pod), "Pending");
    let driver = get(&world, DAEMON_SET, GPU_NS, "nvidia-driver-daemonset").await.unwrap();
    assert_eq!(driver["status"]["numberReady"], 1);
}

#[tokio::test(start_paused = true)]
async fn gpu_faulty_and_still_exit_code_0() {
    let world = with_gpu_node(Fault::GpuFaulty).await;
    let (_, node) = until_any(&world, NODE, "", |node| label(node, "nvidia.com/gpu.count").is_some()).await;
    let pod = burn(&world, node["metadata"]["name"].as_str().unwrap(), 30).await;
    let (_, done) = until(&world, POD, "default", &pod, |pod| phase(pod) == "Succeeded").await;
    assert_eq!(done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    let text = world.api().logs().text("default", &pod, "gpu-burn-ctr");
    assert!(text.contains("\tGPU 0: FAULTY"), "{text}");
    assert!(text.contains('\r') && text.contains("errors: 4711"));
}

#[tokio::test(start_paused = true)]
async fn stuck_finalizer_holds_the_policy() {
    let world = with_gpu_node(Fault::StuckFinalizer).await;
    let held = |policy: &Value| policy["metadata"]["finalizers"][0] == "example.test/cleanup";
    until(&world, POLICY, "", "gpu-cluster-policy", held).await;
    delete(&world, POLICY, "", "gpu-cluster-policy").await;
    world.api().clock().sleep(std::time::Duration::from_secs(600)).await;
    assert!(get(&world, POLICY, "", "gpu-cluster-policy").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_cluster_outlives_restart_and_lost_history() {
    for fault in [Fault::ApiRestart, Fault::ExpiredWatch] {
        let world = world("default", &[fault], 1).await;
        scale(&world, "demo-x7k2p-worker-a", GPU, 1).await;
        let request = FloorRequest::default();
        let floor = world.floor_parts(&request);
        // Asked by a watch that has to survive as well.
        let (at, _) = until_any(&world, NODE, "", |node| {
            is_true(node, "Ready") && label(node, "node.kubernetes.io/instance-type") == Some(GPU)
        })
        .await;
        assert!((floor.node_ready - 0.01..floor.node_ready + 30.0).contains(&at), "{fault}: {at} {floor:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_meets_tools_only() {
    let world = world("default", &[Fault::Throttled], 1).await;
    let answer = tower_get(&world, "/api/v1/nodes").await;
    assert_eq!(answer, 429);
    world.api().clock().sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(tower_get(&world, "/api/v1/nodes").await, 200);
}

async fn tower_get(world: &toolbox_rehearsal::World, path: &str) -> u16 {
    use tower::Service;
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    world.api().clone().call(request).await.unwrap().status().as_u16()
}
