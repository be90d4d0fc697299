//! `--undo-on-failure`: a failure at any step leaves the cluster as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolbox_core::engine::Exit;
use toolbox_testkit::Rehearsed;

use crate::support::{difference, job, json};

/// Within which the machines and namespaces that the undo deletes have to be gone.
const SETTLED: Duration = Duration::from_secs(900);

/// What the undo of an operator cannot know of: OLM keeps definitions, and NFD's labels stay on nodes.
fn ours(difference: &[String]) -> Vec<String> {
    difference
        .iter()
        .filter(|line| !line.starts_with("new CustomResourceDefinition/") && !line.starts_with("changed Node/"))
        .cloned()
        .collect()
}

async fn undone(what: &str, faults: &[&str], further: &[&str]) {
    let rehearsed = Rehearsed::new("default", faults).await;
    let before = rehearsed.snapshot();
    let dir = tempfile::tempdir().unwrap();
    let words: Vec<&str> = further.iter().chain(&["--undo-on-failure"]).copied().collect();
    let done = job(&rehearsed, dir.path(), &words).await;
    assert!(matches!(done.exit, Exit::Failed | Exit::TimedOut), "{what}: {:?} {}", done.exit, done.said);
    let left = |now: &BTreeMap<String, Value>| ours(&difference(&before, now));
    let left = left(&rehearsed.until(SETTLED, |now| left(now).is_empty()).await);
    assert!(left.is_empty(), "{what}: {left:#?}\n{}", done.said);
    // Whatever is undone, the first line is about what failed.
    let first = done.said.lines().position(|line| line.starts_with("error: "));
    let lines: Vec<&str> = done.said.lines().skip(first.unwrap_or_else(|| panic!("{what}: {}", done.said))).collect();
    assert!(lines[0].matches(": ").count() >= 2 && lines[1].starts_with("next: "), "{what}: {lines:#?}");
    let summary = json(dir.path().join("summary.json"));
    assert_eq!(summary["leftovers"], serde_json::json!([]), "{what}");
    assert_eq!(summary["result"], "failed", "{what}");
}

#[tokio::test(start_paused = true)]
async fn every_fault_is_undone() {
    for fault in [
        "quota-exhausted",
        "catalog-not-ready",
        "image-pull-failure",
        "driver-crash-loop",
        "no-gpu-label",
        "node-not-ready",
        "gpu-faulty",
    ] {
        undone(fault, &[fault], &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_somebody_elses_group_stays_and_is_said() {
    let rehearsed = Rehearsed::new("default", &["second-operator-group"]).await;
    let before = rehearsed.snapshot();
    let dir = tempfile::tempdir().unwrap();
    let done = job(&rehearsed, dir.path(), &["--undo-on-failure"]).await;
    assert_eq!(done.exit, Exit::Failed, "the undo does not hide what failed: {}", done.said);
    let left = |now: &BTreeMap<String, Value>| ours(&difference(&before, now));
    // Of two groups theirs stays, and with it the namespace.
    let groups = |left: &[String]| left.iter().filter(|line| line.starts_with("new OperatorGroup/")).count();
    let others = |line: &String| line.contains("Subscription") || line.contains("openshift-nfd");
    let settled = |left: &[String]| groups(left) == 1 && !left.iter().any(others);
    let left = left(&rehearsed.until(SETTLED, |now| settled(&left(now))).await);
    assert_eq!(groups(&left), 1, "{left:#?}");
    assert!(left.contains(&"new Namespace//nvidia-gpu-operator".to_owned()), "{left:#?}");
    assert!(!left.iter().any(others), "{left:#?}");
    let summary = json(dir.path().join("summary.json"));
    let named: Vec<&str> =
        summary["leftovers"].as_array().unwrap().iter().filter_map(|left| left["name"].as_str()).collect();
    assert_eq!(named, ["nvidia-gpu-operator"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_at_any_step_is_undone() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let dir = tempfile::tempdir().unwrap();
    let done = job(&rehearsed, dir.path(), &[]).await;
    assert_eq!(done.exit, Exit::Done, "{}", done.said);
    let summary = json(dir.path().join("summary.json"));
    let steps = summary["steps"].as_array().unwrap();
    // A step that takes longer than a second can be made to fail by giving it no more.
    let slow: Vec<&str> = steps
        .iter()
        .filter(|step| step["end_s"].as_f64().unwrap() > step["start_s"].as_f64().unwrap() + 1.0)
        .map(|step| step["id"].as_str().unwrap())
        .filter(|id| !id.contains('['))
        .collect();
    assert!(slow.len() > 8, "{slow:?}");
    for step in slow {
        if ["capture", "must-gather", "versions", "clean-up"].iter().any(|finalizer| step.ends_with(finalizer)) {
            continue;
        }
        undone(step, &[], &["--deadline", &format!("{step}=1s")]).await;
    }
}
