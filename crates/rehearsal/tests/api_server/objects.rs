//! Objects: create, read, change, delete.

use super::common::{map, maps, namespace, pod, pods, server, status};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn an_object_is_created_read_replaced_and_deleted() {
    let client = server().client();
    let api = maps(&client);
    let made = api.create(&PostParams::default(), &map("a")).await.unwrap();
    assert!(made.uid().is_some());
    assert_eq!(made.creation_timestamp().unwrap().0.to_string(), "2026-01-01T00:00:00Z");
    let (code, reason, message) = status(api.create(&PostParams::default(), &map("a")).await.unwrap_err());
    assert_eq!((code, reason.as_str(), message.as_str()), (409, "AlreadyExists", "configmaps \"a\" already exists"));
    let mut changed = api.get("a").await.unwrap();
    changed.data.as_mut().unwrap().insert("k".into(), "w".into());
    let stored = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(stored.resource_version(), made.resource_version());
    let (code, reason, message) = status(api.replace("a", &PostParams::default(), &made).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let answer = api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(answer.right().unwrap().is_success());
    let (code, reason, message) = status(api.get("a").await.unwrap_err());
    assert_eq!((code, reason.as_str(), message.as_str()), (404, "NotFound", "configmaps \"a\" not found"));
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_and_the_same_seed_generates_the_same() {
    let mut names = Vec::new();
    for _ in 0..2 {
        let client = server().client();
        let object: ConfigMap = serde_json::from_value(json!({"metadata": {"generateName": "x-"}})).unwrap();
        let made = maps(&client).create(&PostParams::default(), &object).await.unwrap();
        names.push((made.name_any(), made.uid()));
    }
    assert!(names[0].0.starts_with("x-") && names[0].0.len() == 7);
    assert_eq!(names[0], names[1]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_must_exist_and_not_be_terminating() {
    let client = server().client();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "nowhere");
    let (code, _, message) = status(api.create(&PostParams::default(), &map("a")).await.unwrap_err());
    assert_eq!((code, message.as_str()), (404, "namespaces \"nowhere\" not found"));
    namespace(&client, "n").await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let left = namespaces.delete("n", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(left.status.unwrap().phase.as_deref(), Some("Terminating"));
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "n");
    let (code, reason, message) = status(api.create(&PostParams::default(), &map("a")).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        message,
        "configmaps \"a\" is forbidden: unable to create new content in namespace n because it is being terminated"
    );
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let client = server().client();
    let api = maps(&client);
    let object: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "f", "finalizers": ["example.com/hold"]}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    let held = api.delete("f", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
    let patch = json!({"metadata": {"finalizers": null}});
    api.patch("f", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert!(api.get_opt("f").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn lists_are_paged_and_stay_at_their_revision() {
    let client = server().client();
    let api = maps(&client);
    for name in ["a", "b", "c", "d", "e"] {
        api.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(2);
    loop {
        let page = api.list(&params).await.unwrap();
        names.extend(page.items.iter().map(ResourceExt::name_any));
        // What happens between the pages is not seen in them.
        let _ = api.delete("e", &DeleteParams::default()).await;
        match page.metadata.continue_ {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_expires_with_the_history() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    api.delete("b", &DeleteParams::default()).await.unwrap();
    server.compact();
    let params = ListParams::default().limit(1).continue_token(&page.metadata.continue_.unwrap());
    let (code, reason, _) = status(api.list(&params).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_by_labels_and_fields() {
    let client = server().client();
    let api = pods(&client);
    for (name, node) in [("p", "n1"), ("q", "n2")] {
        let mut object = pod(name);
        object.spec.as_mut().unwrap().node_name = Some(node.into());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    for (params, expected) in [
        (ListParams::default().fields("spec.nodeName=n1"), vec!["p"]),
        (ListParams::default().fields("metadata.name=q"), vec!["q"]),
        (ListParams::default().fields("status.phase=Pending"), vec!["p", "q"]),
        (ListParams::default().labels("app in (p, z)"), vec!["p"]),
        (ListParams::default().labels("app!=p"), vec!["q"]),
    ] {
        let found: Vec<String> = api.list(&params).await.unwrap().iter().map(ResourceExt::name_any).collect();
        assert_eq!(found, expected);
    }
    let (code, ..) = status(api.list(&ListParams::default().fields("spec.what=x")).await.unwrap_err());
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_generation_counts_changes_of_the_spec_only() {
    let client = server().client();
    let api: Api<Deployment> = Api::namespaced(client, "default");
    let object: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }))
    .unwrap();
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!((made.metadata.generation, made.spec.unwrap().replicas), (Some(1), Some(1)));
    let status_patch = json!({"status": {"readyReplicas": 1, "replicas": 1}, "spec": {"replicas": 9}});
    let after = api.patch_status("d", &PatchParams::default(), &Patch::Merge(status_patch)).await.unwrap();
    assert_eq!((after.metadata.generation, after.spec.unwrap().replicas), (Some(1), Some(1)));
    assert_eq!(after.status.unwrap().ready_replicas, Some(1));
    let scaled =
        api.patch_scale("d", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    let now = api.get("d").await.unwrap();
    assert_eq!((now.metadata.generation, now.spec.unwrap().replicas), (Some(2), Some(3)));
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}, {"name": "e", "image": "k"}]}}}});
    let now = api.patch("d", &PatchParams::default(), &Patch::Strategic(strategic)).await.unwrap();
    assert_eq!(now.spec.unwrap().template.spec.unwrap().containers.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn invalid_metadata_is_refused_with_causes() {
    let client = server().client();
    let mut object = map("Upper");
    object.labels_mut().insert("a".into(), "x".repeat(64));
    let error = maps(&client).create(&PostParams::default(), &object).await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("not a status") };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = status.details.clone().unwrap().causes;
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, ["metadata.name", "metadata.labels"]);
    assert!(causes[1].message.ends_with("must be no more than 63 characters"), "{}", causes[1].message);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_leaves_nothing() {
    let server = server();
    let client = server.client();
    let before = server.dump();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    maps(&client).create(&params, &map("a")).await.unwrap();
    assert_eq!(server.dump(), before);
}
