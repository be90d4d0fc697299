//! What a burn pod's state means for somebody who waits for its end.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use toolbox_core::cluster::Object;
use toolbox_core::engine::{ObjectRef, Verdict, Why};

use super::result::BurnCause;
use crate::wait::Troubles;

/// How long a pod may be without a place: the scheduler still counts the GPUs of a pod that is just ending.
const NO_PLACE: Duration = Duration::from_secs(30);

/// Judges one pod, by name and uid, over time.
pub(super) struct Judge {
    pod: ObjectRef,
    seen: bool,
    homeless_since: Option<Timestamp>,
    troubles: Troubles,
}

impl Judge {
    pub(super) fn new(pod: ObjectRef) -> Self {
        Self { pod, seen: false, homeless_since: None, troubles: Troubles::default() }
    }

    /// Done with the pod once it has ended, whatever its phase says: the log decides.
    pub(super) fn look(&mut self, pods: &[Object], now: Timestamp) -> Verdict<Object> {
        let found = pods.iter().find(|pod| Some(pod.uid()) == self.pod.uid.as_deref());
        let Some(pod) = found else {
            if self.seen {
                return Verdict::Failed(Why::new(self.pod.clone(), &BurnCause::Disappeared));
            }
            let why = Why::waiting(self.pod.clone(), "pod-not-seen", "has not been seen yet");
            return Verdict::Pending(why);
        };
        self.seen = true;
        match pod.text("/status/phase").unwrap_or("Pending") {
            "Succeeded" => return Verdict::Done(pod.clone()),
            "Failed" => {
                let reason = pod.text("/status/reason").unwrap_or("");
                let preempted = pod.condition("DisruptionTarget").is_some_and(|target| target.is_true());
                if reason == "Evicted" || reason == "Preempting" || preempted {
                    let message = pod
                        .text("/status/message")
                        .map(str::to_owned)
                        .or_else(|| Some(pod.condition("DisruptionTarget")?.text()))
                        .unwrap_or_else(|| reason.to_owned());
                    return Verdict::Failed(Why::new(pod.refer(), &BurnCause::Evicted { message }));
                }
                return Verdict::Done(pod.clone());
            }
            _ => {}
        }
        if pod.is_deleting() {
            return Verdict::Failed(Why::new(pod.refer(), &BurnCause::Disappeared));
        }
        if let Some(verdict) = self.place(pod, now) {
            return verdict;
        }
        match self.troubles.first(&[pod], now) {
            Some(why) => Verdict::Failed(why),
            None => Verdict::Pending(progress(pod)),
        }
    }

    fn place(&mut self, pod: &Object, now: Timestamp) -> Option<Verdict<Object>> {
        let scheduled = pod.condition("PodScheduled")?;
        if !scheduled.is_false() {
            self.homeless_since = None;
            return None;
        }
        let cause = BurnCause::Unschedulable { message: scheduled.message.to_owned() };
        let why = Why::new(pod.refer(), &cause);
        let since = *self.homeless_since.get_or_insert(now);
        let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        Some(if waited >= NO_PLACE { Verdict::Failed(why) } else { Verdict::Pending(why) })
    }
}

fn progress(pod: &Object) -> Why {
    let running = pod.text("/status/phase") == Some("Running");
    if running {
        return Why::waiting(pod.refer(), "burning", "is burning");
    }
    let place = pod.text("/spec/nodeName").unwrap_or("");
    let text = if place.is_empty() { "waits for the scheduler".to_owned() } else { format!("starts on node {place}") };
    Why::waiting(pod.refer(), "burn-starting", text)
}

/// The exit status of the pod's only container.
pub(super) fn exit_code(pod: &Object) -> Option<i64> {
    pod.list("/status/containerStatuses").first()?.pointer("/state/terminated/exitCode").and_then(Value::as_i64)
}

/// Reason and message of the container's end.
pub(super) fn termination_message(pod: &Object) -> Option<String> {
    let ended = pod.list("/status/containerStatuses").first()?.pointer("/state/terminated")?;
    let text = |key: &str| ended.get(key).and_then(Value::as_str).unwrap_or("");
    let message = format!("{} {}", text("reason"), text("message"));
    Some(message.trim().to_owned()).filter(|message| !message.is_empty())
}

/// Done once the pod of this uid is no longer there.
pub(super) fn replaced(pods: &[Object], uid: &str) -> Verdict<()> {
    match pods.iter().find(|pod| pod.uid() == uid) {
        None => Verdict::Done(()),
        Some(pod) => {
            Verdict::Pending(Why::waiting(pod.refer(), "stale-pod", "of an earlier burn is still being deleted"))
        }
    }
}
