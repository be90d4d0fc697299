//! Faults with a moment and an object of their own.

use std::time::Duration;

use toolbox_rehearsal::{Scenario, World};

use crate::support::*;

const GPU: &str = "g4dn.xlarge";

async fn started(text: &str) -> World {
    World::start(Scenario::from_yaml("mine.yaml", text).unwrap(), 1, clock()).await.unwrap()
}

async fn first_phase_that_stays(world: &World, set: &str) -> String {
    let set = scale(world, set, GPU, 1).await;
    let (_, machine) = until_any(world, MACHINE, MACHINES, |machine| {
        machine["metadata"]["name"].as_str().unwrap().starts_with(&set)
            && matches!(phase(machine), "Failed" | "Provisioned")
    })
    .await;
    phase(&machine).to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_not_there_before_its_moment() {
    let world = started("faults: [{name: quota-exhausted, at: 100}]\n").await;
    assert_eq!(first_phase_that_stays(&world, "demo-x7k2p-worker-a").await, "Provisioned");
    world.api().clock().sleep(Duration::from_secs(100)).await;
    assert_eq!(first_phase_that_stays(&world, "demo-x7k2p-worker-b").await, "Failed");
}

#[tokio::test(start_paused = true)]
async fn a_fault_can_wait_for_a_step_or_a_reason() {
    let world = started("faults: [{name: quota-exhausted, when: a.step}, {name: csv-failed, when: no luck}]\n").await;
    let witness = world.witness();
    witness.step_started("a.step.more");
    assert_eq!(witness.not_struck().len(), 2);
    assert_eq!(first_phase_that_stays(&world, "demo-x7k2p-worker-a").await, "Provisioned");
    witness.step_started("a.step");
    assert_eq!(first_phase_that_stays(&world, "demo-x7k2p-worker-b").await, "Failed");
    witness.waits_because("Pod/a: has no luck today");
    assert_eq!(witness.not_struck(), []);
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_about_what_it_names() {
    let world = started("faults: [{name: zone-out-of-stock, on: us-test-1b}]\n").await;
    assert_eq!(first_phase_that_stays(&world, "demo-x7k2p-worker-a").await, "Provisioned");
    assert_eq!(first_phase_that_stays(&world, "demo-x7k2p-worker-b").await, "Failed");

    let world = started("faults: [{name: node-not-ready, on: us-test-1b}]\n").await;
    for (set, zone) in [("demo-x7k2p-worker-a", "us-test-1a"), ("demo-x7k2p-worker-b", "us-test-1b")] {
        scale(&world, set, GPU, 1).await;
        until_any(&world, NODE, "", |node| {
            label(node, "topology.kubernetes.io/zone") == Some(zone)
                && label(node, "node.kubernetes.io/instance-type") == Some(GPU)
        })
        .await;
    }
    world.api().clock().sleep(Duration::from_secs(120)).await;
    for node in list(&world, NODE, "").await {
        let sick = label(&node, "topology.kubernetes.io/zone") == Some("us-test-1b")
            && label(&node, "node.kubernetes.io/instance-type") == Some(GPU);
        assert_eq!(is_true(&node, "Ready"), !sick, "{}", node["metadata"]["name"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_was_ready_can_be_lost() {
    let world = started("faults: [{name: catalog-not-ready, at: 60, on: redhat-operators}]\n").await;
    let state = |catalog: &serde_json::Value| catalog["status"]["connectionState"]["lastObservedState"].clone();
    let ready = get(&world, CATALOG, "openshift-marketplace", "redhat-operators").await.unwrap();
    assert_eq!(state(&ready), "READY");
    let (at, _) = until(&world, CATALOG, "openshift-marketplace", "redhat-operators", |catalog| {
        state(catalog) == "TRANSIENT_FAILURE"
    })
    .await;
    assert!(at >= 60.0, "{at}");
    let other = get(&world, CATALOG, "openshift-marketplace", "certified-operators").await.unwrap();
    assert_eq!(state(&other), "READY");
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_api_strikes_at_the_moment_that_is_said() {
    let world = started("faults: [{name: expired-watch, at: 30}, {name: api-restart, at: 40}]\n").await;
    world.api().clock().sleep(Duration::from_secs(39)).await;
    assert!(get(&world, NODE, "", "nobody").await.is_none());
    world.api().clock().sleep(Duration::from_secs(2)).await;
    assert!(api(&world, NODE, "").get_opt("nobody").await.is_err());
    world.api().clock().sleep(Duration::from_secs(30)).await;
    assert!(get(&world, NODE, "", "nobody").await.is_none());
}
