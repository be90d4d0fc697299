//! Where the operator goes and is looked for, and whose objects are left alone.

use crate::support::{changes, done, file, run, run_in, with_nfd};
use serde_json::json;
use tool_gpu_operator::{CaptureSpec, DeploySpec, UndeploySpec, VersionSpec, WaitSpec};
use toolbox_core::cluster::kinds;
use toolbox_core::engine::Exit;
use toolbox_core::{EnvMap, Verb, VerbEnv};
use toolbox_testkit::Rehearsed;

fn asking(version: &str, namespace: &str) -> DeploySpec {
    let wish = DeploySpec::wish(Some(version.to_owned()), None).expect("a version");
    DeploySpec { wish, namespace: Some(namespace.to_owned()), ..DeploySpec::default() }
}

/// The version to be installed says which scopes it supports.
#[tokio::test(start_paused = true)]
async fn a_scope_that_the_version_does_not_support_is_refused_before_anything_changes() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let global = run(&rehearsed, asking("1.11.0", "openshift-operators")).await;
    rehearsed
        .somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-gpu"}}))
        .await;
    rehearsed
        .somebody_creates(json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "everywhere", "namespace": "team-gpu"}, "spec": {}}))
        .await;
    let grouped = run(&rehearsed, asking("1.11.0", "team-gpu")).await;
    for (ran, code, object) in [
        (global, "no-fitting-scope", "PackageManifest/openshift-marketplace/gpu-operator-certified"),
        (grouped, "operator-group-mismatch", "OperatorGroup/team-gpu/everywhere"),
    ] {
        let why = ran.why();
        assert_eq!((ran.outcome.exit, why.code.as_ref()), (Exit::Failed, code), "{why}");
        assert_eq!(why.object.to_string(), object);
        assert!(why.cause.contains("every namespace") && why.cause.contains("OwnNamespace"), "{why}");
        assert!(why.next.contains("--namespace"), "{}", why.next);
        assert_eq!(changes(&ran), Vec::<String>::new());
    }
    assert!(rehearsed.all(&kinds::SUBSCRIPTION).await.is_empty());
}

/// The cluster's own group serves openshift-operators, and a second one would stop everybody's operators there.
#[tokio::test(start_paused = true)]
async fn no_group_is_made_where_the_cluster_has_its_own() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    done(&rehearsed, asking("1.8.2", "openshift-operators")).await;
    let groups = rehearsed.all(&kinds::OPERATOR_GROUP).await;
    let there: Vec<&str> = groups
        .iter()
        .filter(|group| group.namespace() == Some("openshift-operators"))
        .map(toolbox_core::cluster::Object::name)
        .collect();
    assert_eq!(there, ["global-operators"]);
}

#[tokio::test(start_paused = true)]
async fn the_environment_names_the_namespace_for_every_verb() {
    let variables = [("GPU_OPERATOR_NAMESPACE", "team-gpu")];
    let rehearsed = with_nfd(Rehearsed::new("gpu-node", &[]).await).await;
    let deployed = run_in(&rehearsed, DeploySpec::default(), &variables).await;
    assert_eq!(deployed.outcome.exit, Exit::Done, "{:?}", deployed.outcome.why);
    assert!(rehearsed.has(&kinds::SUBSCRIPTION, Some("team-gpu"), "gpu-operator-certified").await);
    let ready = run_in(&rehearsed, WaitSpec::default(), &variables).await;
    assert_eq!(ready.outcome.exit, Exit::Done, "{:?}", ready.outcome.why);
    assert_eq!(file(&ready, "gpu_operator.version"), "1.11.0\n");
    let version = run_in(&rehearsed, VersionSpec::default(), &variables).await;
    assert_eq!(file(&version, "gpu_operator.version"), "1.11.0\n");
    let gone = run_in(&rehearsed, UndeploySpec::default(), &variables).await;
    assert_eq!(gone.outcome.exit, Exit::Done, "{:?}", gone.outcome.why);
    assert!(rehearsed.all(&kinds::SUBSCRIPTION).await.iter().all(|one| one.namespace() != Some("team-gpu")));
    // A flag wins, and a word that can be no namespace is a wrong configuration.
    let env = VerbEnv::new(rehearsed.cluster.clone()).with_env(EnvMap::new([("GPU_OPERATOR_NAMESPACE", "Team_GPU")]));
    let Err(why) = Box::new(DeploySpec::default()).plan(&env) else { panic!("it is taken") };
    assert_eq!((why.exit, why.object.to_string().as_str()), (Exit::Configuration, "variable/GPU_OPERATOR_NAMESPACE"));
    assert!(Box::new(asking("1.11.0", "team-gpu")).plan(&env).is_ok());
}

/// A kind of the same short name that another product brings, with one object of it.
async fn theirs(rehearsed: &Rehearsed, group: &str, kind: &str, plural: &str, namespaced: bool) -> String {
    let name = format!("{plural}.{group}");
    rehearsed
        .somebody_creates(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {
                "group": group, "scope": if namespaced { "Namespaced" } else { "Cluster" },
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        }))
        .await;
    name
}

/// `subscription` and `clusterpolicy` also mean other products' kinds.
#[tokio::test(start_paused = true)]
async fn other_products_kinds_of_the_same_name_are_neither_captured_nor_removed() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let kinds_of_others = [
        theirs(&rehearsed, "messaging.knative.dev", "Subscription", "subscriptions", true).await,
        theirs(&rehearsed, "kyverno.io", "ClusterPolicy", "clusterpolicies", false).await,
    ];
    rehearsed.clock.sleep(std::time::Duration::from_secs(5)).await;
    for (path, object) in [
        (
            "/apis/messaging.knative.dev/v1/namespaces/default/subscriptions",
            json!({"apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
                "metadata": {"name": "gpu-operator-certified", "namespace": "default"}, "spec": {"name": "gpu-operator-certified"}}),
        ),
        (
            "/apis/kyverno.io/v1/clusterpolicies",
            json!({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu-cluster-policy"}, "spec": {}}),
        ),
    ] {
        rehearsed.somebody_posts(path, object).await;
    }
    done(&rehearsed, DeploySpec::default()).await;
    let captured = done(&rehearsed, CaptureSpec::default()).await;
    for (name, content) in &captured.files {
        let text = String::from_utf8_lossy(content);
        assert!(!text.contains("messaging.knative.dev") && !text.contains("kyverno.io"), "{name}");
    }
    done(&rehearsed, UndeploySpec::default()).await;
    let left = rehearsed.snapshot();
    for key in ["Subscription/default/gpu-operator-certified", "ClusterPolicy//gpu-cluster-policy"] {
        assert!(left.contains_key(key), "{key} is gone");
    }
    for name in kinds_of_others {
        assert!(rehearsed.has(&kinds::CRD, None, &name).await, "{name} is gone");
    }
    assert!(!rehearsed.has(&kinds::CRD, None, "clusterpolicies.nvidia.com").await);
}
