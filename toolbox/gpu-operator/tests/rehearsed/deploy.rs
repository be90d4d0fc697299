//! `gpu-operator deploy-from-operatorhub` on a rehearsed cluster.

use crate::support::{changes, done, run};
use tool_gpu_operator::{DeploySpec, UndeploySpec};
use toolbox_core::cluster::{Query, kinds};
use toolbox_core::engine::Exit;
use toolbox_testkit::Rehearsed;

fn asking(version: &str, channel: &str) -> DeploySpec {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    DeploySpec {
        wish: DeploySpec::wish(some(version), some(channel)).expect("the test asks for versions"),
        ..DeploySpec::default()
    }
}

#[tokio::test(start_paused = true)]
async fn each_version_goes_to_the_namespace_its_bundle_asks_for_and_away_again() {
    for (version, channel, namespace) in [
        ("1.8.2", "v1.8", "openshift-operators"),
        ("1.9.0", "v1.9", "nvidia-gpu-operator"),
        ("1.10.1", "", "nvidia-gpu-operator"),
        ("latest", "", "nvidia-gpu-operator"),
    ] {
        let rehearsed = Rehearsed::new("gpu-node", &[]).await;
        let ran = done(&rehearsed, asking(version, channel)).await;
        let report = ran.outcome.report.unwrap();
        assert_eq!(report.json["namespace"], namespace, "{version}");
        assert_eq!(report.json["cluster_policy"], "gpu-cluster-policy");
        let again = done(&rehearsed, asking(version, channel)).await;
        assert_eq!(changes(&again), Vec::<String>::new(), "{version}");

        let gone = done(&rehearsed, UndeploySpec::default()).await;
        assert!(!changes(&gone).is_empty());
        for kind in [&kinds::SUBSCRIPTION, &kinds::CSV] {
            let left = rehearsed.cluster.list(&Query::all(kind)).await.unwrap();
            assert!(left.is_empty(), "{version}: {left:?}");
        }
        let gone = done(&rehearsed, UndeploySpec::default()).await;
        assert_eq!(changes(&gone), Vec::<String>::new(), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_catalog_does_not_have_is_refused_before_anything_changes() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    for (version, channel, said) in [
        ("1.8.2", "v1.9", "version 1.8.2 is not in channel `v1.9`"),
        ("9.9.9", "", "version 9.9.9 is in none of its channels"),
        ("", "gpu-operator-certified", "has no channel `gpu-operator-certified`"),
    ] {
        let ran = run(&rehearsed, asking(version, channel)).await;
        assert_eq!(ran.outcome.exit, Exit::Configuration);
        assert_eq!(ran.why().cause, said);
        assert!(ran.why().next.contains("v1.8 (1.8.2)"), "{}", ran.why().next);
        assert_eq!(changes(&ran), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_changes_the_policy_and_a_second_run_changes_nothing() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let spec =
        DeploySpec { patch: Some(serde_json::json!({"spec": {"dcgm": {"enabled": false}}})), ..DeploySpec::default() };
    done(&rehearsed, spec.clone()).await;
    let policies = rehearsed.cluster.list(&Query::all(&kinds::CLUSTER_POLICY)).await.unwrap();
    assert_eq!(policies[0].flag("/spec/dcgm/enabled"), Some(false));
    let again = done(&rehearsed, spec).await;
    assert_eq!(changes(&again), Vec::<String>::new());
    let other =
        DeploySpec { patch: Some(serde_json::json!({"spec": {"dcgm": {"enabled": true}}})), ..DeploySpec::default() };
    let changed = done(&rehearsed, other).await;
    assert_eq!(changes(&changed).len(), 1, "{:?}", changes(&changed));
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_the_catalog_ends_with_its_object_and_cause() {
    for (fault, exit, object, code) in [
        (
            "catalog-not-ready",
            Exit::TimedOut,
            "CatalogSource/openshift-marketplace/certified-operators",
            "catalog-not-ready",
        ),
        (
            "package-missing",
            Exit::TimedOut,
            "CatalogSource/openshift-marketplace/certified-operators",
            "package-missing",
        ),
        ("second-operator-group", Exit::Failed, "Namespace/nvidia-gpu-operator", "second-operator-group"),
        (
            "resolution-failed",
            Exit::Failed,
            "Subscription/nvidia-gpu-operator/gpu-operator-certified",
            "resolution-failed",
        ),
        (
            "csv-failed",
            Exit::Failed,
            "ClusterServiceVersion/nvidia-gpu-operator/gpu-operator-certified.v1.11.0",
            "csv-failed",
        ),
    ] {
        let rehearsed = Rehearsed::new("gpu-node", &[fault]).await;
        let ran = run(&rehearsed, DeploySpec::default()).await;
        let why = ran.why();
        assert_eq!((ran.outcome.exit, why.code.as_ref()), (exit, code), "{fault}: {why}");
        assert!(why.object.to_string().starts_with(object), "{fault}: {why}");
        assert!(!why.next.is_empty(), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_of_the_api_server_neither_ends_nor_falsifies_an_installation() {
    for fault in ["api-restart", "expired-watch", "throttled"] {
        let rehearsed = Rehearsed::new("gpu-node", &[fault]).await;
        done(&rehearsed, DeploySpec::default()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_nobody_removes_stops_the_removal_before_the_operator_goes() {
    let rehearsed = Rehearsed::new("gpu-node", &["stuck-finalizer"]).await;
    done(&rehearsed, DeploySpec::default()).await;
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::TimedOut);
    assert!(
        ran.why()
            .to_string()
            .starts_with("ClusterPolicy/gpu-cluster-policy: is being deleted and is held by its finalizers"),
        "{}",
        ran.why()
    );
    let csvs = rehearsed.cluster.list(&Query::all(&kinds::CSV)).await.unwrap();
    assert_eq!(csvs.len(), 1);
    let stripped = UndeploySpec { strip_finalizers: true, ..UndeploySpec::default() };
    done(&rehearsed, stripped).await;
    assert!(rehearsed.cluster.list(&Query::all(&kinds::CSV)).await.unwrap().is_empty());
}
