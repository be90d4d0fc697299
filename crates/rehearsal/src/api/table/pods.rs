//! How a pod's state reads in one word.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{human, list, number, since, text};
use crate::store::object::{at, is_deleting};

fn is_true(pod: &Value, kind: &str) -> bool {
    list(pod, "status.conditions").iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
}

/// Why a container has ended, if it says so.
fn end(container: &Value) -> Option<String> {
    let ended = at(container, "state.terminated")?;
    Some(match (text(ended, "reason"), number(ended, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(ended, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

/// The word in the column `STATUS`.
pub(super) fn status(pod: &Value) -> String {
    let phase = text(pod, "status.phase");
    let reason = text(pod, "status.reason");
    let mut word = if reason.is_empty() { phase } else { reason }.to_owned();
    let all = list(pod, "spec.initContainers").len();
    let mut initializing = false;
    for (index, container) in list(pod, "status.initContainerStatuses").iter().enumerate() {
        if at(container, "state.terminated").is_some_and(|ended| number(ended, "exitCode") == 0) {
            continue;
        }
        let waiting = text(container, "state.waiting.reason");
        word = match end(container) {
            Some(end) => format!("Init:{end}"),
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{index}/{all}"),
        };
        initializing = true;
        break;
    }
    if !initializing || is_true(pod, "Initialized") {
        let mut running = false;
        for container in list(pod, "status.containerStatuses").iter().rev() {
            let waiting = text(container, "state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut word);
            } else if let Some(end) = end(container) {
                word = end;
            } else if at(container, "ready") == Some(&Value::Bool(true)) && at(container, "state.running").is_some() {
                running = true;
            }
        }
        if word == "Completed" && running {
            let ready = if is_true(pod, "Ready") { "Running" } else { "NotReady" };
            ready.clone_into(&mut word);
        }
    }
    match (is_deleting(pod), reason) {
        (true, "NodeLost") => "Unknown".into(),
        (true, _) if !["Succeeded", "Failed"].contains(&phase) => "Terminating".into(),
        _ => word,
    }
}

/// How many containers are ready, of how many.
pub(super) fn ready(pod: &Value) -> String {
    let ready = |one: &&Value| at(one, "ready") == Some(&Value::Bool(true)) && at(one, "state.running").is_some();
    let statuses = list(pod, "status.containerStatuses");
    format!("{}/{}", statuses.iter().filter(ready).count(), list(pod, "spec.containers").len())
}

/// How often containers were started again, and when last.
pub(super) fn restarts(pod: &Value, now: Timestamp) -> String {
    let initialized = is_true(pod, "Initialized") || list(pod, "status.initContainerStatuses").is_empty();
    let statuses = list(pod, if initialized { "status.containerStatuses" } else { "status.initContainerStatuses" });
    let count: i64 = statuses.iter().map(|one| number(one, "restartCount")).sum();
    let last = statuses.iter().filter_map(|one| since(one, "lastState.terminated.finishedAt", now)).min();
    match last {
        Some(last) if count > 0 => format!("{count} ({} ago)", human(last)),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_word_is_the_most_telling_one() {
        let word = |status: Value| {
            self::status(&json!({"spec": {"containers": [{}], "initContainers": [{}, {}]}, "status": status}))
        };
        let ended = |code: i64, reason: &str| json!({"state": {"terminated": {"exitCode": code, "reason": reason}}});
        assert_eq!(word(json!({"phase": "Pending"})), "Pending");
        assert_eq!(word(json!({"phase": "Failed", "reason": "Evicted"})), "Evicted");
        assert_eq!(word(json!({"phase": "Pending", "initContainerStatuses": [ended(0, "Completed"), {}]})), "Init:1/2");
        assert_eq!(word(json!({"phase": "Pending", "initContainerStatuses": [ended(3, "Error")]})), "Init:Error");
        assert_eq!(word(json!({"phase": "Failed", "containerStatuses": [ended(3, "")]})), "ExitCode:3");
        let crash = json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        assert_eq!(word(json!({"phase": "Running", "containerStatuses": [crash]})), "CrashLoopBackOff");
        let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!(self::status(&gone), "Terminating");
    }

    #[test]
    fn restarts_say_when() {
        let pod = json!({"status": {"containerStatuses": [{
            "restartCount": 2, "lastState": {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}},
        }]}});
        assert_eq!(restarts(&pod, "2026-01-01T00:05:10Z".parse().unwrap()), "2 (5m10s ago)");
    }
}
