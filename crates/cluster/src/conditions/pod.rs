//! Pods: what is wrong with one now, ready, finished.

use serde_json::Value;
use toolbox_engine::{ObjectRef, Verdict, Why};

use super::pod_cause::PodCause;
use super::present;
use crate::object::{Condition, Object};

/// A container's status as the kubelet reports it.
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    pub(super) init: bool,
    status: &'a Value,
}

impl<'a> Container<'a> {
    fn text(&self, pointer: &str) -> &'a str {
        self.status.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn image(&self) -> &'a str {
        self.text("/image")
    }

    /// Why it waits, if it does.
    pub(super) fn waits_for(&self) -> Option<&'a str> {
        self.status.pointer("/state/waiting").map(|_| self.text("/state/waiting/reason"))
    }

    pub(super) fn waiting_message(&self) -> &'a str {
        self.text("/state/waiting/message")
    }

    pub(super) fn restarts(&self) -> i64 {
        self.status["restartCount"].as_i64().unwrap_or_default()
    }

    fn exit_code(&self, state: &str) -> Option<i64> {
        self.status.pointer(&format!("/{state}/terminated/exitCode")).and_then(Value::as_i64)
    }

    /// How it ended, now or the last time, when that was not well.
    pub(super) fn ended_badly(&self) -> Option<String> {
        let state = ["state", "lastState"].into_iter().find(|state| self.exit_code(state).is_some())?;
        let code = self.exit_code(state).filter(|code| *code != 0)?;
        let reason = self.text(&format!("/{state}/terminated/reason"));
        let message = self.text(&format!("/{state}/terminated/message")).trim();
        let mut how = format!("exit code {code}");
        if !matches!(reason, "" | "Error") {
            how = format!("{how} ({reason})");
        }
        if let Some(line) = message.lines().last() {
            how = format!("{how}: {line}");
        }
        Some(how)
    }

    /// Whether it is being made again after it was stopped from outside, as by a restart of its node: one that ended by
    /// itself is started again in place.
    fn is_made_anew(&self) -> bool {
        let stopped = match (self.text("/lastState/terminated/reason"), self.exit_code("lastState")) {
            ("Unknown" | "ContainerStatusUnknown", _) => true,
            (reason, Some(137 | 143)) => reason != "OOMKilled",
            _ => false,
        };
        stopped && matches!(self.waits_for(), Some("ContainerCreating" | "PodInitializing"))
    }

    pub(super) fn is_running(&self) -> bool {
        self.status.pointer("/state/running").is_some()
    }

    fn is_terminated(&self) -> bool {
        self.status.pointer("/state/terminated").is_some()
    }
}

/// The containers of a pod, those first that have to end before the others start.
pub(super) fn containers(pod: &Object) -> impl Iterator<Item = Container<'_>> {
    let of = |init: bool, at: &str| {
        let statuses = pod.list(at).iter();
        statuses.map(move |status| Container { name: status["name"].as_str().unwrap_or_default(), init, status })
    };
    of(true, "/status/initContainerStatuses").chain(of(false, "/status/containerStatuses"))
}

fn phase(pod: &Object) -> &str {
    pod.text("/status/phase").unwrap_or_default()
}

/// Whether it will never run again.
pub fn is_finished(pod: &Object) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a finished pod is of no interest because its controller has made, or will make, another one: an evicted pod
/// of a deployment lies around next to its healthy successor.
pub fn is_superseded(pod: &Object) -> bool {
    is_finished(pod)
        && pod.list("/metadata/ownerReferences").iter().any(|owner| {
            matches!(owner["kind"].as_str(), Some("ReplicaSet" | "DaemonSet" | "StatefulSet" | "ReplicationController"))
        })
}

/// What is wrong with a pod now, as far as it says so itself. Nothing is wrong with one that is still starting.
pub fn pod_trouble(pod: &Object) -> Option<PodCause> {
    if phase(pod) == "Failed" {
        return Some(how_it_failed(pod));
    }
    if phase(pod) == "Succeeded" {
        return None;
    }
    containers(pod).find_map(|container| container_trouble(&container)).or_else(|| {
        let scheduled = pod.condition("PodScheduled").filter(Condition::is_false)?;
        Some(PodCause::Unschedulable { message: scheduled.text() })
    })
}

fn container_trouble(container: &Container<'_>) -> Option<PodCause> {
    let name = || container.name.to_owned();
    let image = || container.image().to_owned();
    let message = || container.waiting_message().to_owned();
    match container.waits_for() {
        Some("ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" | "ImageInspectError") => {
            return Some(PodCause::ImagePull { container: name(), image: image(), message: message() });
        }
        Some("InvalidImageName" | "ErrImageNeverPull") => {
            return Some(PodCause::ImageName { container: name(), image: image(), message: message() });
        }
        Some(
            reason
            @ ("CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "PreStartHookError"),
        ) => {
            return Some(PodCause::ContainerConfig {
                container: name(),
                reason: reason.to_owned(),
                message: message(),
            });
        }
        _ => {}
    }
    // A container that runs may have crashed before; that is over. So is what a restart of its node did to it.
    if container.is_running() || container.is_made_anew() {
        return None;
    }
    let last = match container.ended_badly() {
        Some(how) => how,
        // One that ends well over and over is no better.
        None if container.waits_for() == Some("CrashLoopBackOff") => "exit code 0".to_owned(),
        None => return None,
    };
    Some(PodCause::CrashLoop { container: name(), init: container.init, restarts: container.restarts(), last })
}

fn how_it_failed(pod: &Object) -> PodCause {
    let text = |at: &str| pod.text(at).unwrap_or_default();
    let (reason, message) = (text("/status/reason"), text("/status/message"));
    if reason == "Evicted" {
        return PodCause::Evicted { message: message.to_owned() };
    }
    let blamed = containers(pod).filter(Container::is_terminated).find_map(|container| {
        let how = container.ended_badly()?;
        Some(PodCause::Failed { container: Some(container.name.to_owned()), how })
    });
    let how = match (reason, message) {
        ("", "") => "it does not say why".to_owned(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    // What happened to the pod as a whole explains the exit codes of its containers, not the other way round.
    match blamed {
        Some(blamed) if reason.is_empty() => blamed,
        _ => PodCause::Failed { container: None, how },
    }
}

/// What a pod is doing, in a few words: its phase and what its containers wait for.
fn doing(pod: &Object) -> String {
    let phase = if phase(pod).is_empty() { "Pending" } else { phase(pod) };
    let waiting: Vec<String> = containers(pod)
        .filter_map(|container| {
            let reason = container.waits_for().filter(|reason| !reason.is_empty())?;
            (reason != "PodInitializing").then(|| format!("{} {reason}", container.name))
        })
        .collect();
    let node = pod.text("/spec/nodeName").map(|node| format!(" on {node}")).unwrap_or_default();
    if waiting.is_empty() { format!("is {phase}{node}") } else { format!("is {phase}{node}: {}", waiting.join(", ")) }
}

/// What a pod waits for, as a pending reason: the trouble it is in, or what it is doing.
pub(super) fn waits(pod: &Object) -> Why {
    match pod_trouble(pod) {
        Some(cause) => passing(pod.refer(), &cause),
        None => Why::waiting(pod.refer(), "pod-starting", doing(pod)),
    }
}

/// A trouble that may pass: pending, with what to do should it not.
pub(super) fn passing(object: ObjectRef, cause: &PodCause) -> Why {
    let mut why = Why::new(object, cause);
    why.exit = toolbox_engine::Exit::TimedOut;
    why
}

/// Whether a pod is ready. Says what it waits for; a pod that has ended badly fails.
pub fn pod_ready(found: Option<&Object>, meant: &ObjectRef) -> Verdict<Object> {
    present(found, meant).and_then(|pod| {
        if pod.condition("Ready").is_some_and(|ready| ready.is_true()) && !pod.is_deleting() {
            return Verdict::Done(pod.clone());
        }
        if phase(pod) == "Failed" {
            return Verdict::Failed(Why::new(pod.refer(), &how_it_failed(pod)));
        }
        Verdict::Pending(waits(pod))
    })
}

/// Whether a bare pod has done its work: done when it succeeded, failed when it ended badly or went away. Pending
/// reasons carry the trouble it is in; how long that is put up with is for [`PodTroubles`](super::PodTroubles).
pub fn pod_finished(found: Option<&Object>, meant: &ObjectRef) -> Verdict<Object> {
    present(found, meant).and_then(|pod| match phase(pod) {
        "Succeeded" => Verdict::Done(pod.clone()),
        "Failed" => Verdict::Failed(Why::new(pod.refer(), &how_it_failed(pod))),
        _ => Verdict::Pending(waits(pod)),
    })
}
