//! What the tests of the API server share.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};
use toolbox_engine::Clock;
use toolbox_rehearsal::{ApiOptions, ApiServer, KubeVersion};

pub(crate) fn server() -> ApiServer {
    server_of(KubeVersion::new(1, 34, 4))
}

pub(crate) fn server_of(version: KubeVersion) -> ApiServer {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    ApiServer::new(ApiOptions { clock, seed: 7, version, openshift: true })
}

pub(crate) fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

pub(crate) fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

pub(crate) fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v"}})).unwrap()
}

pub(crate) fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "quay.io/x/y:1"}]},
    }))
    .unwrap()
}

pub(crate) async fn namespace(client: &Client, name: &str) {
    let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
}

pub(crate) fn status(error: kube::Error) -> (u16, String, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not a status: {other}"),
    }
}

pub(crate) async fn raw(client: &Client, method: &str, path: &str, body: Value) -> Result<Value, kube::Error> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
    client.request(request.unwrap()).await
}
