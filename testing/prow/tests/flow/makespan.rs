//! The job takes the cluster's own time, and its critical path is the cluster's own.

use toolbox_core::engine::Exit;
use toolbox_rehearsal::FloorRequest;
use toolbox_rehearsal::scenario::{Dist, Scenario};
use toolbox_testkit::Rehearsed;

use crate::support::{job, json};

/// The critical path without the steps that take no time.
fn path(summary: &serde_json::Value) -> Vec<String> {
    let steps = summary["steps"].as_array().unwrap();
    let took = |id: &str| {
        let step = steps.iter().find(|step| step["id"] == id);
        step.is_some_and(|step| step["end_s"].as_f64().unwrap() - step["start_s"].as_f64().unwrap() > 1.0)
    };
    let path = summary["critical_path"].as_array().unwrap().iter();
    path.map(|id| id.as_str().unwrap().to_owned()).filter(|id| took(id)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_job_is_as_fast_as_the_cluster_whatever_the_dice() {
    for seed in 0..=3 {
        let rehearsed = Rehearsed::seeded("default", &[], seed, |_| {}).await;
        let floor = rehearsed.floor(&FloorRequest::default());
        let dir = tempfile::tempdir().unwrap();
        let done = job(&rehearsed, dir.path(), &[]).await;
        assert_eq!(done.exit, Exit::Done, "seed {seed}: {}", done.said);
        let summary = json(dir.path().join("summary.json"));
        let makespan = summary["makespan_s"].as_f64().unwrap();
        assert!(makespan >= floor - 0.001, "seed {seed}: {makespan} s is less than the floor {floor} s can be");
        assert!(makespan <= floor * 1.02, "seed {seed}: {makespan} s, floor {floor} s");
        let path = path(&summary);
        let order = ["cluster.machines", "cluster.nodes", "nfd.gpu-label", "gpu-operator.driver"];
        assert_eq!(path[..4], order, "seed {seed}: {path:?}");
        assert!(path.last().is_some_and(|last| last.starts_with("gpu-operator.burn")), "seed {seed}: {path:?}");
        let installation =
            ["nfd.csv", "nfd.install-plan", "nfd.operands", "gpu-operator.csv", "gpu-operator.install-plan"];
        assert!(!path.iter().any(|step| installation.contains(&step.as_str())), "seed {seed}: {path:?}");
    }
}

/// Every time fixed, so that a hand can add them up: the way of the one GPU node from the cloud to the end of its burn.
fn round(scenario: &mut Scenario) {
    let fixed = Dist::Fixed;
    let timings = &mut scenario.timings;
    timings.machine_provision = fixed(10.0);
    timings.node_boot = fixed(200.0);
    timings.node_ready = fixed(20.0);
    timings.pod_sandbox = fixed(1.0);
    timings.container_start = fixed(0.5);
    timings.container_ready = fixed(2.0);
    timings.nfd_label = fixed(1.0);
    timings.driver_build = fixed(100.0);
    timings.validation = fixed(1.0);
    timings.workload_validation = fixed(6.0);
    timings.device_plugin_register = fixed(1.0);
    timings.gfd_label = fixed(1.0);
    timings.burn_compile = fixed(20.0);
    let pulls = [
        ("nfd", 5.0),
        ("driver", 20.0),
        ("validator", 7.0),
        ("toolkit", 7.0),
        ("device-plugin", 5.0),
        ("dcgm", 9.0),
        ("dcgm-exporter", 9.0),
        ("gfd", 5.0),
        ("burn", 60.0),
    ];
    for (name, seconds) in pulls {
        scenario.images.get_mut(name).unwrap().pull = fixed(seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn the_floor_and_the_job_are_what_a_hand_adds_up() {
    let node = 10.0 + 200.0 + 20.0;
    let label = node + (1.0 + 5.0 + 0.5 + 2.0) + 1.0;
    let driver = label + (1.0 + 7.0 + 0.5 + 1.0) + (20.0 + 0.5 + 100.0);
    let toolkit = driver + 1.0 + (7.0 + 0.5 + 2.0);
    let announced: f64 = toolkit + 1.0 + (5.0 + 0.5 + 2.0) + 1.0;
    let cuda = toolkit + 1.0 + (0.5 + 6.0);
    let validated = (cuda + 0.5_f64).max(announced) + 6.0 + 0.5 + 2.0;
    let burnt = validated + (1.0 + 60.0 + 0.5 + 20.0) + 300.0;
    for seed in [1, 7] {
        let rehearsed = Rehearsed::seeded("default", &[], seed, round).await;
        assert!((rehearsed.floor(&FloorRequest::default()) - burnt).abs() < 0.001, "seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let done = job(&rehearsed, dir.path(), &[]).await;
        assert_eq!(done.exit, Exit::Done, "{}", done.said);
        let makespan = json(dir.path().join("summary.json"))["makespan_s"].as_f64().unwrap();
        assert!(makespan >= burnt && makespan <= burnt * 1.02, "seed {seed}: {makespan} s, by hand {burnt} s");
    }
}
