//! Server-side apply and field management.

use super::common::{map, maps, server};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

async fn apply(api: &Api<ConfigMap>, manager: &str, data: Value) -> kube::Result<ConfigMap> {
    api.patch("a", &PatchParams::apply(manager), &Patch::Apply(config(data))).await
}

fn data(object: &ConfigMap) -> Vec<String> {
    object.data.iter().flatten().map(|(name, value)| format!("{name}={value}")).collect()
}

#[tokio::test(start_paused = true)]
async fn applying_creates_changes_and_takes_back_what_is_no_longer_said() {
    let client = server().client();
    let api = maps(&client);
    let made = apply(&api, "one", json!({"x": "1", "y": "1"})).await.unwrap();
    let again = apply(&api, "one", json!({"x": "1", "y": "1"})).await.unwrap();
    assert_eq!(made.resource_version(), again.resource_version(), "a second apply changes nothing");
    apply(&api, "two", json!({"z": "2"})).await.unwrap();
    let now = apply(&api, "one", json!({"x": "3"})).await.unwrap();
    assert_eq!(data(&now), ["x=3", "z=2"]);
    let managers: Vec<String> = now
        .managed_fields()
        .iter()
        .map(|entry| format!("{} {}", entry.manager.as_deref().unwrap(), entry.operation.as_deref().unwrap()))
        .collect();
    assert_eq!(managers, ["one Apply", "two Apply"]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_names_the_other_manager_and_force_takes_over() {
    let client = server().client();
    let api = maps(&client);
    apply(&api, "one", json!({"x": "1", "y": "1"})).await.unwrap();
    let kube::Error::Api(status) = apply(&api, "two", json!({"x": "2", "y": "1"})).await.unwrap_err() else {
        panic!("not a status")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"one\": .data.x");
    let cause = status.details.clone().unwrap().causes.remove(0);
    assert_eq!((cause.reason.as_str(), cause.field.as_str()), ("FieldManagerConflict", ".data.x"));
    let forced = PatchParams::apply("two").force();
    api.patch("a", &forced, &Patch::Apply(config(json!({"x": "2", "y": "1"})))).await.unwrap();
    // The first one has lost x, so leaving it out takes nothing back; y is still shared.
    let now = apply(&api, "one", json!({})).await.unwrap();
    assert_eq!(data(&now), ["x=2", "y=1"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_plain_update_changed_is_the_updaters() {
    let client = server().client();
    let api = maps(&client);
    apply(&api, "one", json!({"x": "1"})).await.unwrap();
    let patch = json!({"data": {"x": "2"}});
    let params = PatchParams { field_manager: Some("editor".into()), ..PatchParams::default() };
    api.patch("a", &params, &Patch::Merge(patch)).await.unwrap();
    let kube::Error::Api(status) = apply(&api, "one", json!({"x": "1"})).await.unwrap_err() else {
        panic!("not a status")
    };
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.x");
}

#[tokio::test(start_paused = true)]
async fn lists_of_containers_merge_by_name() {
    let client = server().client();
    let api: Api<Deployment> = Api::namespaced(client, "default");
    let object = |containers: Value, replicas: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}},
            },
        })
    };
    let one = object(json!([{"name": "c", "image": "i"}]), json!(1));
    let first = api.patch("d", &PatchParams::apply("one"), &Patch::Apply(&one)).await.unwrap();
    let again = api.patch("d", &PatchParams::apply("one"), &Patch::Apply(&one)).await.unwrap();
    assert_eq!(first.resource_version(), again.resource_version());
    let two = object(json!([{"name": "side", "image": "s"}]), json!(1));
    let both = api.patch("d", &PatchParams::apply("two"), &Patch::Apply(&two)).await.unwrap();
    let names = |object: &Deployment| -> Vec<String> {
        object
            .spec
            .as_ref()
            .unwrap()
            .template
            .spec
            .as_ref()
            .unwrap()
            .containers
            .iter()
            .map(|c| c.name.clone())
            .collect()
    };
    assert_eq!(names(&both), ["c", "side"]);
    let clash = object(json!([{"name": "c", "image": "other"}, {"name": "side", "image": "s"}]), json!(2));
    let kube::Error::Api(status) = api.patch("d", &PatchParams::apply("two"), &Patch::Apply(&clash)).await.unwrap_err()
    else {
        panic!("not a status")
    };
    assert_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.replicas\n- .spec.template.spec.containers[name=\"c\"].image"
    );
    // Without the sidecar the other container stays.
    let mut less = object(json!([{"name": "c", "image": "i"}]), json!(1));
    less["spec"]["template"]["spec"]["containers"][0]["image"] = "i".into();
    let now = api.patch("d", &PatchParams::apply("two"), &Patch::Apply(&less)).await.unwrap();
    assert_eq!(names(&now), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn the_status_has_managers_of_its_own() {
    let client = server().client();
    let api: Api<Deployment> = Api::namespaced(client, "default");
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    api.patch("d", &PatchParams::apply("one"), &Patch::Apply(&object)).await.unwrap();
    let status =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 1}});
    let now = api.patch_status("d", &PatchParams::apply("controller"), &Patch::Apply(&status)).await.unwrap();
    assert_eq!(now.status.as_ref().unwrap().replicas, Some(1));
    let entry = now.managed_fields().iter().find(|entry| entry.manager.as_deref() == Some("controller")).unwrap();
    assert_eq!(entry.subresource.as_deref(), Some("status"));
    let again = api.patch("d", &PatchParams::apply("one"), &Patch::Apply(&object)).await.unwrap();
    assert_eq!(again.status.unwrap().replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_apply_needs_a_manager() {
    let client = server().client();
    let error = maps(&client).patch("a", &PatchParams::default(), &Patch::Apply(config(json!({})))).await.unwrap_err();
    // The client library itself may refuse; a server does.
    if let kube::Error::Api(status) = error {
        assert_eq!(status.code, 422);
    }
    maps(&client).create(&PostParams::default(), &map("b")).await.unwrap();
}
