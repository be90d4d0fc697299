//! `cluster scale` on the simulated cluster.

mod sets;

use tool_cluster::ScaleSpec;
use toolbox_core::cluster::machines::{self, NAMESPACE};
use toolbox_core::cluster::{MANAGED_BY, kinds};
use toolbox_core::engine::event::Ended;
use toolbox_core::engine::{Exit, FailureVerdict, Plan};
use toolbox_core::{Verb, VerbEnv};
use toolbox_testkit::{Ran, Rehearsed};

pub(crate) fn plan(rehearsed: &Rehearsed, spec: ScaleSpec) -> Plan {
    Box::new(spec).plan(&VerbEnv::new(rehearsed.cluster.clone())).expect("the verb has a plan")
}

pub(crate) async fn scale(rehearsed: &Rehearsed, instance_type: &str, replicas: u32) -> Ran {
    rehearsed.run(plan(rehearsed, ScaleSpec::new(instance_type, replicas))).await
}

pub(crate) async fn replicas(rehearsed: &Rehearsed, set: &str) -> i64 {
    machines::replicas(&rehearsed.object(&kinds::MACHINE_SET, Some(NAMESPACE), set).await)
}

pub(crate) const DERIVED_A: &str = "demo-x7k2p-worker-a--g4dn-xlarge";
const DERIVED_B: &str = "demo-x7k2p-worker-b--g4dn-xlarge";

#[tokio::test(start_paused = true)]
async fn a_gpu_node_is_made_and_a_second_run_changes_nothing() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(ran.changed(), ["cluster.scale"]);
    let set = rehearsed.object(&kinds::MACHINE_SET, Some(NAMESPACE), DERIVED_A).await;
    assert_eq!(machines::replicas(&set), 1);
    assert_eq!(set.label(MANAGED_BY), Some("tbx"));
    let node = rehearsed.object(&kinds::NODE, None, ran.answer()).await;
    assert_eq!(node.label("node.kubernetes.io/instance-type"), Some("g4dn.xlarge"));
    assert!((240.0..400.0).contains(&ran.seconds), "{}", ran.seconds);
    assert!(ran.waited_for("cluster.machines").contains(&"machine-provisioning".to_owned()));
    assert!(ran.waited_for("cluster.nodes").contains(&"node-absent".to_owned()));

    let again = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(again.outcome.exit, Exit::Done);
    assert_eq!(again.changed(), [""; 0]);
    assert_eq!(again.answer(), ran.answer());
    assert!(again.seconds < 1.0, "{}", again.seconds);
}

#[tokio::test(start_paused = true)]
async fn a_preview_says_what_would_be_made_and_changes_nothing() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let previews = rehearsed.preview(plan(&rehearsed, ScaleSpec::new("g4dn.xlarge", 1))).await;
    let would: Vec<&String> = previews.iter().flat_map(|preview| &preview.would).collect();
    assert!(would[0].contains(DERIVED_A), "{would:?}");
    assert!(!rehearsed.has(&kinds::MACHINE_SET, Some(NAMESPACE), DERIVED_A).await);
}

#[tokio::test(start_paused = true)]
async fn back_to_none_removes_the_machines() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 0).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(ran.answer(), "no machine of type g4dn.xlarge");
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-a").await, 0);
    let left = rehearsed.all(&kinds::MACHINE).await;
    assert!(left.iter().all(|machine| machines::set_of(machine) != Some("demo-x7k2p-gpu-a")));
}

#[tokio::test(start_paused = true)]
async fn an_existing_set_of_the_type_is_used() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 2).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-a").await, 2);
    assert_eq!(rehearsed.all(&kinds::MACHINE_SET).await.len(), 4);
    assert_eq!(ran.answer().lines().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn azure_has_another_size_field() {
    let rehearsed = Rehearsed::new("azure", &[]).await;
    let ran = scale(&rehearsed, "Standard_NC4as_T4_v3", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    let name = "demo-x7k2p-worker-testregion1--standard-nc4as-t4-v3";
    assert_eq!(replicas(&rehearsed, name).await, 1);
}

#[tokio::test(start_paused = true)]
async fn quota_ends_the_wait_at_once_and_no_other_zone_is_tried() {
    let rehearsed = Rehearsed::new("default", &["quota-exhausted"]).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    let why = ran.why();
    assert_eq!((why.code.as_ref(), why.verdict), ("quota-exhausted", FailureVerdict::Capacity));
    assert!(why.to_string().starts_with("Machine/openshift-machine-api/demo-x7k2p-worker-a--g4dn-xlarge-"), "{why}");
    assert!(why.next.contains("quota"), "{}", why.next);
    assert!(ran.seconds < 60.0, "{}", ran.seconds);
    assert!(ran.files.contains_key(&format!("machines_{DERIVED_A}.yml")));
    // Nothing is taken away from the one who wants to look at it.
    assert_eq!(replicas(&rehearsed, DERIVED_A).await, 1);
    assert!(!rehearsed.has(&kinds::MACHINE_SET, Some(NAMESPACE), DERIVED_B).await);
    assert!(matches!(ran.ended("cluster.nodes"), Ended::NotRun { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_next_zone_is_tried_when_one_has_none_or_does_not_sell_it() {
    for fault in ["zone-out-of-stock", "type-not-offered"] {
        let rehearsed = Rehearsed::new("default", &[fault]).await;
        let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{fault}: {:?}", ran.outcome.why);
        assert_eq!(replicas(&rehearsed, DERIVED_A).await, 0, "{fault}");
        assert_eq!(replicas(&rehearsed, DERIVED_B).await, 1, "{fault}");
        let note = ran.notes().into_iter().find(|note| note.contains("trying zone us-test-1b"));
        assert!(note.is_some_and(|note| note.contains("zone us-test-1a")), "{fault}: {:?}", ran.notes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_failed_can_be_scaled_away() {
    let rehearsed = Rehearsed::new("default", &["zone-out-of-stock"]).await;
    let spec = ScaleSpec { base: Some("demo-x7k2p-worker-a".to_owned()), ..ScaleSpec::new("g4dn.xlarge", 1) };
    let ran = rehearsed.run(plan(&rehearsed, spec)).await;
    assert_eq!(ran.why().code, "out-of-stock");
    let none = scale(&rehearsed, "g4dn.xlarge", 0).await;
    assert_eq!(none.outcome.exit, Exit::Done, "{:?}", none.outcome.why);
    assert_eq!(replicas(&rehearsed, DERIVED_A).await, 0);
    let left = rehearsed.all(&kinds::MACHINE).await;
    assert!(left.iter().all(|machine| machines::set_of(machine) != Some(DERIVED_A)));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_elses_set_keeps_is_not_asked_for_again_in_the_next_zone() {
    let rehearsed = Rehearsed::with("gpu-node", &[], |scenario| {
        let kind = scenario.instance_types.get_mut("g4dn.xlarge").expect("the type is sold");
        kind.zones.insert("us-test-1a".to_owned(), 1);
    })
    .await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 3).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-a").await, 1);
    assert_eq!(replicas(&rehearsed, DERIVED_B).await, 2);
    assert_eq!(ran.answer().lines().count(), 3, "{}", ran.answer());
}

#[tokio::test(start_paused = true)]
async fn with_force_the_other_sets_are_emptied_only_after_the_new_machines_are_there() {
    let two_sets = |stock: u32| {
        move |scenario: &mut toolbox_testkit::Scenario| {
            let mut other = scenario.machine_sets.last().expect("the scenario has sets").clone();
            "demo-x7k2p-gpu-b".clone_into(&mut other.name);
            "us-test-1b".clone_into(&mut other.zone);
            scenario.machine_sets.push(other);
            let kind = scenario.instance_types.get_mut("g4dn.xlarge").expect("the type is sold");
            for zone in ["us-test-1a", "us-test-1b", "us-test-1c"] {
                kind.zones.insert(zone.to_owned(), stock);
            }
        }
    };
    let forced = ScaleSpec { force: true, ..ScaleSpec::new("g4dn.xlarge", 3) };
    let rehearsed = Rehearsed::with("gpu-node", &[], two_sets(9)).await;
    let ran = rehearsed.run(plan(&rehearsed, forced.clone())).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-a").await, 3);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-b").await, 0);
    // No zone has more than what is there: nothing of it is lost.
    let rehearsed = Rehearsed::with("gpu-node", &[], two_sets(1)).await;
    let ran = rehearsed.run(plan(&rehearsed, ScaleSpec { replicas: 6, ..forced })).await;
    assert_eq!(ran.why().code, "out-of-stock");
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-a").await, 1);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-b").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_base_that_was_asked_for_is_the_only_one_tried() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let spec = ScaleSpec { base: Some("demo-x7k2p-worker-a".to_owned()), ..ScaleSpec::new("p2.xlarge", 1) };
    let ran = rehearsed.run(plan(&rehearsed, spec)).await;
    let why = ran.why();
    assert_eq!(why.code, "type-not-offered");
    assert_eq!(ran.outcome.exit, Exit::Configuration);
    // Without it, the zone that sells the type is found.
    let rehearsed = Rehearsed::new("default", &[]).await;
    let ran = scale(&rehearsed, "p2.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-worker-b--p2-xlarge").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_type_that_nobody_sells_is_a_wrong_value() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let ran = scale(&rehearsed, "g4dn.xlrage", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Configuration);
    assert_eq!(ran.why().code, "unknown-instance-type");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_never_ready_is_named_when_the_time_is_up() {
    let rehearsed = Rehearsed::new("default", &["node-not-ready"]).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::TimedOut);
    let why = ran.why();
    assert_eq!(why.object.kind, "Node");
    assert!(why.cause.starts_with("is not Ready: KubeletNotReady"), "{}", why.cause);
    assert!(!why.next.is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_machine_api_is_said_at_once_and_none_of_nothing_is_done() {
    let rehearsed = Rehearsed::with("no-machine-api", &[], |scenario| scenario.openshift.clear()).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    assert_eq!(ran.why().code, "no-machine-api");
    assert!(ran.seconds < 1.0);
    let none = scale(&rehearsed, "g4dn.xlarge", 0).await;
    assert_eq!(none.outcome.exit, Exit::Done);
}

#[tokio::test(start_paused = true)]
async fn no_machine_set_is_another_answer() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| scenario.machine_sets.clear()).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    assert_eq!(ran.why().code, "no-machine-sets");
    assert!(ran.seconds < 1.0);
    let none = scale(&rehearsed, "g4dn.xlarge", 0).await;
    assert_eq!((none.outcome.exit, none.changed().len()), (Exit::Done, 0));
}

#[tokio::test(start_paused = true)]
async fn trouble_with_the_api_does_not_end_the_waits() {
    for fault in ["api-restart", "expired-watch", "throttled"] {
        let rehearsed = Rehearsed::new("default", &[fault]).await;
        let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{fault}: {:?}", ran.outcome.why);
    }
}
