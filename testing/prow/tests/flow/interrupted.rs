//! A signal at some moment: captures within the grace time, true files, the signal's exit code.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolbox_core::engine::Exit;
use toolbox_core::engine::plan::Interrupt;
use toolbox_testkit::Rehearsed;

use crate::support::{JOB, json, tbx};

#[tokio::test(start_paused = true)]
async fn an_interrupted_job_leaves_true_files_within_its_grace_time() {
    let signals = [("SIGINT", Exit::Interrupted, 130), ("SIGTERM", Exit::Terminated, 143)];
    for (index, moment) in [0.0, 1.0, 9.0, 30.0, 200.0, 400.0, 520.0, 700.0].into_iter().enumerate() {
        let (by, exit, code) = signals[index % 2];
        let rehearsed = Rehearsed::new("default", &[]).await;
        let dir = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::default();
        let asked = interrupt.clone();
        let done = async {
            let run = tbx(&rehearsed, dir.path(), &JOB, interrupt.clone());
            tokio::pin!(run);
            tokio::select! {
                biased;
                done = &mut run => panic!("{moment}: ended by itself: {:?} {}", done.exit, done.said),
                () = tokio::time::sleep(Duration::from_secs_f64(moment)) => asked.stop(by, exit),
            }
            let at = rehearsed.clock.elapsed();
            let done = run.await;
            (done, rehearsed.clock.elapsed().saturating_sub(at).as_secs_f64())
        };
        let (done, took) = done.await;
        assert_eq!(done.exit, exit, "{moment}: {}", done.said);
        assert!(took <= 15.1, "{moment}: {took} s after the signal");
        let summary = json(dir.path().join("summary.json"));
        assert_eq!((&summary["result"], &summary["exit_code"]), (&"interrupted".into(), &code.into()), "{moment}");
        let steps = summary["steps"].as_array().unwrap();
        assert!(
            steps.iter().all(|step| step["state"] != "running" && step["state"] != "waiting"),
            "{moment}: {steps:#?}"
        );
        let captured = steps.iter().find(|step| step["id"] == "gpu-operator.capture").unwrap();
        assert!(matches!(captured["state"].as_str(), Some("changed" | "already-so")), "{moment}: {captured:#}");
        assert!(dir.path().join("FAILURE").exists(), "{moment}");
        let report = std::fs::read_to_string(dir.path().join("gpu-operator-test_operatorhub-summary.html")).unwrap();
        assert!(report.contains("interrupted"), "{moment}");
        let junit = std::fs::read_dir(dir.path()).unwrap().flatten().find(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("junit_") && name.strip_suffix(".xml").is_some()
        });
        let junit = std::fs::read_to_string(junit.unwrap().path()).unwrap();
        assert!(junit.contains(by) || junit.contains("stopped"), "{moment}: {junit}");
        // Temporary objects are gone whatever happened.
        let burn = |now: &BTreeMap<String, Value>| -> Vec<String> {
            now.keys().filter(|key| key.contains("gpu-burn") && !key.starts_with("Event/")).cloned().collect()
        };
        let burn = burn(&rehearsed.until(Duration::from_secs(30), |now| burn(now).is_empty()).await);
        assert!(burn.is_empty(), "{moment}: {burn:?}");
        // What stays is said, each thing once.
        let made: std::collections::BTreeSet<String> = crate::support::lines(&dir.path().join("journal.jsonl"))
            .iter()
            .filter(|entry| entry["entry"] == "made" && !entry["object"]["name"].as_str().unwrap().contains("gpu-burn"))
            .map(|entry| entry["object"]["uid"].to_string())
            .collect();
        assert_eq!(summary["leftovers"].as_array().unwrap().len(), made.len(), "{moment}");
    }
}
