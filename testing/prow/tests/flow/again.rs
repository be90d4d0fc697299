//! A second run, and taking the first one back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolbox_core::cluster::kinds;
use toolbox_core::engine::Exit;
use toolbox_core::engine::plan::Interrupt;
use toolbox_testkit::Rehearsed;

use crate::support::{difference, job, lines, tbx};

/// Time in which what a run left to the cluster would show: a second run that changes nothing has nothing to wait for.
const QUIET: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn a_second_run_changes_nothing_and_cleanup_takes_back_exactly_what_the_first_made() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    rehearsed
        .somebody_creates(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "theirs", "namespace": "default"}, "data": {"a": "b"}}))
        .await;
    let first = rehearsed.snapshot();
    let dirs: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let done = job(&rehearsed, dirs[0].path(), &[]).await;
    assert_eq!(done.exit, Exit::Done, "{}", done.said);
    rehearsed.clock.sleep(QUIET).await;
    let after = rehearsed.snapshot();
    assert_ne!(difference(&first, &after), Vec::<String>::new());

    let again = job(&rehearsed, dirs[1].path(), &[]).await;
    assert_eq!(again.exit, Exit::Done, "{}", again.said);
    rehearsed.clock.sleep(QUIET).await;
    assert_eq!(difference(&after, &rehearsed.snapshot()), Vec::<String>::new());
    let touched: Vec<Value> = lines(&dirs[1].path().join("journal.jsonl"))
        .into_iter()
        .filter(|entry| entry["entry"] == "made" || entry["entry"] == "changed")
        .filter(|entry| !entry["object"]["name"].as_str().unwrap().starts_with("gpu-burn"))
        .collect();
    assert_eq!(touched, Vec::<Value>::new(), "the second run made or changed something that stays");

    // The second run made nothing that stays, so there is nothing to take back.
    let run = dirs[1].path().display().to_string();
    let none = tbx(&rehearsed, dirs[2].path(), &["cleanup", &run], Interrupt::default()).await;
    assert_eq!(none.exit, Exit::Done, "{}", none.said);
    assert_eq!(difference(&after, &rehearsed.snapshot()), Vec::<String>::new());

    let run = dirs[0].path().display().to_string();
    let back = tbx(&rehearsed, dirs[3].path(), &["cleanup", &run], Interrupt::default()).await;
    assert_eq!(back.exit, Exit::Done, "{}", back.said);
    let left = |now: &BTreeMap<String, Value>| made_by_others(&difference(&first, now));
    let now = rehearsed.until(QUIET, |now| left(now).is_empty()).await;
    assert_eq!(left(&now), Vec::<String>::new());
}

/// Without what operators and OLM left, which nobody asked to be taken back: definitions stay by OLM's own rule, and NFD's
/// labels stay on nodes.
fn made_by_others(difference: &[String]) -> Vec<String> {
    difference
        .iter()
        .filter(|line| !line.starts_with("new CustomResourceDefinition/") && !line.starts_with("changed Node/"))
        .cloned()
        .collect()
}

#[tokio::test(start_paused = true)]
async fn cleanup_does_not_touch_what_somebody_made_anew_under_the_same_name() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let dirs: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let done = job(&rehearsed, dirs[0].path(), &[]).await;
    assert_eq!(done.exit, Exit::Done, "{}", done.said);
    let namespace = Some("nvidia-gpu-operator");
    let name = "gpu-operator-certified";
    let ours = rehearsed.object(&kinds::SUBSCRIPTION, namespace, name).await;
    rehearsed.somebody_deletes(&kinds::SUBSCRIPTION, namespace, name).await;
    let mut theirs = BTreeMap::from([("spec", ours.at("/spec").cloned().unwrap())]);
    let spec = theirs.remove("spec").unwrap();
    rehearsed
        .somebody_creates(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": name, "namespace": "nvidia-gpu-operator"}, "spec": spec,
        }))
        .await;
    let theirs = rehearsed.object(&kinds::SUBSCRIPTION, namespace, name).await;
    assert_ne!(ours.uid(), theirs.uid());
    // Their namespace as well: one that is taken away takes everything in it along.
    let run = dirs[0].path().display().to_string();
    let back = tbx(&rehearsed, dirs[1].path(), &["cleanup", &run], Interrupt::default()).await;
    let now = rehearsed.cluster.get(&kinds::SUBSCRIPTION, namespace, name).await.unwrap();
    let now = now.unwrap_or_else(|| panic!("their Subscription is gone: {:?} {}", back.exit, back.said));
    assert_eq!((now.uid(), now.is_deleting()), (theirs.uid(), false), "{}", back.said);
    assert!(back.said.contains("nvidia-gpu-operator"), "what stays is said: {}", back.said);
}
