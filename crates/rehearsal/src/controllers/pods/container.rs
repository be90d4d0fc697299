//! One container of one pod: pulled, started, ended, started again.

use std::time::Duration;

use serde_json::{Value, json};

/// Where a container is in its life.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// Not running, with reason and message as the kubelet words them.
    Waiting { reason: &'static str, message: String },
    /// Running since.
    Running { since: String },
    /// Ended.
    Ended(End),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) started: String,
    pub(super) finished: String,
}

/// A container as the kubelet keeps it.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) init: bool,
    pub(super) state: State,
    pub(super) last: Option<End>,
    pub(super) restarts: u32,
    pub(super) ready: bool,
    /// Pulls that failed so far.
    pub(super) failed_pulls: u32,
    /// Lines of the present run's log that were written.
    pub(super) logged: usize,
    /// Whether the pull has been announced.
    pub(super) announced: bool,
}

impl Container {
    pub(super) fn new(spec: &Value, init: bool, waits_for_init: bool) -> Self {
        let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
        let reason = if init || waits_for_init { "PodInitializing" } else { "ContainerCreating" };
        Self {
            name: text("name"),
            image: text("image"),
            init,
            state: State::Waiting { reason, message: String::new() },
            last: None,
            restarts: 0,
            ready: false,
            failed_pulls: 0,
            logged: 0,
            announced: false,
        }
    }

    pub(super) fn wait(&mut self, reason: &'static str, message: impl Into<String>) {
        self.state = State::Waiting { reason, message: message.into() };
        self.ready = false;
    }

    pub(super) fn is_waiting_for(&self, wanted: &str) -> bool {
        matches!(&self.state, State::Waiting { reason, .. } if *reason == wanted)
    }

    pub(super) fn succeeded(&self) -> bool {
        matches!(&self.state, State::Ended(end) if end.code == 0)
    }

    /// The container's status as a pod carries it.
    pub(super) fn status(&self) -> Value {
        let ended = |end: &End| {
            json!({"terminated": {
                "exitCode": end.code, "reason": if end.code == 0 { "Completed" } else { "Error" },
                "startedAt": end.started, "finishedAt": end.finished,
            }})
        };
        let (state, id) = match &self.state {
            State::Waiting { reason, message } if message.is_empty() => (json!({"waiting": {"reason": reason}}), false),
            State::Waiting { reason, message } => (json!({"waiting": {"reason": reason, "message": message}}), false),
            State::Running { since } => (json!({"running": {"startedAt": since}}), true),
            State::Ended(end) => (ended(end), true),
        };
        let pulled = id || self.last.is_some();
        json!({
            "name": self.name,
            "image": self.image,
            "imageID": if pulled { self.image.as_str() } else { "" },
            "ready": if self.init { self.succeeded() } else { self.ready },
            "started": matches!(self.state, State::Running { .. }) && (self.ready || self.init),
            "restartCount": self.restarts,
            "state": state,
            "lastState": self.last.as_ref().map_or_else(|| json!({}), ended),
        })
    }
}

/// The pause before try number `failures + 1`: doubled each time up to a limit.
pub(super) fn back_off(first: Duration, limit: Duration, failures: u32) -> Duration {
    let factor = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_its_limit() {
        let seconds = |n| back_off(Duration::from_secs(10), Duration::from_secs(300), n).as_secs();
        assert_eq!([seconds(1), seconds(2), seconds(3), seconds(6), seconds(60)], [10, 20, 40, 300, 300]);
    }
}
