//! Pods in trouble, as the field knows them.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolbox_engine::{Exit, ObjectRef, Verdict, Why};

use super::*;
use crate::object::Object;

fn pod(status: Value) -> Object {
    Object::new(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "burn", "namespace": "ns", "uid": "1"}, "spec": {"nodeName": "worker-gpu-1"}, "status": status}))
}

fn waiting(reason: &str, message: &str) -> Object {
    pod(json!({"phase": "Pending", "containerStatuses": [
        {"name": "main", "image": "registry.example.test/burn:1", "restartCount": 0,
         "state": {"waiting": {"reason": reason, "message": message}}}]}))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn explain(troubles: &mut PodTroubles, pod: &Object, events: &[Object], seconds: i64) -> Verdict<()> {
    let reason = Why::waiting(pod.refer(), "waiting", "is waited for");
    troubles.explain(reason, std::slice::from_ref(pod), events, at(seconds))
}

fn failed(verdict: Verdict<()>) -> Why {
    match verdict {
        Verdict::Failed(why) => why,
        other => panic!("not failed: {other:?}"),
    }
}

fn pending(verdict: Verdict<()>) -> Why {
    match verdict {
        Verdict::Pending(why) => why,
        other => panic!("not pending: {other:?}"),
    }
}

#[test]
fn an_image_is_given_up_after_a_few_pulls_in_the_most_exact_words() {
    let mut troubles = PodTroubles::default();
    let exact = waiting("ErrImagePull", "manifest unknown");
    let vague = waiting("ImagePullBackOff", "Back-off pulling image");
    for (seconds, seen) in [(0, &exact), (2, &vague), (10, &exact), (12, &vague)] {
        let why = pending(explain(&mut troubles, seen, &[], seconds));
        assert!(why.cause.ends_with("cannot be pulled: manifest unknown"), "{why}");
        assert_eq!(why.exit, Exit::TimedOut);
    }
    let why = failed(explain(&mut troubles, &exact, &[], 30));
    assert_eq!(
        why.to_string(),
        "Pod/ns/burn: image registry.example.test/burn:1 of container main cannot be pulled: manifest unknown"
    );
    assert_eq!((why.exit, &*why.code), (Exit::Failed, "image-pull-failure"));
}

#[test]
fn a_slow_reader_learns_the_tries_and_the_words_from_events() {
    let vague = waiting("ImagePullBackOff", "Back-off pulling image");
    let event = Object::new(
        json!({"type": "Warning", "reason": "Failed", "count": 3, "lastTimestamp": "2026-01-01T00:00:00Z",
        "message": "Failed to pull image \"registry.example.test/burn:1\": unauthorized",
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "burn", "uid": "1", "fieldPath": "spec.containers{main}"}}),
    );
    let why = failed(explain(&mut PodTroubles::default(), &vague, &[event], 0));
    assert!(why.cause.ends_with("unauthorized"), "{why}");
    assert!(why.evidence.iter().any(|evidence| evidence.text.starts_with("Failed: Failed to pull image")));
}

#[test]
fn one_failed_pull_and_then_running_is_no_trouble() {
    let mut troubles = PodTroubles::default();
    pending(explain(&mut troubles, &waiting("ErrImagePull", "timeout"), &[], 0));
    let running = pod(json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}));
    assert_eq!(pending(explain(&mut troubles, &running, &[], 5)).code, "waiting");
    pending(explain(&mut troubles, &waiting("ErrImagePull", "timeout"), &[], 1000));
}

#[test]
fn a_pull_that_shows_no_tries_is_given_up_by_time() {
    let mut troubles = PodTroubles::default();
    let vague = waiting("ImagePullBackOff", "Back-off");
    pending(explain(&mut troubles, &vague, &[], 0));
    pending(explain(&mut troubles, &vague, &[], 299));
    failed(explain(&mut troubles, &vague, &[], 300));
}

#[test]
fn an_illegal_image_name_gets_no_grace_and_a_missing_config_map_gets_some() {
    let why = failed(explain(&mut PodTroubles::default(), &waiting("InvalidImageName", "bad"), &[], 0));
    assert_eq!(why.code, "image-name");
    let mut troubles = PodTroubles::default();
    let config = waiting("CreateContainerConfigError", "configmap \"x\" not found");
    pending(explain(&mut troubles, &config, &[], 0));
    assert_eq!(failed(explain(&mut troubles, &config, &[], 60)).code, "container-config");
}

#[test]
fn a_crash_loop_ends_after_a_few_restarts_and_tells_the_last_exit() {
    let crashing = |restarts: i64| {
        pod(json!({"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}))
    };
    let mut troubles = PodTroubles::default();
    pending(explain(&mut troubles, &crashing(2), &[], 0));
    let why = failed(explain(&mut troubles, &crashing(3), &[], 1));
    assert_eq!(why.cause, "container main was started again 3 times and ended with exit code 137 (OOMKilled)");
}

#[test]
fn a_container_that_is_made_anew_after_its_node_was_restarted_is_not_in_a_crash_loop() {
    let again = |code: i64, reason: &str| {
        pod(json!({"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 12,
            "state": {"waiting": {"reason": "ContainerCreating"}},
            "lastState": {"terminated": {"exitCode": code, "reason": reason}}}]}))
    };
    for stopped in [again(255, "Unknown"), again(143, "Error"), again(137, "Error")] {
        assert_eq!(pod_trouble(&stopped), None);
        assert_eq!(pending(explain(&mut PodTroubles::default(), &stopped, &[], 0)).code, "waiting");
    }
    for crashed in [again(1, "Error"), again(137, "OOMKilled")] {
        assert_eq!(failed(explain(&mut PodTroubles::default(), &crashed, &[], 0)).code, "crash-loop");
    }
}

#[test]
fn the_init_container_that_fails_is_named() {
    let validator = pod(json!({"phase": "Pending",
        "initContainerStatuses": [{"name": "driver-validation", "restartCount": 4, "state": {"terminated": {"exitCode": 1}}}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}]}));
    let why = failed(explain(&mut PodTroubles::default(), &validator, &[], 0));
    assert_eq!(why.code, "init-container-failure");
    assert!(why.cause.starts_with("init container driver-validation"), "{why}");
    assert!(why.evidence.iter().any(|evidence| evidence.text == "worker-gpu-1"));
}

#[test]
fn an_evicted_pod_of_a_controller_is_left_out_and_a_bare_one_is_a_failure() {
    let evicted = |owners: Value| {
        Object::new(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "gpu-operator-aaa", "namespace": "ns", "uid": "1", "ownerReferences": owners},
            "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}))
    };
    let owned = evicted(json!([{"kind": "ReplicaSet", "uid": "r"}]));
    assert!(is_superseded(&owned));
    assert_eq!(pending(explain(&mut PodTroubles::default(), &owned, &[], 0)).code, "waiting");
    let bare = evicted(json!([]));
    let Verdict::Failed(why) = pod_finished(Some(&bare), &bare.refer()) else { panic!() };
    assert_eq!(why.cause, "was evicted: low on memory");
}

#[test]
fn a_pod_that_no_node_takes_is_pending_with_the_schedulers_words() {
    let homeless = pod(json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes are available: insufficient nvidia.com/gpu"}]}));
    let Verdict::Pending(why) = pod_ready(Some(&homeless), &homeless.refer()) else { panic!() };
    assert!(why.cause.contains("insufficient nvidia.com/gpu"), "{why}");
    assert_eq!(why.code, "unschedulable");
}

#[test]
fn a_pod_that_is_not_started_shows_the_latest_warning() {
    let creating = waiting("ContainerCreating", "");
    let event = Object::new(json!({"type": "Warning", "reason": "FailedMount", "message": "secret \"x\" not found",
        "lastTimestamp": "2026-01-01T00:00:00Z", "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "burn", "uid": "1"}}));
    let why = pending(explain(&mut PodTroubles::default(), &creating, &[event], 0));
    assert_eq!(why.cause, "is not started: FailedMount: secret \"x\" not found");
}

#[test]
fn a_bare_pod_ends_by_its_exit_code_or_by_going_away() {
    let meant = ObjectRef::new("v1", "Pod", Some("ns"), "burn");
    assert!(matches!(pod_finished(None, &meant), Verdict::Pending(why) if why.cause == "has not appeared"));
    let ended = pod(json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated":
        {"exitCode": 2, "reason": "Error", "message": "first\nno CUDA device"}}}]}));
    let Verdict::Failed(why) = pod_finished(Some(&ended), &meant) else { panic!() };
    assert_eq!(why.cause, "container main ended with exit code 2: no CUDA device");
    assert!(matches!(pod_finished(None, &ended.refer()), Verdict::Failed(why) if why.code == "disappeared"));
    let good = pod(json!({"phase": "Succeeded"}));
    assert!(matches!(pod_finished(Some(&good), &meant), Verdict::Done(_)));
}
