//! How long the trouble of pods is put up with.
//!
//! The kubelet tries for ever, so nothing in a pod's status says that it will never run. Here tries are counted: a few
//! failed pulls or restarts may be a hiccup, more of them end the wait. The exact words of the first failure ("manifest
//! unknown") are kept, as the pod shows them only for seconds before it says "back-off".

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use toolbox_engine::{ObjectRef, Verdict, Why};

use super::events::{event_count, event_message, in_order, is_about, warnings_about};
use super::pod::{containers, is_superseded, passing};
use super::pod_cause::PodCause;
use super::pod_trouble;
use crate::object::Object;

/// How many tries, and how much time, pods get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodPatience {
    /// Failed pulls of one image before it is given up.
    pub pulls: i64,
    /// Restarts of one container before it is given up.
    pub restarts: i64,
    /// How long a container may be impossible to make: what it refers to may still come.
    pub config: Duration,
    /// How long any of these may last, when tries cannot be counted.
    pub at_most: Duration,
}

impl Default for PodPatience {
    fn default() -> Self {
        Self { pulls: 3, restarts: 3, config: Duration::from_secs(60), at_most: Duration::from_secs(300) }
    }
}

/// What is remembered of a container.
#[derive(Clone, Debug, Default)]
struct Memory {
    since: Option<Timestamp>,
    /// Pulls that were seen to fail.
    pulls: i64,
    failing: bool,
    /// The most exact words seen.
    words: Option<String>,
}

/// Watches over pods for the length of one wait.
#[derive(Clone, Debug, Default)]
pub struct PodTroubles {
    patience: PodPatience,
    /// By the pod's uid and the container's name.
    memory: BTreeMap<(String, String), Memory>,
}

impl PodTroubles {
    /// With this patience.
    pub fn new(patience: PodPatience) -> Self {
        Self { patience, ..Self::default() }
    }

    /// When to look again although nothing changes, for [`Changes::or_after`](toolbox_engine::plan::Changes::or_after).
    pub fn look_again(&self) -> Duration {
        self.patience.config.min(self.patience.at_most).max(Duration::from_secs(1))
    }

    /// Refines a pending reason by what is wrong with the pods behind it: failed when some pod's trouble has lasted too
    /// long, pending with the trouble of the first pod that has one, else the reason itself. Finished pods that their
    /// controller replaces are left out.
    pub fn explain<T>(&mut self, pending: Why, pods: &[Object], events: &[Object], now: Timestamp) -> Verdict<T> {
        let mut first = None;
        for pod in pods.iter().filter(|pod| !is_superseded(pod) && !pod.is_deleting()) {
            let Some((cause, is_final)) = self.judge(pod, events, now) else { continue };
            let mut why = if is_final { Why::new(pod.refer(), &cause) } else { passing(pod.refer(), &cause) };
            why.evidence = warnings_about(events, &pod.refer(), 3);
            if let Some(node) = pod.text("/spec/nodeName") {
                why = why.with("node", node);
            }
            if is_final {
                return Verdict::Failed(why);
            }
            first = first.or(Some(why));
        }
        Verdict::Pending(first.unwrap_or(pending))
    }

    /// What is wrong with a pod, in the most exact words seen so far, and whether it is given up.
    pub fn judge(&mut self, pod: &Object, events: &[Object], now: Timestamp) -> Option<(PodCause, bool)> {
        self.remember(pod, events, now);
        let Some(cause) = pod_trouble(pod) else {
            return not_started(pod, events).map(|message| (PodCause::NotStarted { message }, false));
        };
        Some(match cause {
            PodCause::ImagePull { container, image, message } => {
                let memory = self.of(pod, &container);
                let is_final = memory.pulls >= self.patience.pulls || lasts(&memory, now, self.patience.at_most);
                let message = memory.words.unwrap_or(message);
                (PodCause::ImagePull { container, image, message }, is_final)
            }
            PodCause::ContainerConfig { ref container, .. } => {
                let is_final = lasts(&self.of(pod, container), now, self.patience.config);
                (cause, is_final)
            }
            PodCause::CrashLoop { restarts, .. } => {
                let is_final = restarts >= self.patience.restarts;
                (cause, is_final)
            }
            PodCause::ImageName { .. } | PodCause::Evicted { .. } | PodCause::Failed { .. } => (cause, true),
            // Room may be made; the wait's deadline decides.
            PodCause::Unschedulable { .. } | PodCause::NotStarted { .. } => (cause, false),
        })
    }

    fn of(&self, pod: &Object, container: &str) -> Memory {
        let key = (pod.uid().to_owned(), container.to_owned());
        self.memory.get(&key).cloned().unwrap_or_default()
    }

    fn remember(&mut self, pod: &Object, events: &[Object], now: Timestamp) {
        for container in containers(pod) {
            let memory = self.memory.entry((pod.uid().to_owned(), container.name.to_owned())).or_default();
            let reason = container.waits_for();
            let in_trouble = matches!(
                reason,
                Some(
                    "ErrImagePull"
                        | "ImagePullBackOff"
                        | "RegistryUnavailable"
                        | "ImageInspectError"
                        | "CreateContainerConfigError"
                        | "CreateContainerError"
                        | "RunContainerError"
                )
            );
            if !in_trouble {
                // It got over it: one failed pull followed by a running container is a success.
                *memory = Memory::default();
                continue;
            }
            memory.since.get_or_insert(now);
            let failing = reason == Some("ErrImagePull");
            // Each entry into "failed" is a try; one that is found in back-off has failed before we looked.
            if (failing && !memory.failing) || memory.pulls == 0 {
                memory.pulls += 1;
            }
            memory.failing = failing;
            if failing && !container.waiting_message().is_empty() {
                memory.words = Some(container.waiting_message().to_owned());
            }
            let (tries, words) = pulls_by_events(pod, container.name, container.image(), events);
            memory.pulls = memory.pulls.max(tries);
            memory.words = memory.words.take().or(words);
        }
    }
}

fn lasts(memory: &Memory, now: Timestamp, limit: Duration) -> bool {
    memory.since.is_some_and(|since| now.duration_since(since).unsigned_abs() >= limit)
}

/// Failed pulls that events tell of, and the words of the last one.
fn pulls_by_events(pod: &Object, container: &str, image: &str, events: &[Object]) -> (i64, Option<String>) {
    let pod: ObjectRef = pod.refer();
    let quoted = format!("\"{image}\"");
    let mut tries = 0;
    let mut words = None;
    for event in in_order(events) {
        let message = event_message(event);
        let path = event.text("/involvedObject/fieldPath").unwrap_or_default();
        let of_container = path.is_empty() || path.ends_with(&format!("{{{container}}}"));
        if !is_about(event, &pod) || !of_container || !message.starts_with("Failed to pull image") {
            continue;
        }
        let Some((_, said)) = message.split_once(&quoted) else { continue };
        tries += event_count(event);
        words = Some(said.trim_start_matches([':', ' ']).to_owned());
    }
    (tries, words)
}

/// The latest warning about a pod that sits on a node and has not got as far as a container.
fn not_started(pod: &Object, events: &[Object]) -> Option<String> {
    let creating = |reason: &str| matches!(reason, "ContainerCreating" | "PodInitializing");
    let waits = pod.text("/spec/nodeName").is_some()
        && pod.text("/status/phase") == Some("Pending")
        && containers(pod).all(|container| container.waits_for().is_some_and(creating));
    let about = pod.refer();
    let warning = in_order(events)
        .into_iter()
        .rev()
        .find(|event| event.text("/type") == Some("Warning") && is_about(event, &about))
        .filter(|_| waits)?;
    Some(format!("{}: {}", warning.text("/reason").unwrap_or_default(), event_message(warning)))
}
