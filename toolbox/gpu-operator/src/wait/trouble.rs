//! Pods of the stack that will not come right by themselves, and what their logs say about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use toolbox_core::cluster::conditions::{PodCause, PodTroubles, is_superseded};
use toolbox_core::cluster::{Cluster, LogOptions, Object};
use toolbox_core::engine::{StepCx, Why};

use super::cause::{self, StackCause};
use super::sets;

/// How often a container may be started again before the wait gives up. The validator's checks try again on purpose while
/// what they look for comes up, and so get more.
const CRASHES: i64 = 3;
const CHECKS: i64 = 5;

/// A container that will not come right.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Culprit {
    pub(crate) pod: Object,
    pub(crate) container: String,
    pub(crate) init: bool,
    pub(crate) restarts: i64,
}

impl Culprit {
    fn node(&self) -> &str {
        self.pod.text("/spec/nodeName").unwrap_or("<none>")
    }
}

/// Watches over pods for the length of one wait, by the rules that all tools share, but for two: what happened before the
/// wait is not held against a pod, and the validator gets more tries.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    pods: PodTroubles,
    /// Restarts at the first look at a pod, by its uid and the container's name.
    before: BTreeMap<String, BTreeMap<String, i64>>,
    culprit: Option<Culprit>,
}

impl Troubles {
    /// The container that the last failure was about, when its log tells more.
    pub(crate) fn culprit(&self) -> Option<&Culprit> {
        self.culprit.as_ref()
    }

    /// The first pod that will not come right, if there is one.
    pub(crate) fn first(&mut self, pods: &[&Object], now: Timestamp) -> Option<Why> {
        // Pods that ended or are going away are not what runs: an evicted one stays in the list for ever.
        let alive = pods.iter().filter(|pod| !pod.is_deleting() && !is_superseded(pod));
        alive.into_iter().find_map(|pod| self.of(pod, now))
    }

    fn of(&mut self, pod: &Object, now: Timestamp) -> Option<Why> {
        let judged = self.pods.judge(pod, &[], now);
        let seen = self.before.contains_key(pod.uid());
        let before = self.before.entry(pod.uid().to_owned()).or_default();
        let (cause, is_final) = judged?;
        let PodCause::CrashLoop { container, init, restarts, last } = &cause else {
            return is_final
                .then(|| Why::new(pod.refer(), &cause).with("node", pod.text("/spec/nodeName").unwrap_or("")));
        };
        let limit = if is_validator_pod(pod) { CHECKS } else { CRASHES };
        let first = *before.entry(container.clone()).or_insert(if seen { 0 } else { *restarts });
        // One that is found after many crashes is beyond doubt as well.
        let earlier = if first >= 2 * limit { 0 } else { first };
        if restarts - earlier < limit {
            return None;
        }
        let culprit = Culprit { pod: pod.clone(), container: container.clone(), init: *init, restarts: *restarts };
        let why = if is_validator_pod(pod) {
            let (check, node) = (container.clone(), culprit.node().to_owned());
            Why::new(pod.refer(), &StackCause::ValidationFailed { check, node, last: last.clone() })
        } else {
            Why::new(pod.refer(), &cause)
        };
        self.culprit = Some(culprit);
        Some(why)
    }
}

/// Whether it is a pod of the driver's DaemonSet.
pub(crate) fn is_driver_pod(pod: &Object) -> bool {
    pod.name().starts_with(sets::DRIVER)
}

fn is_validator_pod(pod: &Object) -> bool {
    pod.name().starts_with(sets::VALIDATOR)
}

/// Reads the logs of a crashed container, keeps them, and says what they say.
pub(crate) async fn explain(
    cx: &StepCx,
    cluster: &Cluster,
    why: Why,
    culprit: &Culprit,
    toolkit: Option<&StackCause>,
) -> Why {
    let (now, before) = tokio::join!(read(cluster, culprit, false), read(cluster, culprit, true));
    let file = format!("logs/{}.{}", culprit.pod.name(), culprit.container);
    for (log, name) in [(&now, format!("{file}.log")), (&before, format!("{file}.previous.log"))] {
        if let Some(log) = log {
            cx.file(&name, log);
        }
    }
    // While it backs off, the present log is the one of the last crash; once restarted, the previous one is.
    let telling = [&before, &now].into_iter().flatten().find(|log| !log.trim().is_empty());
    let Some(log) = telling else { return why };
    let explained = if is_driver_pod(&culprit.pod) && !culprit.init {
        let found = cause::classify_driver_crash(log, culprit.node(), culprit.restarts);
        match (found, toolkit) {
            (StackCause::NoKernelHeaders { .. }, Some(toolkit)) => Why::new(why.object.clone(), toolkit),
            (found, _) => Why::new(why.object.clone(), &found),
        }
    } else {
        why
    };
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines[lines.len().saturating_sub(15)..].join("\n");
    explained.with(format!("log of container {} on node {}", culprit.container, culprit.node()), tail)
}

async fn read(cluster: &Cluster, culprit: &Culprit, previous: bool) -> Option<String> {
    let options = LogOptions { tail_lines: Some(2000), limit_bytes: Some(1 << 20), previous };
    let namespace = culprit.pod.namespace().unwrap_or_default();
    cluster.log(namespace, culprit.pod.name(), Some(&culprit.container), &options).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn pod(name: &str, key: &str, status: Value) -> Object {
        Object::new(json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "ns", "uid": "u", "ownerReferences": [{"kind": "DaemonSet", "uid": "d"}]},
            "spec": {"nodeName": "gpu-1"},
            "status": {"phase": "Pending", key: [status]},
        }))
    }

    fn crash(restarts: i64) -> Object {
        let state = json!({"name": "nvidia-driver-ctr", "restartCount": restarts, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}});
        pod("nvidia-driver-daemonset-ab12c", "containerStatuses", state)
    }

    #[test]
    fn a_crash_loop_ends_after_a_few_restarts() {
        let mut troubles = Troubles::default();
        for restarts in 0..3 {
            assert_eq!(troubles.first(&[&crash(restarts)], now()), None, "{restarts}");
        }
        let why = troubles.first(&[&crash(3)], now()).unwrap();
        assert!(why.cause.contains("nvidia-driver-ctr"), "{why}");
        assert_eq!(troubles.culprit().unwrap().container, "nvidia-driver-ctr");
        assert!(Troubles::default().first(&[&crash(6)], now()).is_some());
    }

    #[test]
    fn crashes_before_the_wait_are_not_held_against_a_pod() {
        let mut troubles = Troubles::default();
        for restarts in 2..5 {
            assert_eq!(troubles.first(&[&crash(restarts)], now()), None, "{restarts}");
        }
        assert!(troubles.first(&[&crash(5)], now()).is_some());
    }

    #[test]
    fn a_failed_check_of_the_validator_is_named_with_its_node() {
        let check = |restarts: i64| {
            let state =
                json!({"name": "cuda-validation", "restartCount": restarts, "state": {"terminated": {"exitCode": 1}}});
            pod("nvidia-operator-validator-x1", "initContainerStatuses", state)
        };
        let mut troubles = Troubles::default();
        assert_eq!(troubles.first(&[&check(0)], now()), None);
        let why = troubles.first(&[&check(5)], now()).unwrap();
        assert_eq!(
            why.to_string(),
            "Pod/ns/nvidia-operator-validator-x1: cuda-validation fails on node gpu-1 (exit code 1)"
        );
    }

    #[test]
    fn a_pull_is_given_up_with_the_exact_message_and_a_wrong_name_at_once() {
        let pull = |reason: &str, message: &str| {
            let state = json!({"name": "c", "image": "registry.example.test/driver:1", "state": {"waiting": {"reason": reason, "message": message}}});
            pod("nvidia-driver-daemonset-x", "containerStatuses", state)
        };
        let mut troubles = Troubles::default();
        for _ in 1..3 {
            assert_eq!(troubles.first(&[&pull("ErrImagePull", "manifest unknown")], now()), None);
            assert_eq!(troubles.first(&[&pull("ImagePullBackOff", "Back-off pulling image")], now()), None);
        }
        let why = troubles.first(&[&pull("ErrImagePull", "manifest unknown")], now()).unwrap();
        assert_eq!(why.code, "image-pull-failure");
        assert!(why.cause.contains("manifest unknown"), "{why}");
        assert!(Troubles::default().first(&[&pull("InvalidImageName", "couldn't parse")], now()).is_some());
    }

    #[test]
    fn evicted_pods_of_a_daemon_set_are_left_out() {
        let mut evicted = crash(9).value().clone();
        evicted["status"]["phase"] = json!("Failed");
        evicted["status"]["reason"] = json!("Evicted");
        assert_eq!(Troubles::default().first(&[&Object::new(evicted)], now()), None);
    }
}
