//! `nfd deploy` on the simulated cluster.

use std::time::Duration;

use serde_json::json;
use tool_nfd::DeploySpec;
use toolbox_core::cluster::olm::Wish;
use toolbox_core::cluster::{MANAGED_BY, kinds};
use toolbox_core::engine::event::Ended;
use toolbox_core::engine::journal::Entry;
use toolbox_core::engine::{Exit, FailureVerdict, Plan};
use toolbox_core::{Verb, VerbEnv};
use toolbox_testkit::{Fault, FaultRule, Ran, Rehearsed};

const NS: &str = "openshift-nfd";
const CSV: &str = "nfd.4.11.0-202212070335";

fn plan(rehearsed: &Rehearsed, spec: DeploySpec) -> Plan {
    Box::new(spec).plan(&VerbEnv::new(rehearsed.cluster.clone())).expect("the verb has a plan")
}

async fn deploy(rehearsed: &Rehearsed) -> Ran {
    rehearsed.run(plan(rehearsed, DeploySpec::default())).await
}

#[tokio::test(start_paused = true)]
async fn nfd_is_installed_and_a_second_run_changes_nothing() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(
        ran.changed(),
        ["nfd.namespace", "nfd.operator-group", "nfd.subscription", "nfd.approve", "nfd.instance"]
    );
    assert_eq!(ran.answer(), "NFD 4.11.0-202212070335 in openshift-nfd");
    let csv = rehearsed.object(&kinds::CSV, Some(NS), CSV).await;
    assert_eq!(csv.text("/status/phase"), Some("Succeeded"));
    let subscription = rehearsed.object(&kinds::SUBSCRIPTION, Some(NS), "nfd").await;
    assert_eq!(subscription.text("/spec/channel"), Some("stable"));
    assert_eq!(subscription.text("/spec/startingCSV"), Some(CSV));
    let namespace = rehearsed.object(&kinds::NAMESPACE, None, NS).await;
    assert_eq!(namespace.label(MANAGED_BY), Some("tbx"));
    for file in ["nfd_packagemanifest.yml", "nfd_cr.json"] {
        assert!(ran.files.contains_key(file), "{file}");
    }
    assert!(ran.seconds < 120.0, "{}", ran.seconds);

    let again = deploy(&rehearsed).await;
    assert_eq!(again.outcome.exit, Exit::Done, "{:?}", again.outcome.why);
    assert_eq!(again.changed(), [""; 0]);
    assert_eq!(again.answer(), ran.answer());
}

#[tokio::test(start_paused = true)]
async fn taking_a_run_back_takes_the_csv_right_after_its_subscription() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let cluster = rehearsed.cluster.with_run_id("run-1");
    let plan = |spec: DeploySpec| Box::new(spec).plan(&VerbEnv::new(cluster.clone())).expect("the verb has a plan");
    let ran = rehearsed.run(plan(DeploySpec::default())).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    let made = |ran: &Ran| -> Vec<String> {
        let made = ran.journal.iter().rev().filter_map(|entry| match entry {
            Entry::Made { object, .. } if object.uid.is_some() => Some(object.kind.clone()),
            _ => None,
        });
        made.collect()
    };
    assert_eq!(
        made(&ran),
        ["NodeFeatureDiscovery", "Subscription", "ClusterServiceVersion", "Subscription", "OperatorGroup", "Namespace"]
    );
    // What another run made is not this one's to take back.
    let cluster = rehearsed.cluster.with_run_id("run-2");
    let again = Box::new(DeploySpec::default()).plan(&VerbEnv::new(cluster)).expect("the verb has a plan");
    let again = rehearsed.run(again).await;
    assert!(made(&again).is_empty(), "{:?}", again.journal);
}

#[tokio::test(start_paused = true)]
async fn a_preview_names_what_would_be_made() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let previews = rehearsed.preview(plan(&rehearsed, DeploySpec::default())).await;
    let would: Vec<&str> = previews.iter().flat_map(|one| &one.would).map(String::as_str).collect();
    assert_eq!(
        would,
        [
            "create Namespace openshift-nfd",
            "create OperatorGroup openshift-nfd/openshift-nfd-ci",
            "create Subscription openshift-nfd/nfd",
        ]
    );
    assert!(!rehearsed.has(&kinds::NAMESPACE, None, NS).await);
}

#[tokio::test(start_paused = true)]
async fn a_second_operator_group_is_never_made() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    rehearsed.somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})).await;
    rehearsed
        .somebody_creates(json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "openshift-nfd-7k9xz", "namespace": NS}, "spec": {"targetNamespaces": [NS]}}))
        .await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert!(matches!(ran.ended("nfd.operator-group"), Ended::AlreadySo { .. }));
    assert_eq!(
        rehearsed.all(&kinds::OPERATOR_GROUP).await.iter().filter(|group| group.namespace() == Some(NS)).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn two_groups_stop_it_before_anything_is_changed() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    rehearsed.somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})).await;
    for name in ["one", "two"] {
        rehearsed
            .somebody_creates(json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                "metadata": {"name": name, "namespace": NS}, "spec": {"targetNamespaces": [NS]}}))
            .await;
    }
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    assert_eq!(ran.why().code, "second-operator-group");
    assert!(ran.why().cause.contains("one, two"), "{}", ran.why());
    assert!(!rehearsed.has(&kinds::SUBSCRIPTION, Some(NS), "nfd").await);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_somebody_makes_right_after_ours_ends_the_wait() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        scenario.quirks.second_operator_group = vec![NS.to_owned()];
    })
    .await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Failed, "{:?}", ran.outcome.why);
    let why = ran.why();
    assert_eq!(why.code, "second-operator-group");
    assert_eq!(
        why.to_string(),
        "Namespace/openshift-nfd: 2 OperatorGroups in one namespace (openshift-nfd-ci, somebody-elses-group), so OLM installs nothing there"
    );
    assert!(ran.seconds < 1.5, "{}", ran.seconds);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_published_is_a_wrong_value_and_nothing_is_changed() {
    for (channel, version, code) in [(Some("5.0"), None, "unknown-channel"), (None, Some("9.9.9"), "unknown-version")] {
        let rehearsed = Rehearsed::new("default", &[]).await;
        let spec = DeploySpec {
            wish: Wish { channel: channel.map(str::to_owned), version: version.map(str::to_owned) },
            ..DeploySpec::default()
        };
        let ran = rehearsed.run(plan(&rehearsed, spec)).await;
        assert_eq!((ran.outcome.exit, ran.why().code.as_ref()), (Exit::Configuration, code));
        assert!(ran.why().next.contains("stable (4.11.0-202212070335)"), "{}", ran.why().next);
        assert!(!rehearsed.has(&kinds::NAMESPACE, None, NS).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_catalog_is_refused_with_those_there_are() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let spec = DeploySpec { catalog: "no-operators".to_owned(), ..DeploySpec::default() };
    let ran = rehearsed.run(plan(&rehearsed, spec)).await;
    assert_eq!(ran.outcome.exit, Exit::Configuration);
    assert_eq!(ran.why().next, "choose one with --catalog: certified-operators, redhat-operators");
    assert!(ran.seconds < 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_package_that_never_shows_up_is_an_infrastructure_flake() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        for catalog in &mut scenario.catalogs {
            catalog.packages.retain(|package| package.name != "nfd");
        }
    })
    .await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::TimedOut);
    let why = ran.why();
    assert_eq!((why.code.as_ref(), why.verdict), ("package-missing", FailureVerdict::Infrastructure));
    assert!(ran.files.contains_key("FLAKE"));
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_is_away_is_named() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        for catalog in &mut scenario.catalogs {
            "TRANSIENT_FAILURE".clone_into(&mut catalog.stuck_at);
        }
    })
    .await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::TimedOut);
    let why = ran.why();
    assert_eq!(why.code, "catalog-not-ready", "{why}");
    assert_eq!(why.object.to_string(), "CatalogSource/openshift-marketplace/redhat-operators");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_csv_is_found_before_the_first_change() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    deploy(&rehearsed).await;
    rehearsed.somebody_deletes(&kinds::SUBSCRIPTION, Some(NS), "nfd").await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.why().code, "orphan-csv", "{}", ran.why());
    assert!(
        ran.why().next.contains("kubectl delete clusterserviceversions.operators.coreos.com"),
        "{}",
        ran.why().next
    );
}

#[tokio::test(start_paused = true)]
async fn resolution_a_csv_and_a_bundle_that_fail_end_the_waits_early() {
    type Change = fn(&mut toolbox_testkit::Scenario);
    let cases: [(&str, Change); 3] = [
        ("resolution-failed", |scenario| "nfd".clone_into(&mut scenario.quirks.resolution_failure)),
        ("csv-failed", |scenario| "nfd".clone_into(&mut scenario.quirks.csv_failure)),
        ("bundle-unpack-failed", |scenario| "nfd".clone_into(&mut scenario.quirks.unpack_failure)),
    ];
    for (code, change) in cases {
        let rehearsed = Rehearsed::with("default", &[], change).await;
        let ran = deploy(&rehearsed).await;
        assert_eq!(ran.outcome.exit, Exit::Failed, "{code}: {:?}", ran.outcome.why);
        assert_eq!(ran.why().code, code, "{}", ran.why());
        assert!(ran.seconds < 700.0, "{code}: {}", ran.seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_of_the_workers_that_cannot_be_pulled_ends_the_wait() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        let image = scenario.images.get_mut("nfd").expect("the workers' image");
        "manifest unknown".clone_into(&mut image.trouble);
    })
    .await;
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Failed, "{:?}", ran.outcome.why);
    let why = ran.why();
    assert_eq!(why.object.kind, "Pod", "{why}");
    assert!(why.cause.contains("manifest unknown"), "{why}");
    assert!(matches!(ran.ended("nfd.operands"), Ended::Failed { .. }));
    assert!(ran.seconds < 400.0, "{}", ran.seconds);
}

#[tokio::test(start_paused = true)]
async fn a_package_server_that_is_down_for_minutes_is_waited_for() {
    let down = |minutes: u64| {
        let rule = FaultRule::new(Fault::Status(503)).path("packages.operators.coreos.com");
        rule.lasting(Duration::from_secs(60 * minutes))
    };
    let rehearsed = Rehearsed::new("default", &[]).await;
    rehearsed.world().api().faults().add(down(5));
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);

    let rehearsed = Rehearsed::new("default", &[]).await;
    rehearsed.world().api().faults().add(down(60));
    let ran = deploy(&rehearsed).await;
    assert_eq!(ran.outcome.exit, Exit::TimedOut, "{:?}", ran.outcome.why);
    let why = ran.why();
    assert_eq!(why.code, "package-server-away", "{why}");
    assert_eq!(why.object.to_string(), "APIService/v1.packages.operators.coreos.com");
    assert!((450.0..460.0).contains(&ran.seconds), "{}", ran.seconds);
}

#[tokio::test(start_paused = true)]
async fn trouble_with_the_api_does_not_end_the_waits() {
    for fault in ["api-restart", "expired-watch", "throttled"] {
        let rehearsed = Rehearsed::new("default", &[fault]).await;
        let ran = deploy(&rehearsed).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{fault}: {:?}", ran.outcome.why);
    }
}
