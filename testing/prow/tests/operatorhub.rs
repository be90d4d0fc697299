//! The whole job on a rehearsed cluster.

use testing_prow::OperatorHubFlow;
use toolbox_core::engine::Exit;
use toolbox_core::engine::event::Ended;
use toolbox_core::{Verb, VerbEnv};
use toolbox_rehearsal::FloorRequest;
use toolbox_testkit::{Ran, Rehearsed};

async fn job(rehearsed: &Rehearsed) -> Ran {
    let flow = OperatorHubFlow::new(None, None).expect("the flow has no arguments");
    let plan = Box::new(flow).plan(&VerbEnv::new(rehearsed.cluster.clone()));
    rehearsed.run(plan.expect("the flow has a plan")).await
}

/// Every step with its end, for messages.
fn story(ran: &Ran) -> String {
    let steps = ran.outcome.steps.iter();
    let lines: Vec<String> =
        steps.map(|step| format!("{:>8.1} {} {:?}", ran.ended_at(&step.id), step.id, step.ended)).collect();
    lines.join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_job_takes_no_longer_than_the_cluster_itself_and_changes_nothing_when_run_again() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let request = FloorRequest {
        instance_type: "g4dn.xlarge".to_owned(),
        replicas: 1,
        burn_seconds: 300,
        gpu_package: "gpu-operator-certified".to_owned(),
        nfd_package: "nfd".to_owned(),
    };
    let floor = rehearsed.floor(&request);
    let done = job(&rehearsed).await;
    assert_eq!(done.outcome.exit, Exit::Done, "{:?}", done.outcome.why);
    assert!(done.seconds <= floor * 1.02, "{} s, floor {floor} s\n{}", done.seconds, story(&done));
    let machines = done.ended_at("gpu-operator.driver");
    assert!(done.ended_at("gpu-operator.cluster-policy") < machines, "the installation is off the critical path");

    assert_eq!(done.files["operator.version"], b"1.11.0\n");
    for file in
        ["ocp.version", "ci_artifact.git_version", "custom-prow-metadata.json", "gpu_operator.version", "capture.json"]
    {
        assert!(done.files.contains_key(file), "{file}");
    }

    let again = job(&rehearsed).await;
    assert_eq!(again.outcome.exit, Exit::Done, "{:?}", again.outcome.why);
    let changed: Vec<&str> = again
        .outcome
        .steps
        .iter()
        .filter(|step| matches!(step.ended, Ended::Changed { .. }) && !step.id.starts_with("gpu-operator.burn"))
        .map(|step| step.id.as_str())
        .collect();
    assert_eq!(changed, Vec::<&str>::new());
    assert!(matches!(again.ended("cluster.machines"), Ended::Skipped { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_does_not_fail_the_job() {
    for fault in ["type-not-offered", "throttled"] {
        let done = job(&Rehearsed::new("default", &[fault]).await).await;
        assert_eq!(done.outcome.exit, Exit::Done, "{fault}: {:?}\n{}", done.outcome.why, story(&done));
    }
}
