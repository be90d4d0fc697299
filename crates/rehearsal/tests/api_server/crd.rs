//! Custom resource definitions.

use std::time::Duration;

use super::common::{raw, server, status};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

fn definition() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object", "required": ["size"],
                            "properties": {
                                "size": {"type": "integer", "minimum": 1},
                                "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
                                "items": {"type": "array", "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "string"}}}},
                            },
                        },
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    }))
    .unwrap()
}

fn widgets(client: &Client) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, "widgets"))
}

fn widget(spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec,
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_definition_makes_a_kind_and_takes_it_away() {
    let server = server();
    let client = server.client();
    let (code, _, message) =
        status(raw(&client, "GET", "/apis/example.com/v1/widgets", Value::Null).await.unwrap_err());
    assert_eq!((code, message.as_str()), (404, "404 page not found"));
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), &definition()).await.unwrap();
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(api.clone(), "widgets.example.com", established).await.unwrap();
    let resources = client.list_api_group_resources("example.com/v1").await.unwrap();
    let names: Vec<&str> = resources.resources.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["widgets", "widgets/status"]);

    let made =
        widgets(&client).create(&PostParams::default(), &widget(json!({"size": 1, "junk": true}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"size": 1, "mode": "slow"}));
    assert_eq!(made.metadata.generation, Some(1));

    api.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    server.clock().sleep(Duration::from_secs(5)).await;
    assert!(api.get_opt("widgets.example.com").await.unwrap().is_none());
    let (code, ..) = status(widgets(&client).get("w").await.unwrap_err());
    assert_eq!(code, 404);
    assert!(server.dump().iter().all(|object| object["kind"] != "Widget"));
}

#[tokio::test(start_paused = true)]
async fn the_schema_is_enforced_and_lists_merge_as_it_says() {
    let server = server();
    let client = server.client();
    Api::<CustomResourceDefinition>::all(client.clone()).create(&PostParams::default(), &definition()).await.unwrap();
    server.clock().sleep(Duration::from_secs(1)).await;
    let api = widgets(&client);
    for (spec, expected) in [
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1, "mode": "odd"}),
            "spec.mode: Unsupported value: \"odd\": supported values: \"fast\", \"slow\"",
        ),
        (json!({"size": 0}), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
    ] {
        let (code, reason, message) = status(api.create(&PostParams::default(), &widget(spec)).await.unwrap_err());
        assert_eq!((code, reason.as_str()), (422, "Invalid"));
        assert_eq!(message, format!("Widget.example.com \"w\" is invalid: {expected}"));
    }
    // What a create drops, an apply refuses.
    let odd = widget(json!({"size": 1, "odd": true, "even": {"x": 1}}));
    let refused = api.patch("w", &PatchParams::apply("one"), &Patch::Apply(odd.clone())).await.unwrap_err();
    let text = "failed to create typed patch object (/w; example.com/v1, Kind=Widget): errors:\n  .spec.odd: field not declared in schema\n  .spec.even: field not declared in schema";
    assert_eq!(status(refused), (500, String::new(), text.to_owned()));
    let made = api.create(&PostParams::default(), &odd).await.unwrap();
    assert_eq!(made.data["spec"], json!({"size": 1, "mode": "slow"}));
    api.delete("w", &DeleteParams::default()).await.unwrap();
    for (manager, item) in [("one", json!({"name": "a", "v": "1"})), ("two", json!({"name": "b", "v": "2"}))] {
        let object = widget(json!({"size": 1, "items": [item]}));
        api.patch("w", &PatchParams::apply(manager), &Patch::Apply(object)).await.unwrap();
    }
    let now = api.get("w").await.unwrap();
    assert_eq!(now.data["spec"]["items"].as_array().unwrap().len(), 2);
    let patch = json!({"status": {"phase": "Ready"}});
    let after = api.patch_status("w", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert_eq!((after.metadata.generation, &after.data["status"]["phase"]), (now.metadata.generation, &json!("Ready")));
    let strategic = api.patch("w", &PatchParams::default(), &Patch::Strategic(json!({"spec": {"size": 2}}))).await;
    assert_eq!(status(strategic.unwrap_err()).0, 415);
    assert_eq!(now.name_any(), "w");
}
