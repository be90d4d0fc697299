//! The states of each kind in the order in which an observer sees them.

use serde_json::{Value, json};
use toolbox_rehearsal::FloorRequest;
use toolbox_rehearsal::scenario::Scenario;

use crate::support::*;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn reason(object: &Value) -> String {
    format!("{}/{}", phase(object), object["status"]["reason"].as_str().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_subscription_becomes_an_operator() {
    let world = world("default", &[], 1).await;
    let csvs = Tape::of(&world, CSV, GPU_NS, reason);
    let plans = Tape::of(&world, PLAN, GPU_NS, |plan| phase(plan).to_owned());
    let subscriptions = Tape::of(&world, SUBSCRIPTION, GPU_NS, |it| text(&it["status"]["state"]));
    let installed = Tape::of(&world, SUBSCRIPTION, GPU_NS, |it| text(&it["status"]["installedCSV"]));
    subscribe(&world, "gpu-operator-certified", GPU_NS, "v1.11", GPU_CSV, "Manual").await;
    world.api().clock().sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(plans.states(""), ["", "RequiresApproval"]);
    assert!(csvs.all().is_empty());
    approve(&world, GPU_NS, GPU_CSV).await;
    let (succeeded, csv) = until(&world, CSV, GPU_NS, GPU_CSV, |csv| phase(csv) == "Succeeded").await;
    assert_eq!(plans.states(""), ["", "RequiresApproval", "Installing", "Complete"]);
    assert_eq!(subscriptions.states(""), ["", "UpgradePending", "AtLatestKnown"]);
    assert_eq!(
        csvs.states(""),
        [
            "/",
            "Pending/RequirementsUnknown",
            "Pending/RequirementsNotMet",
            "InstallReady/AllRequirementsMet",
            "Installing/InstallSucceeded",
            "Installing/InstallWaiting",
            "Succeeded/InstallSucceeded",
        ]
    );
    let at = installed.all().iter().find(|(_, _, csv)| csv == GPU_CSV).unwrap().0;
    assert!(at < succeeded - 2.0, "the subscription is satisfied before the operator runs: {at} {succeeded}");
    assert_eq!(csv["metadata"]["labels"][format!("operators.coreos.com/gpu-operator-certified.{GPU_NS}")], "");
    assert_eq!(csv["metadata"]["annotations"]["olm.targetNamespaces"], GPU_NS);

    // The CSV takes its Deployment along; a new subscription then meets no leftover.
    delete(&world, SUBSCRIPTION, GPU_NS, "gpu-operator-certified").await;
    delete(&world, CSV, GPU_NS, GPU_CSV).await;
    world.api().clock().sleep(std::time::Duration::from_secs(30)).await;
    assert!(list(&world, DEPLOYMENT, GPU_NS).await.is_empty() && list(&world, POD, GPU_NS).await.is_empty());
}

/// OLM creates a plan and writes its status next. Who changes the plan in between makes that write fail.
#[tokio::test(start_paused = true)]
async fn a_plan_approved_before_its_status_is_written_is_given_up() {
    let world = world("default", &[], 1).await;
    subscribe(&world, "gpu-operator-certified", GPU_NS, "v1.11", GPU_CSV, "Manual").await;
    let (_, first) = until_any(&world, PLAN, GPU_NS, |_| true).await;
    assert_eq!(phase(&first), "");
    patch(&world, PLAN, GPU_NS, &text(&first["metadata"]["name"]), json!({"spec": {"approved": true}})).await;
    let (_, second) = until_any(&world, PLAN, GPU_NS, |plan| phase(plan) == "RequiresApproval").await;
    assert_eq!((&first["spec"]["generation"], &second["spec"]["generation"]), (&json!(1), &json!(2)));
    assert!(list(&world, CSV, GPU_NS).await.is_empty());
    approve(&world, GPU_NS, GPU_CSV).await;
    until(&world, CSV, GPU_NS, GPU_CSV, |csv| phase(csv) == "Succeeded").await;
}

#[tokio::test(start_paused = true)]
async fn a_leftover_csv_stops_a_new_subscription() {
    let world = world("default", &[], 1).await;
    subscribe(&world, "nfd", "openshift-nfd", "stable", "", "Automatic").await;
    until(&world, CSV, "openshift-nfd", NFD_CSV, |csv| phase(csv) == "Succeeded").await;
    delete(&world, SUBSCRIPTION, "openshift-nfd", "nfd").await;
    let spec =
        json!({"spec": {"channel": "stable", "name": "nfd", "source": "redhat-operators", "sourceNamespace": MARKET}});
    create(&world, SUBSCRIPTION, "openshift-nfd", "again", spec).await;
    let (_, it) = until(&world, SUBSCRIPTION, "openshift-nfd", "again", |it| is_true(it, "ResolutionFailed")).await;
    let message = text(&condition(&it, "ResolutionFailed").unwrap()["message"]);
    assert!(
        message.contains(&format!("clusterserviceversion {NFD_CSV} exists and is not referenced by a subscription")),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_becomes_a_node_and_goes_again() {
    let world = world("default", &[], 1).await;
    let machines = Tape::of(&world, MACHINE, MACHINES, |machine| phase(machine).to_owned());
    let nodes = Tape::of(&world, NODE, "", |node| is_true(node, "Ready").to_string());
    let set = scale(&world, "demo-x7k2p-worker-b", "g4dn.xlarge", 1).await;
    let counts = Tape::of(&world, MACHINE_SET, MACHINES, |set| {
        format!("{} {}", set["status"]["replicas"], set["status"]["availableReplicas"])
    });
    until(&world, MACHINE_SET, MACHINES, &set, |set| set["status"]["availableReplicas"] == 1).await;
    assert_eq!(machines.states(&set), ["", "Provisioning", "Provisioned", "Running"]);
    let machine = list(&world, MACHINE, MACHINES)
        .await
        .into_iter()
        .find(|machine| text(&machine["metadata"]["name"]).starts_with(&set))
        .unwrap();
    let node = text(&machine["status"]["nodeRef"]["name"]);
    assert_eq!(nodes.states(&node), ["false", "true"]);
    assert_eq!(counts.states(&set).last().unwrap(), "1 1");
    let took = elapsed(&world);
    assert!((240.0..=360.0).contains(&took), "{took}");
    assert_eq!(label(&get(&world, NODE, "", &node).await.unwrap(), "topology.kubernetes.io/zone"), Some("us-test-1b"));

    patch(&world, MACHINE_SET, MACHINES, &set, json!({"spec": {"replicas": 0}})).await;
    until(&world, MACHINE_SET, MACHINES, &set, |set| set["status"]["replicas"] == 0).await;
    world.api().clock().sleep(std::time::Duration::from_secs(180)).await;
    assert_eq!(machines.states(&set).last().unwrap(), "Deleting");
    assert!(get(&world, NODE, "", &node).await.is_none());
    assert!(
        list(&world, MACHINE, MACHINES)
            .await
            .iter()
            .all(|machine| !text(&machine["metadata"]["name"]).starts_with(&set))
    );
}

fn pod(extra: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "example.test/main:1"}]});
    json_patch::merge(&mut spec, &extra);
    json!({"spec": spec})
}

#[tokio::test(start_paused = true)]
async fn pods_wait_run_and_end() {
    let world = world("default", &[], 1).await;
    let tape = Tape::of(&world, POD, "default", |pod| {
        let state = &pod["status"]["containerStatuses"][0]["state"];
        let word = state["waiting"]["reason"]
            .as_str()
            .unwrap_or_else(|| if state.get("running").is_some() { "running" } else { "" });
        format!("{} {word} {}", phase(pod), is_true(pod, "Ready"))
    });
    create(&world, POD, "default", "service", pod(json!({}))).await;
    create(&world, POD, "default", "task", pod(json!({"restartPolicy": "Never"}))).await;
    let gpu = json!({"containers": [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]});
    create(&world, POD, "default", "hopeless", pod(gpu)).await;
    until(&world, POD, "default", "service", |pod| is_true(pod, "Ready")).await;
    until(&world, POD, "default", "task", |pod| phase(pod) == "Succeeded").await;
    assert_eq!(
        tape.states("service"),
        ["Pending  false", "Pending ContainerCreating false", "Running running false", "Running running true"]
    );
    assert_eq!(tape.states("task").last().unwrap(), "Succeeded  false");
    let hopeless = get(&world, POD, "default", "hopeless").await.unwrap();
    let why = condition(&hopeless, "PodScheduled").unwrap();
    assert_eq!(why["reason"], "Unschedulable");
    assert_eq!(
        why["message"],
        "0/6 nodes are available: 3 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint \
         {node-role.kubernetes.io/master: }. preemption: 0/6 nodes are available: 3 No preemption victims found for incoming \
         pod, 3 Preemption is not helpful for scheduling."
    );
    let events: Vec<String> = list(&world, EVENT, "default").await.iter().map(|event| text(&event["reason"])).collect();
    for wanted in ["Scheduled", "Pulling", "Created", "Started", "FailedScheduling"] {
        assert!(events.iter().any(|reason| reason == wanted), "{wanted} not in {events:?}");
    }
    delete(&world, POD, "default", "service").await;
    assert!(get(&world, POD, "default", "service").await.is_some(), "grace first");
    world.api().clock().sleep(std::time::Duration::from_secs(5)).await;
    assert!(get(&world, POD, "default", "service").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn deployments_and_jobs() {
    let world = world("default", &[], 1).await;
    let labels = json!({"app": "web"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example.test/web:1"}]}});
    let spec = json!({"spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}});
    create(&world, DEPLOYMENT, "default", "web", spec).await;
    until(&world, DEPLOYMENT, "default", "web", |it| is_true(it, "Available") && it["status"]["readyReplicas"] == 2)
        .await;
    patch(&world, DEPLOYMENT, "default", "web", json!({"spec": {"replicas": 0}})).await;
    until(&world, DEPLOYMENT, "default", "web", |it| {
        it["status"]["observedGeneration"] == 2 && it["status"]["replicas"] == 0
    })
    .await;

    let job = |code: &str| {
        json!({"spec": {"backoffLimit": 1, "template": {
            "metadata": {"annotations": {"rehearsal/exit-code": code, "rehearsal/seconds": "3"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.test/job:1"}]},
        }}})
    };
    create(&world, JOB, "default", "good", job("0")).await;
    create(&world, JOB, "default", "bad", job("3")).await;
    until(&world, JOB, "default", "good", |job| is_true(job, "Complete")).await;
    let (_, bad) = until(&world, JOB, "default", "bad", |job| is_true(job, "Failed")).await;
    assert_eq!(condition(&bad, "Failed").unwrap()["reason"], "BackoffLimitExceeded");
    assert_eq!(bad["status"]["failed"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_content_along() {
    let world = world("default", &[], 1).await;
    create(&world, NAMESPACE, "", "temporary", json!({})).await;
    create(&world, POD, "temporary", "inside", pod(json!({}))).await;
    until(&world, POD, "temporary", "inside", |pod| is_true(pod, "Ready")).await;
    let tape = Tape::of(&world, NAMESPACE, "", |it| phase(it).to_owned());
    world.api().clock().sleep(std::time::Duration::from_secs(1)).await;
    delete(&world, NAMESPACE, "", "temporary").await;
    world.api().clock().sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(tape.states("temporary"), ["Active", "Terminating"]);
    assert!(get(&world, NAMESPACE, "", "temporary").await.is_none());
    assert!(list(&world, POD, "temporary").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_ready_too_early_and_then_for_good() {
    let world = world("default", &[], 1).await;
    let states = Tape::of(&world, NAMESPACE, "", |it| {
        label(it, "openshift.io/cluster-monitoring").unwrap_or_default().to_owned()
    });
    tokio::join!(deploy_nfd(&world), deploy_gpu_operator(&world));
    let policy = Tape::of(&world, POLICY, "", |it| text(&it["status"]["state"]));
    until(&world, POLICY, "", "gpu-cluster-policy", |it| it["status"]["state"] == "ready").await;
    assert!(list(&world, DAEMON_SET, GPU_NS).await.is_empty(), "ready because there is nothing to do");
    scale(&world, "demo-x7k2p-worker-a", "g4dn.xlarge", 1).await;
    let sets = Tape::of(&world, DAEMON_SET, GPU_NS, |set| {
        format!("{}/{}", set["status"]["numberReady"], set["status"]["desiredNumberScheduled"])
    });
    until(&world, POLICY, "", "gpu-cluster-policy", |it| it["status"]["state"] == "notReady").await;
    until(&world, POLICY, "", "gpu-cluster-policy", |it| it["status"]["state"] == "ready").await;
    let seen = policy.states("");
    assert_eq!(seen[seen.len() - 3..], ["ready", "notReady", "ready"]);
    assert_eq!(states.states(GPU_NS).last().unwrap(), "true");
    assert_eq!(sets.states("nvidia-operator-validator").last().unwrap(), "1/1");
    assert_eq!(sets.states("nvidia-mig-manager").last().unwrap(), "0/0");
    assert_eq!(list(&world, DAEMON_SET, GPU_NS).await.len(), 9);
    let gpu_nodes: Vec<Value> = list(&world, NODE, "")
        .await
        .into_iter()
        .filter(|node| label(node, "nvidia.com/gpu.present").is_some())
        .collect();
    assert_eq!(gpu_nodes.len(), 1);
    assert_eq!(gpu_nodes[0]["status"]["allocatable"]["nvidia.com/gpu"], "1");
}

#[tokio::test(start_paused = true)]
async fn versions_before_1_9_have_two_namespaces() {
    let world = world("gpu-node", &[], 1).await;
    let csv = "gpu-operator-certified.v1.8.2";
    subscribe(&world, "gpu-operator-certified", "openshift-operators", "v1.8", csv, "Manual").await;
    approve(&world, "openshift-operators", csv).await;
    create_example(&world, POLICY, "openshift-operators", csv).await;
    until(&world, NAMESPACE, "", "gpu-operator-resources", |_| true).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_film() {
    let mut films = Vec::new();
    for seed in [5, 5, 6] {
        let world = world("gpu-node", &[], seed).await;
        let tapes = [POD, NODE, DAEMON_SET, CSV, PLAN, EVENT, MACHINE].map(|kind| {
            Tape::of(&world, kind, "", |object| {
                let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                format!("{} {version} {}", object["kind"].as_str().unwrap_or_default(), phase(object))
            })
        });
        tokio::join!(deploy_nfd(&world), deploy_gpu_operator(&world));
        world.api().clock().sleep(std::time::Duration::from_secs(60)).await;
        films.push(tapes.iter().flat_map(Tape::all).collect::<Vec<_>>());
    }
    assert!(films[0].len() > 100);
    assert_eq!(films[0], films[1]);
    assert_ne!(films[0], films[2]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_left_alone_stays_as_it_is() {
    for scenario in Scenario::embedded_names() {
        let world = world(scenario, &[], 1).await;
        let before = world.api().dump();
        let requests = || world.api().requests().total() - world.api().requests().of("watch");
        world.api().clock().sleep(std::time::Duration::from_secs(60)).await;
        let started = requests();
        world.api().clock().sleep(std::time::Duration::from_secs(1500)).await;
        assert_eq!(before, world.api().dump(), "{scenario}");
        assert_eq!(started, requests(), "{scenario}: nobody polls");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_machine_api_there_is_none_and_gpus_are_found_all_the_same() {
    let world = world("no-machine-api", &[], 1).await;
    let listed = api(&world, MACHINE_SET, "").list(&kube::api::ListParams::default()).await;
    assert!(matches!(listed, Err(kube::Error::Api(status)) if status.code == 404));
    let request = FloorRequest { replicas: 0, burn_seconds: 30, ..FloorRequest::default() };
    tokio::join!(deploy_nfd(&world), deploy_gpu_operator(&world));
    let (_, node) = until_any(&world, NODE, "", |node| label(node, "nvidia.com/gpu.count") == Some("2")).await;
    until(&world, POLICY, "", "gpu-cluster-policy", |it| it["status"]["state"] == "ready").await;
    let pod = burn(&world, node["metadata"]["name"].as_str().unwrap(), 30).await;
    let (took, _) = until(&world, POD, "default", &pod, |pod| phase(pod) == "Succeeded").await;
    let floor = world.floor(&request);
    assert!(floor <= took + 0.001 && took <= floor * 1.01, "{floor} {took}");
}
