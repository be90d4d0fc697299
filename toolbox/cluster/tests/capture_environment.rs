//! `cluster capture-environment` on simulated clusters.

use tool_cluster::CaptureEnvironmentSpec;
use toolbox_core::engine::Exit;
use toolbox_core::{Verb, VerbEnv};
use toolbox_testkit::{Ran, Rehearsed};

async fn capture(rehearsed: &Rehearsed) -> Ran {
    let spec = Box::new(CaptureEnvironmentSpec);
    rehearsed.run(spec.plan(&VerbEnv::new(rehearsed.cluster.clone())).expect("the verb has a plan")).await
}

#[tokio::test(start_paused = true)]
async fn version_nodes_and_machines_are_saved() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let ran = capture(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Done);
    assert_eq!(ran.files["ocp.version"], b"4.11.27\n");
    let own = String::from_utf8_lossy(&ran.files["ci_artifact.git_version"]).into_owned();
    assert!(own.starts_with("tbx-0."), "{own}");
    for file in [
        "ocp_version.yml",
        "ocp_clusterversion.yml",
        "nodes.yaml",
        "nodes.status",
        "machines.yaml",
        "machinesets.status",
    ] {
        assert!(ran.files.contains_key(file), "{file}");
    }
    let status = String::from_utf8_lossy(&ran.files["nodes.status"]).into_owned();
    assert_eq!(status.lines().count(), 6, "{status}");
    assert!(status.contains("Ready\tm5.xlarge"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn what_the_cluster_does_not_have_is_left_out_and_named() {
    let rehearsed = Rehearsed::with("no-machine-api", &[], |scenario| scenario.openshift.clear()).await;
    let ran = capture(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Done);
    assert!(ran.files.contains_key("nodes.yaml"));
    assert!(!ran.files.contains_key("machines.yaml"));
    assert!(ran.notes().iter().any(|note| note.starts_with("not saved: machines")), "{:?}", ran.notes());
}
