//! Pods of the stack that will not come right by themselves, and what their logs say about it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolbox_core::cluster::{Cluster, LogOptions, Object};
use toolbox_core::engine::{StepCx, Why};

use super::cause::{self, StackCause};
use super::sets;

/// How often a container may end badly before the wait gives up. The validator's checks try again on purpose while what
/// they look for comes up, and so get more.
const CRASHES: i64 = 3;
const CHECKS: i64 = 5;
/// How often a pull may be refused.
const PULLS: usize = 3;

/// A container that will not come right.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Culprit {
    pub(crate) pod: Object,
    pub(crate) container: String,
    pub(crate) init: bool,
    pub(crate) exit_code: i64,
    pub(crate) restarts: i64,
}

impl Culprit {
    fn node(&self) -> &str {
        self.pod.text("/spec/nodeName").unwrap_or("<none>")
    }
}

/// Remembers what was seen of each container, so that a wait ends after a few failures and with the first, exact message.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// Pull failures by pod and container: the resource versions they were seen at, and the most telling message.
    pulls: BTreeMap<(String, String), (BTreeSet<String>, String)>,
    /// Restarts at the first look: what happened before a wait is not held against its pods.
    before: BTreeMap<(String, String), i64>,
    culprit: Option<Culprit>,
}

impl Troubles {
    /// The container that the last failure was about.
    pub(crate) fn culprit(&self) -> Option<&Culprit> {
        self.culprit.as_ref()
    }

    /// The first pod that will not come right, if there is one.
    pub(crate) fn first(&mut self, pods: &[&Object]) -> Option<Why> {
        // Pods that ended or are going away are not what runs: an evicted one stays in the list for ever.
        let alive = pods
            .iter()
            .filter(|pod| !pod.is_deleting() && !matches!(pod.text("/status/phase"), Some("Failed" | "Succeeded")));
        alive.filter_map(|pod| self.of(pod)).next()
    }

    fn of(&mut self, pod: &Object) -> Option<Why> {
        for (init, pointer) in [(true, "/status/initContainerStatuses"), (false, "/status/containerStatuses")] {
            for status in pod.list(pointer) {
                let name = status.get("name").and_then(Value::as_str).unwrap_or("");
                if let Some(why) = self.waiting(pod, name, status) {
                    return Some(why);
                }
                if let Some(why) = self.crashed(pod, name, init, status) {
                    return Some(why);
                }
            }
        }
        None
    }

    fn waiting(&mut self, pod: &Object, container: &str, status: &Value) -> Option<Why> {
        let text = |key: &str| status.pointer(&format!("/state/waiting/{key}")).and_then(Value::as_str);
        let reason = text("reason")?;
        let message = text("message").unwrap_or("").to_owned();
        let image = status.get("image").and_then(Value::as_str).unwrap_or("").to_owned();
        let cause =
            |message: String| StackCause::ImagePull { image: image.clone(), container: container.to_owned(), message };
        match reason {
            "InvalidImageName" | "ErrImageNeverPull" => Some(Why::new(pod.refer(), &cause(message))),
            "ErrImagePull" | "ImagePullBackOff" => {
                let key = (pod.uid().to_owned(), container.to_owned());
                let (seen, best) = self.pulls.entry(key).or_default();
                if reason == "ErrImagePull" {
                    seen.insert(pod.resource_version().to_owned());
                    *best = message;
                } else if best.is_empty() {
                    *best = message;
                }
                (seen.len() >= PULLS).then(|| Why::new(pod.refer(), &cause(best.clone())))
            }
            _ => None,
        }
    }

    fn crashed(&mut self, pod: &Object, container: &str, init: bool, status: &Value) -> Option<Why> {
        let restarts = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
        let key = (pod.uid().to_owned(), container.to_owned());
        let before = *self.before.entry(key).or_insert(restarts);
        let down = status.pointer("/state/running").is_none();
        let ended = |state: &str| status.pointer(&format!("/{state}/terminated/exitCode")).and_then(Value::as_i64);
        let exit_code = ended("state").or_else(|| ended("lastState"))?;
        let limit = if is_validator_pod(pod) { CHECKS } else { CRASHES };
        // A pod seen for the first time after many crashes is beyond doubt as well.
        let earlier = if before >= 2 * limit { 0 } else { before };
        // The count is of restarts, and this end has had none yet.
        if exit_code == 0 || !down || restarts - earlier + 1 < limit {
            return None;
        }
        let culprit = Culprit { pod: pod.clone(), container: container.to_owned(), init, exit_code, restarts };
        let cause = unexplained(&culprit);
        self.culprit = Some(culprit);
        Some(Why::new(pod.refer(), &cause))
    }
}

/// The cause as far as it is known without a log.
fn unexplained(culprit: &Culprit) -> StackCause {
    if is_validator_pod(&culprit.pod) {
        return StackCause::ValidationFailed {
            check: culprit.container.clone(),
            node: culprit.node().to_owned(),
            exit_code: culprit.exit_code,
        };
    }
    StackCause::Crash {
        container: culprit.container.clone(),
        node: culprit.node().to_owned(),
        restarts: culprit.restarts,
        exit_code: culprit.exit_code,
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
    let mut explained = if is_driver_pod(&culprit.pod) && !culprit.init {
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
    explained = explained.with(format!("log of container {} on node {}", culprit.container, culprit.node()), tail);
    explained
}

async fn read(cluster: &Cluster, culprit: &Culprit, previous: bool) -> Option<String> {
    let options = LogOptions { tail_lines: Some(2000), limit_bytes: Some(1 << 20), previous };
    let namespace = culprit.pod.namespace().unwrap_or_default();
    cluster.log(namespace, culprit.pod.name(), Some(&culprit.container), &options).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, version: u32, key: &str, status: Value) -> Object {
        Object::new(json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": version.to_string()},
            "spec": {"nodeName": "gpu-1"},
            "status": {"phase": "Pending", key: [status]},
        }))
    }

    fn crash(restarts: i64, version: u32) -> Object {
        let state = json!({"name": "nvidia-driver-ctr", "restartCount": restarts, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}});
        pod("nvidia-driver-daemonset-ab12c", version, "containerStatuses", state)
    }

    #[test]
    fn a_crash_loop_ends_after_a_few_restarts() {
        let mut troubles = Troubles::default();
        for restarts in 0..2 {
            assert_eq!(troubles.first(&[&crash(restarts, 1)]), None, "{restarts}");
        }
        let why = troubles.first(&[&crash(2, 2)]).unwrap();
        assert_eq!(why.code, "crash-loop");
        assert_eq!(troubles.culprit().unwrap().container, "nvidia-driver-ctr");
        assert!(Troubles::default().first(&[&crash(6, 1)]).is_some());
    }

    #[test]
    fn a_failed_check_of_the_validator_is_named_with_its_node() {
        let check = |restarts: i64| {
            let state =
                json!({"name": "cuda-validation", "restartCount": restarts, "state": {"terminated": {"exitCode": 1}}});
            pod("nvidia-operator-validator-x1", 1, "initContainerStatuses", state)
        };
        let mut troubles = Troubles::default();
        assert_eq!(troubles.first(&[&check(0)]), None);
        let why = troubles.first(&[&check(4)]).unwrap();
        assert_eq!(
            why.to_string(),
            "Pod/ns/nvidia-operator-validator-x1: cuda-validation fails on node gpu-1 (exit status 1)"
        );
    }

    #[test]
    fn a_pull_is_given_up_after_three_refusals_with_the_exact_message() {
        let pull = |reason: &str, message: &str, version| {
            let state = json!({"name": "c", "image": "registry.example.test/driver:1", "state": {"waiting": {"reason": reason, "message": message}}});
            pod("nvidia-driver-daemonset-x", version, "containerStatuses", state)
        };
        let mut troubles = Troubles::default();
        for version in 1..3 {
            assert_eq!(troubles.first(&[&pull("ErrImagePull", "manifest unknown", 10 * version)]), None);
            assert_eq!(troubles.first(&[&pull("ImagePullBackOff", "Back-off pulling image", 10 * version + 1)]), None);
        }
        let why = troubles.first(&[&pull("ErrImagePull", "manifest unknown", 30)]).unwrap();
        assert_eq!(why.code, "image-pull-failure");
        assert!(why.cause.contains("manifest unknown"), "{why}");
        let why = Troubles::default().first(&[&pull("InvalidImageName", "couldn't parse", 1)]);
        assert!(why.is_some());
    }

    #[test]
    fn evicted_and_finished_pods_are_left_out() {
        let mut evicted = crash(9, 1).value().clone();
        evicted["status"]["phase"] = json!("Failed");
        assert_eq!(Troubles::default().first(&[&Object::new(evicted)]), None);
    }
}
