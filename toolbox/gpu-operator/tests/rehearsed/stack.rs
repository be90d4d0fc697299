//! `wait-deployment`, `run-gpu-burn` and `capture-deployment-state` on a rehearsed cluster.

use std::time::Duration;

use crate::support::{changes, done, file, run, with_nfd};
use serde_json::json;
use tool_gpu_operator::{BurnSpec, CaptureSpec, DeploySpec, VersionSpec, WaitSpec};
use toolbox_core::cluster::{Query, kinds};
use toolbox_core::engine::Exit;
use toolbox_core::engine::event::Event;
use toolbox_testkit::{Ran, Rehearsed};

fn short_burn() -> BurnSpec {
    BurnSpec { runtime: Duration::from_secs(30), ..BurnSpec::default() }
}

async fn deployed(faults: &[&str]) -> Rehearsed {
    let rehearsed = with_nfd(Rehearsed::new("gpu-node", faults).await).await;
    done(&rehearsed, DeploySpec::default()).await;
    rehearsed
}

#[tokio::test(start_paused = true)]
async fn the_whole_stack_becomes_ready_and_burns() {
    let rehearsed = deployed(&[]).await;
    let ran = done(&rehearsed, WaitSpec::default()).await;
    assert_eq!(changes(&ran), Vec::<String>::new());
    let burnt = done(&rehearsed, short_burn()).await;
    let report = burnt.outcome.report.as_ref().unwrap();
    assert!(report.text.ends_with("1 of 1 GPUs OK"), "{}", report.text);
    let node = report.text.split(':').next().expect("a node's name");
    assert!(file(&burnt, &format!("gpu_burn.{node}.log")).contains("GPU 0: OK"));
    let description = file(&burnt, &format!("gpu_burn.{node}.description.txt"));
    assert!(description.contains(&format!("gpu-burn-{node}")), "{description}");
    let pods = Query::within(&kinds::POD, "default").labels("app=gpu-burn");
    let maps = Query::within(&kinds::CONFIG_MAP, "default").labels("app=gpu-burn");
    rehearsed.clock.sleep(Duration::from_secs(60)).await;
    assert!(rehearsed.cluster.list(&pods).await.unwrap().is_empty());
    assert!(rehearsed.cluster.list(&maps).await.unwrap().is_empty());
    let version = done(&rehearsed, VersionSpec::default()).await;
    assert_eq!(version.outcome.report.unwrap().text, "1.11.0");
}

#[tokio::test(start_paused = true)]
async fn config_maps_of_somebody_else_neither_end_a_burn_nor_go_with_it() {
    let rehearsed = deployed(&[]).await;
    done(&rehearsed, WaitSpec::default()).await;
    for (name, key) in [("gpu-burn-entrypoint", "entrypoint.sh"), ("gpu-burn-src", "burn.cu")] {
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "gpu-burn"}},
            "data": {key: "theirs"},
        });
        rehearsed.somebody_creates(theirs).await;
    }
    done(&rehearsed, short_burn()).await;
    rehearsed.clock.sleep(Duration::from_secs(60)).await;
    let maps = Query::within(&kinds::CONFIG_MAP, "default").labels("app=gpu-burn");
    let maps = rehearsed.cluster.list(&maps).await.unwrap();
    let names: Vec<&str> = maps.iter().map(toolbox_core::cluster::Object::name).collect();
    assert_eq!(names, ["gpu-burn-entrypoint", "gpu-burn-src"]);
    assert_eq!(maps[1].at("/data"), Some(&json!({"burn.cu": "theirs"})));
}

#[tokio::test(start_paused = true)]
async fn versions_before_1_9_have_their_namespaces_labelled_for_monitoring() {
    let rehearsed = with_nfd(Rehearsed::new("gpu-node", &[]).await).await;
    let spec = DeploySpec { wish: DeploySpec::wish(Some("1.8.2".to_owned()), None).unwrap(), ..DeploySpec::default() };
    done(&rehearsed, spec).await;
    let ran = done(&rehearsed, WaitSpec::default()).await;
    assert_eq!(
        changes(&ran),
        ["gpu-operator.monitoring: labelled gpu-operator-resources and openshift-operators for monitoring"]
    );
    assert_eq!(changes(&done(&rehearsed, WaitSpec::default()).await), Vec::<String>::new());
}

fn failed_with(ran: &Ran, code: &str, object: &str) {
    let why = ran.why();
    assert_eq!(why.code, code, "{why}");
    assert!(why.object.to_string().starts_with(object), "{why}");
    assert!(!why.next.is_empty());
    assert_eq!(ran.outcome.exit, Exit::Failed);
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_is_no_pass() {
    // NFD sees no GPU: the ClusterPolicy of the real operator is `ready` then.
    let rehearsed = deployed(&["no-gpu-label"]).await;
    rehearsed.clock.sleep(Duration::from_secs(300)).await;
    failed_with(&run(&rehearsed, WaitSpec::default()).await, "no-gpu-node", "Node/<");
    failed_with(&run(&rehearsed, short_burn()).await, "no-gpu-node", "Node/<");
    // Without NFD nobody knows.
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    done(&rehearsed, DeploySpec::default()).await;
    failed_with(&run(&rehearsed, WaitSpec::default()).await, "no-nfd-label", "Node/<");
    // Without an operator there is nothing to wait for.
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    failed_with(&run(&rehearsed, WaitSpec::default()).await, "operator-not-installed", "Subscription/");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_crashes_ends_the_wait_with_its_last_words() {
    let rehearsed = deployed(&["driver-crash-loop"]).await;
    let ran = run(&rehearsed, WaitSpec::default()).await;
    failed_with(&ran, "no-kernel-headers", "Pod/nvidia-gpu-operator/nvidia-driver-daemonset");
    assert!(ran.why().cause.contains("kernel-headers-4.18.0-372.40.1.el8_6"), "{}", ran.why());
    let files: Vec<&String> = ran.files.keys().collect();
    assert!(files.iter().any(|file| file.ends_with("nvidia-driver-ctr.previous.log")), "{files:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_ends_the_wait_with_the_exact_message() {
    let rehearsed = deployed(&["image-pull-failure"]).await;
    let ran = run(&rehearsed, WaitSpec::default()).await;
    failed_with(&ran, "image-pull-failure", "Pod/nvidia-gpu-operator/nvidia-driver-daemonset");
    assert!(ran.why().cause.contains("manifest unknown"), "{}", ran.why());
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_names_the_check_and_the_node() {
    let rehearsed = deployed(&["validator-failed"]).await;
    let ran = run(&rehearsed, WaitSpec::default()).await;
    failed_with(&ran, "validator-failed", "Pod/nvidia-gpu-operator/nvidia-operator-validator");
    assert!(ran.why().cause.starts_with("cuda-validation fails on node "), "{}", ran.why());
    assert!(ran.why().evidence[0].text.contains("Failed to allocate device vector"), "{:?}", ran.why());
}

#[tokio::test(start_paused = true)]
async fn a_faulty_gpu_is_named_although_the_program_ends_with_0() {
    let rehearsed = deployed(&["gpu-faulty"]).await;
    done(&rehearsed, WaitSpec::default()).await;
    let ran = run(&rehearsed, short_burn()).await;
    failed_with(&ran, "gpu-faulty", "Node/");
    assert_eq!(ran.why().cause, "GPU 0 of 1 tested is FAULTY");
    rehearsed.clock.sleep(Duration::from_secs(60)).await;
    let pods = Query::within(&kinds::POD, "default").labels("app=gpu-burn");
    assert!(rehearsed.cluster.list(&pods).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn trouble_of_the_api_server_neither_ends_nor_falsifies_a_wait() {
    for fault in ["api-restart", "expired-watch", "throttled"] {
        let rehearsed = deployed(&[fault]).await;
        done(&rehearsed, WaitSpec::default()).await;
        done(&rehearsed, short_burn()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_captured_whatever_is_missing() {
    let rehearsed = Rehearsed::new("no-machine-api", &[]).await;
    let ran = done(&rehearsed, CaptureSpec::default()).await;
    let missing = file(&ran, "missing.txt");
    assert!(missing.contains("all_gpu_pods.list: "), "{missing}");
    assert!(missing.contains("gpu_operator.version: the GPU Operator is not installed"), "{missing}");
    assert!(file(&ran, "all_nodes.list").starts_with("NAME"));

    let rehearsed = deployed(&[]).await;
    done(&rehearsed, WaitSpec::default()).await;
    let ran = done(&rehearsed, CaptureSpec::default()).await;
    assert_eq!(file(&ran, "gpu_operator.version"), "1.11.0\n");
    for name in [
        "all_nodes.list",
        "all_machines.list",
        "gpu_operator_pod.list",
        "gpu_operator_pod.yaml",
        "all_gpu_pods.list",
        "all_gpu_pods.yaml",
        "gpu_operator_pod.images.list",
        "all_gpu_ds.list",
        "all_gpu_ds.yaml",
        "gpu_operator_nodes.list",
        "gpu_operator.log",
        "gpu_operator_nvidia-operator-validator.log",
        "capture.json",
    ] {
        assert!(!file(&ran, name).is_empty(), "{name}");
    }
    assert_eq!(file(&ran, "missing.txt"), "", "nothing is missing on a healthy cluster");
    assert_eq!(operator_warnings(&ran), Vec::<String>::new());
}

fn operator_warnings(ran: &Ran) -> Vec<String> {
    let warnings = ran.events.iter().filter_map(|event| match &event.event {
        Event::Warning { name, text, .. } if name == "operator-version" => Some(text.clone()),
        _ => None,
    });
    warnings.collect()
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_not_the_one_that_was_asked_for_is_warned_of() {
    let rehearsed = deployed(&[]).await;
    let asked = |version: &str| CaptureSpec { asked: Some(version.to_owned()), ..CaptureSpec::default() };
    let ran = done(&rehearsed, asked("1.10.1")).await;
    let [warning] = operator_warnings(&ran).try_into().expect("one warning");
    assert!(warning.starts_with("asked for 1.10.1, runs 1.11.0 (CSV)"), "{warning}");
    assert!(file(&ran, "gpu_operator.versions.txt").contains("asked: 1.10.1\n"));
    assert_eq!(operator_warnings(&done(&rehearsed, asked("v1.11.0")).await), Vec::<String>::new());
}
