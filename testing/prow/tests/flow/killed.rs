//! `kill -9` at some moment, then `--resume`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolbox_core::cluster::kinds;
use toolbox_core::engine::Exit;
use toolbox_testkit::Rehearsed;

use crate::support::{difference, job, json, lines};

/// Names that the server or a controller chose differ from run to run; what they stand for does not.
fn settled(snapshot: &BTreeMap<String, Value>) -> Vec<String> {
    let chosen =
        ["Pod/", "ReplicaSet/", "Machine/", "InstallPlan/", "Node/", "Event/", "Lease/", "ControllerRevision/"];
    let mut keys: Vec<String> = snapshot
        .keys()
        .map(|key| match chosen.iter().find(|kind| key.starts_with(**kind)) {
            Some(_) => key.rsplit_once('/').map_or_else(|| key.clone(), |(place, _)| format!("{place}/*")),
            None => key.clone(),
        })
        .filter(|key| !key.starts_with("Event/"))
        .collect();
    keys.sort();
    keys
}

async fn undisturbed() -> (f64, BTreeMap<String, Value>) {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let dir = tempfile::tempdir().unwrap();
    let started = rehearsed.clock.elapsed();
    let done = job(&rehearsed, dir.path(), &[]).await;
    assert_eq!(done.exit, Exit::Done, "{}", done.said);
    let seconds = rehearsed.clock.elapsed().saturating_sub(started).as_secs_f64();
    tokio::time::sleep(Duration::from_secs(60)).await;
    (seconds, rehearsed.snapshot())
}

#[tokio::test(start_paused = true)]
async fn a_run_killed_at_any_moment_is_resumed_to_the_same_state() {
    let (whole, expected) = undisturbed().await;
    // Nothing made yet, installation going on, machine on its way, node booting, driver building, validating, burning,
    // captures at the very end.
    let moments = [0.0, 0.9, 4.3, 11.7, whole * 0.3, whole * 0.55, whole * 0.9, whole - 0.001];
    for moment in moments {
        let rehearsed = Rehearsed::new("default", &[]).await;
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        {
            let killed = job(&rehearsed, first.path(), &[]);
            tokio::select! {
                biased;
                done = killed => panic!("{moment}: ended before it was killed: {:?}", done.exit),
                () = tokio::time::sleep(Duration::from_secs_f64(moment)) => {}
            }
        }
        let summary = json(first.path().join("summary.json"));
        assert_eq!(summary["result"], "running", "{moment}");
        // What a killed run holds is believed for a minute.
        tokio::time::sleep(Duration::from_secs(61)).await;
        let before = rehearsed.snapshot();
        let resume = first.path().display().to_string();
        let done = job(&rehearsed, second.path(), &["--resume", &resume]).await;
        assert_eq!(done.exit, Exit::Done, "{moment}: {}", done.said);
        let after = rehearsed.until(Duration::from_secs(60), |now| settled(now) == settled(&expected)).await;
        assert_eq!(settled(&expected), settled(&after), "{moment}");
        let same: BTreeMap<String, Value> =
            expected.iter().filter(|(key, _)| after.contains_key(*key)).map(|(k, v)| (k.clone(), v.clone())).collect();
        let there: BTreeMap<String, Value> =
            after.iter().filter(|(key, _)| expected.contains_key(*key)).map(|(k, v)| (k.clone(), v.clone())).collect();
        let changed: Vec<String> =
            difference(&same, &there).into_iter().filter(|line| !line.starts_with("changed Pod/")).collect();
        assert!(changed.is_empty(), "{moment}: {changed:#?}");

        // What the first run chose is chosen again.
        let chosen = |path: &std::path::Path| -> BTreeMap<String, Value> {
            lines(&path.join("journal.jsonl"))
                .into_iter()
                .filter(|entry| entry["entry"] == "decided")
                .map(|entry| (entry["key"].as_str().unwrap().to_owned(), entry["value"].clone()))
                .collect()
        };
        let again = chosen(second.path());
        for (key, value) in chosen(first.path()) {
            assert_eq!(again.get(&key), Some(&value), "{moment}: {key}");
        }
        // Facts are proven again: no step of the resumed run is skipped because the journal says that it was done.
        let summary = json(second.path().join("summary.json"));
        let asked =
            summary["requests"]["get"].as_u64().unwrap_or(0) + summary["requests"]["list"].as_u64().unwrap_or(0);
        assert!(asked > 10, "{moment}: {}", summary["requests"]);
        if before.contains_key("Subscription/nvidia-gpu-operator/gpu-operator-certified") {
            let step = |id: &str| {
                let found = summary["steps"].as_array().unwrap().iter().find(|step| step["id"] == id).cloned();
                found.unwrap_or_else(|| panic!("{moment}: no step {id}"))
            };
            assert_eq!(step("gpu-operator.subscription")["state"], "already-so", "{moment}");
        }
        assert_eq!(rehearsed.all(&kinds::MACHINE_SET).await.len(), 4, "{moment}");
        assert_eq!(rehearsed.all(&kinds::SUBSCRIPTION).await.len(), 2, "{moment}");
    }
}
