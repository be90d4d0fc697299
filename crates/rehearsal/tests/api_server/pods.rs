//! Pods: logs, binding, eviction.

use std::time::Duration;

use super::common::{pod, pods, server, status};
use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{EvictParams, LogParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

async fn state(api: &Api<Pod>, state: Value) {
    let patch = json!({"status": {"containerStatuses": [
        {"name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state},
    ]}});
    api.patch_status("p", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn bind(client: &kube::Client, node: &str) -> kube::Result<Value> {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}});
    super::common::raw(client, "POST", "/api/v1/namespaces/default/pods/p/binding", binding).await
}

#[tokio::test(start_paused = true)]
async fn logs_are_refused_before_the_start_and_read_after() {
    let server = server();
    let client = server.client();
    let api = pods(&client);
    api.create(&PostParams::default(), &pod("p")).await.unwrap();
    assert_eq!(api.logs("p", &LogParams::default()).await.unwrap(), "", "nothing without a node");
    bind(&client, "n").await.unwrap();
    let (_, _, message) = status(api.logs("p", &LogParams::default()).await.unwrap_err());
    assert_eq!(message, "container \"main\" in pod \"p\" is waiting to start: ContainerCreating");
    state(&api, json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    for line in ["one", "two", "three"] {
        server.logs().append("default", "p", "main", line);
    }
    assert_eq!(api.logs("p", &LogParams::default()).await.unwrap(), "one\ntwo\nthree\n");
    let params = LogParams { tail_lines: Some(1), timestamps: true, ..LogParams::default() };
    assert_eq!(api.logs("p", &params).await.unwrap(), "2026-01-01T00:00:00.000000000Z three\n");
    let params = LogParams { limit_bytes: Some(5), ..LogParams::default() };
    assert_eq!(api.logs("p", &params).await.unwrap(), "one\nt");
    let params = LogParams { previous: true, ..LogParams::default() };
    let (_, _, message) = status(api.logs("p", &params).await.unwrap_err());
    assert_eq!(message, "previous terminated container \"main\" in pod \"p\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_followed_log_ends_with_its_container() {
    let server = server();
    let client = server.client();
    let api = pods(&client);
    api.create(&PostParams::default(), &pod("p")).await.unwrap();
    bind(&client, "n").await.unwrap();
    state(&api, json!({"running": {}})).await;
    server.logs().append("default", "p", "main", "early");
    let mut stream = Box::pin(api.log_stream("p", &LogParams { follow: true, ..LogParams::default() }).await.unwrap());
    let writer = async {
        server.clock().sleep(Duration::from_secs(5)).await;
        server.logs().append("default", "p", "main", "late");
        state(&api, json!({"terminated": {"exitCode": 0}})).await;
    };
    let mut text = String::new();
    let (read, ()) = tokio::join!(stream.read_to_string(&mut text), writer);
    read.unwrap();
    assert_eq!(text, "early\nlate\n");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once_and_evicted_within_its_budget() {
    let server = server();
    let client = server.client();
    let api = pods(&client);
    api.create(&PostParams::default(), &pod("p")).await.unwrap();
    bind(&client, "n").await.unwrap();
    let bound = api.get("p").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("n"));
    assert_eq!(bound.status.unwrap().conditions.unwrap()[0].type_, "PodScheduled");
    assert_eq!(status(bind(&client, "m").await.unwrap_err()).0, 409);
    state(&api, json!({"running": {}})).await;
    let running = json!({"status": {"phase": "Running"}});
    api.patch_status("p", &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}});
    super::common::raw(&client, "POST", path, budget).await.unwrap();
    let (code, _, message) = status(api.evict("p", &EvictParams::default()).await.unwrap_err());
    assert_eq!((code, message.as_str()), (429, "Cannot evict pod as it would violate the pod's disruption budget."));
    super::common::raw(&client, "DELETE", &format!("{path}/b"), Value::Null).await.unwrap();
    api.evict("p", &EvictParams::default()).await.unwrap();
    assert!(api.get("p").await.unwrap().metadata.deletion_timestamp.is_some());
}
