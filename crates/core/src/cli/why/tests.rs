use std::time::Duration;

use toolbox_cluster::ClusterInfo;
use toolbox_engine::Clock;
use toolbox_rehearsal::{Scenario, World};

use super::*;

const SCENARIO: &str = r#"
images:
  broken: {reference: "quay.io/demo/broken:1", pull: 1, trouble: "manifest unknown: manifest unknown"}
objects:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: default}
  spec:
    replicas: 1
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers: [{name: web, image: "quay.io/demo/broken:1"}]
"#;

async fn asked(seconds: u64, object: &str) -> Result<String, Why> {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let scenario = Scenario::from_yaml("test", SCENARIO).unwrap();
    let world = World::start(scenario, 0, clock.clone()).await.unwrap();
    let info = ClusterInfo { namespace: "default".into(), ..ClusterInfo::default() };
    let cluster = Cluster::from_client(world.client(), info, clock.clone());
    clock.sleep(Duration::from_secs(seconds)).await;
    let args = WhyArgs { object: object.to_owned(), namespace: None };
    why(&cluster, &args, Paint(false)).await.map(|report| report.text)
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_explained_by_the_pod_that_cannot_pull_its_image() {
    let text = asked(60, "deploy/web").await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Deployment/default/web: 0 of 1 replicas are available", "{text}");
    assert!(lines[1].starts_with("  ReplicaSet/default/web-"), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("    Pod/default/web-")), "{text}");
    let why = lines.iter().find(|line| line.starts_with("why: ")).unwrap();
    assert!(why.starts_with("why: Pod/default/web-") && why.contains("manifest unknown"), "{text}");
    assert!(lines.last().unwrap().starts_with("next: "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_fine_is_said_to_be_fine() {
    let text = asked(0, "node/ip-10-0-128-10.us-test-1.compute.internal").await.unwrap();
    assert!(text.ends_with(": is Ready\nwhy: nothing holds it up"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_name_or_kind_is_answered_with_what_there_is() {
    let absent = asked(0, "deployment/wev").await.unwrap_err();
    assert_eq!(absent.to_string(), "Deployment/default/wev: does not exist");
    assert_eq!((absent.next.as_str(), absent.exit), ("there are: web", Exit::Failed));
    let unknown = asked(0, "cronjob/x").await.unwrap_err();
    assert!(unknown.cause.contains("known are apiservice, catalogsource"), "{unknown}");
    assert_eq!(unknown.exit, Exit::Usage);
    assert_eq!(asked(0, "pod").await.unwrap_err().exit, Exit::Usage);
}
