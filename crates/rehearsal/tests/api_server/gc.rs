//! Owners and their dependents.

use std::time::Duration;

use super::common::{map, maps, pod, pods, server};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use toolbox_rehearsal::ApiServer;

fn owned_by(name: &str, owner: &ConfigMap, blocks: bool) -> ConfigMap {
    let mut object = map(name);
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: owner.name_any(),
        uid: owner.uid().unwrap(),
        block_owner_deletion: Some(blocks),
        ..OwnerReference::default()
    }]);
    object
}

async fn family(api: &Api<ConfigMap>) {
    let owner = api.create(&PostParams::default(), &map("owner")).await.unwrap();
    let child = api.create(&PostParams::default(), &owned_by("child", &owner, true)).await.unwrap();
    api.create(&PostParams::default(), &owned_by("grandchild", &child, true)).await.unwrap();
}

async fn names(server: &ApiServer, api: &Api<ConfigMap>) -> Vec<String> {
    server.clock().sleep(Duration::from_secs(1)).await;
    api.list(&kube::api::ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn dependents_go_after_their_owner() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    family(&api).await;
    api.delete("owner", &DeleteParams::background()).await.unwrap();
    assert!(api.get_opt("child").await.unwrap().is_some(), "the collector takes a moment");
    assert!(names(&server, &api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_the_dependents() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    family(&api).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch("grandchild", &PatchParams::default(), &Patch::Merge(hold)).await.unwrap();
    let owner = api.delete("owner", &DeleteParams::foreground()).await.unwrap().left().unwrap();
    assert_eq!(owner.finalizers(), ["foregroundDeletion"]);
    assert_eq!(names(&server, &api).await, ["child", "grandchild", "owner"]);
    let release = json!({"metadata": {"finalizers": null}});
    api.patch("grandchild", &PatchParams::default(), &Patch::Merge(release)).await.unwrap();
    assert!(names(&server, &api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_their_owner() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    family(&api).await;
    api.delete("owner", &DeleteParams::orphan()).await.unwrap();
    assert_eq!(names(&server, &api).await, ["child", "grandchild"]);
    assert!(api.get("child").await.unwrap().owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_made_with_an_owner_that_is_gone_goes_too() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    let owner = api.create(&PostParams::default(), &map("owner")).await.unwrap();
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &owned_by("late", &owner, false)).await.unwrap();
    assert!(names(&server, &api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn preconditions_hold_a_deletion_to_one_object() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    api.create(&PostParams::default(), &map("a")).await.unwrap();
    let params = DeleteParams {
        preconditions: Some(kube::api::Preconditions { uid: Some("other".into()), ..Default::default() }),
        ..DeleteParams::default()
    };
    let kube::Error::Api(status) = api.delete("a", &params).await.unwrap_err() else { panic!("not a status") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
}

#[tokio::test(start_paused = true)]
async fn pods_on_a_node_get_their_grace_and_others_none() {
    let server = server();
    let client = server.client();
    let api = pods(&client);
    api.create(&PostParams::default(), &pod("loose")).await.unwrap();
    api.delete("loose", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("loose").await.unwrap().is_none());
    let mut placed = pod("placed");
    placed.spec.as_mut().unwrap().node_name = Some("n".into());
    api.create(&PostParams::default(), &placed).await.unwrap();
    let left = api.delete("placed", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(left.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(left.metadata.deletion_timestamp.unwrap().0.to_string(), "2026-01-01T00:00:30Z");
    api.delete("placed", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(api.get_opt("placed").await.unwrap().is_none());
}
