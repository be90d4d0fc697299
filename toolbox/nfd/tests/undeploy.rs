//! `nfd undeploy` on the simulated cluster.

use serde_json::json;
use tool_nfd::{DeploySpec, UndeploySpec};
use toolbox_core::cluster::kinds;
use toolbox_core::cluster::nodes::NFD_PREFIX;
use toolbox_core::engine::Exit;
use toolbox_core::{Verb, VerbEnv};
use toolbox_testkit::{Ran, Rehearsed};

const NS: &str = "openshift-nfd";

async fn run(rehearsed: &Rehearsed, verb: impl Verb) -> Ran {
    let plan = Box::new(verb).plan(&VerbEnv::new(rehearsed.cluster.clone())).expect("the verb has a plan");
    rehearsed.run(plan).await
}

async fn labelled(rehearsed: &Rehearsed) -> usize {
    let nodes = rehearsed.all(&kinds::NODE).await;
    nodes.iter().filter(|node| node.labels().keys().any(|key| key.starts_with(NFD_PREFIX))).count()
}

/// Somebody takes the operator away and leaves what it served.
async fn lose_the_operator(rehearsed: &Rehearsed) {
    for kind in [&kinds::SUBSCRIPTION, &kinds::CSV] {
        for object in rehearsed.all(kind).await.iter().filter(|object| object.namespace() == Some(NS)) {
            rehearsed.somebody_deletes(kind, Some(NS), object.name()).await;
        }
    }
    let operator = [("ClusterServiceVersion", "nfd."), ("Deployment", "nfd-controller"), ("Pod", "nfd-controller")];
    let operator = operator.map(|(kind, name)| format!("{kind}/{NS}/{name}"));
    let gone = |key: &String| operator.iter().all(|one| !key.starts_with(one));
    let left = rehearsed.until(std::time::Duration::from_secs(120), |now| now.keys().all(gone)).await;
    assert!(left.keys().all(gone), "{:?}", left.keys());
}

#[tokio::test(start_paused = true)]
async fn everything_goes_in_order_and_a_second_run_finds_nothing() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let deployed = run(&rehearsed, DeploySpec::default()).await;
    assert_eq!(deployed.outcome.exit, Exit::Done, "{:?}", deployed.outcome.why);
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(ran.answer(), "NFD is removed");
    for kind in [&kinds::SUBSCRIPTION, &kinds::CSV, &kinds::NODE_FEATURE_DISCOVERY, &kinds::INSTALL_PLAN] {
        assert!(rehearsed.all(kind).await.is_empty(), "{kind:?}");
    }
    assert!(!rehearsed.has(&kinds::NAMESPACE, None, NS).await);
    assert!(!rehearsed.has(&kinds::CRD, None, "nodefeaturediscoveries.nfd.openshift.io").await);

    let again = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(again.outcome.exit, Exit::Done, "{:?}", again.outcome.why);
    assert_eq!(again.changed(), [""; 0]);
    assert_eq!(again.answer(), "NFD was not installed");
}

#[tokio::test(start_paused = true)]
async fn labels_go_when_asked_and_stay_gone() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    run(&rehearsed, DeploySpec::default()).await;
    rehearsed.clock.sleep(std::time::Duration::from_secs(60)).await;
    assert!(labelled(&rehearsed).await > 0);
    let spec = UndeploySpec { remove_labels: true, ..UndeploySpec::default() };
    let ran = run(&rehearsed, spec).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    rehearsed.clock.sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(labelled(&rehearsed).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_somebody_else_stays_and_is_named() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    rehearsed.somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})).await;
    run(&rehearsed, DeploySpec::default()).await;
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert!(rehearsed.has(&kinds::NAMESPACE, None, NS).await);
    assert!(
        ran.answer().contains("stays: Namespace openshift-nfd, which this program did not make"),
        "{}",
        ran.answer()
    );
    assert!(rehearsed.all(&kinds::OPERATOR_GROUP).await.iter().all(|group| group.namespace() != Some(NS)));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_nobody_removes_stops_it_before_the_operator_goes() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    run(&rehearsed, DeploySpec::default()).await;
    let finalizer = json!({"metadata": {"finalizers": ["example.test/cleanup"]}});
    rehearsed.somebody_changes(&kinds::NODE_FEATURE_DISCOVERY, Some(NS), "nfd-instance", finalizer).await;
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::TimedOut);
    let why = ran.why();
    assert_eq!(why.object.kind, "NodeFeatureDiscovery");
    assert!(why.cause.contains("finalizer"), "{why}");
    assert!(why.next.contains("--strip-finalizers"), "{}", why.next);
    assert_eq!(rehearsed.all(&kinds::SUBSCRIPTION).await.len(), 1);
    assert_eq!(rehearsed.all(&kinds::CSV).await.len(), 1);
    let spec = UndeploySpec { strip_finalizers: true, ..UndeploySpec::default() };
    let ran = run(&rehearsed, spec).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert!(rehearsed.all(&kinds::CSV).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_the_operator_a_finalizer_is_explained_at_once() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    run(&rehearsed, DeploySpec::default()).await;
    let finalizer = json!({"metadata": {"finalizers": ["example.test/cleanup"]}});
    rehearsed.somebody_changes(&kinds::NODE_FEATURE_DISCOVERY, Some(NS), "nfd-instance", finalizer).await;
    lose_the_operator(&rehearsed).await;
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::CleanUp, "{:?}", ran.outcome.why);
    assert!(ran.seconds < 2.0, "{}", ran.seconds);
    let why = ran.why();
    assert_eq!(why.code, "operator-gone");
    assert!(why.cause.contains("example.test/cleanup"), "{why}");
    let spec = UndeploySpec { strip_finalizers: true, ..UndeploySpec::default() };
    let ran = run(&rehearsed, spec).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert!(rehearsed.all(&kinds::NODE_FEATURE_DISCOVERY).await.is_empty());
}

fn theirs(namespace: &str) -> serde_json::Value {
    json!({"apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureDiscovery",
        "metadata": {"name": "theirs", "namespace": namespace}, "spec": {}})
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_the_operator_does_not_serve_stays_with_its_kind() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    run(&rehearsed, DeploySpec::default()).await;
    rehearsed.somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})).await;
    rehearsed.somebody_creates(theirs("team")).await;
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    let left = rehearsed.all(&kinds::NODE_FEATURE_DISCOVERY).await;
    assert_eq!(left.iter().map(toolbox_core::cluster::Object::name).collect::<Vec<_>>(), ["theirs"]);
    assert!(rehearsed.has(&kinds::CRD, None, "nodefeaturediscoveries.nfd.openshift.io").await);
    let answer = ran.answer();
    assert!(answer.contains("stays: NodeFeatureDiscovery/team/theirs, which the operator does not serve"), "{answer}");
    assert!(
        answer.contains("CustomResourceDefinition nodefeaturediscoveries.nfd.openshift.io, of which objects stay"),
        "{answer}"
    );
    assert!(rehearsed.all(&kinds::CSV).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_an_operator_only_what_this_program_made_goes() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    run(&rehearsed, DeploySpec::default()).await;
    rehearsed.somebody_creates(theirs(NS)).await;
    lose_the_operator(&rehearsed).await;
    let ran = run(&rehearsed, UndeploySpec::default()).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert!(rehearsed.has(&kinds::NODE_FEATURE_DISCOVERY, Some(NS), "theirs").await);
    assert!(!rehearsed.has(&kinds::NODE_FEATURE_DISCOVERY, Some(NS), "nfd-instance").await);
    assert!(rehearsed.has(&kinds::CRD, None, "nodefeaturediscoveries.nfd.openshift.io").await);
    assert!(ran.answer().contains("theirs, as the operator is not installed"), "{}", ran.answer());
}
