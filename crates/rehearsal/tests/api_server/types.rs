//! What the server tells of its types, and what it makes of bodies that do not fit them.

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use super::common::{raw, server, server_of, status};
use toolbox_rehearsal::{ApiServer, KubeVersion};

async fn send(api: &ApiServer, method: &str, path: &str, body: &str) -> (u16, Vec<String>, Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let answer = api.client().send(request.body(Body::from(body.as_bytes().to_vec())).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let warnings = parts.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
    let body = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
    (parts.status.as_u16(), warnings, body)
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const ODD: &str = r#"{"metadata": {"name": "a"}, "spec": {"replica": 1, "paused": true, "paused": false,
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}}"#;

#[tokio::test(start_paused = true)]
async fn fields_that_nobody_knows_are_told_of_as_the_client_asks() {
    let api = server();
    let (code, _, said) = send(&api, "POST", &format!("{DEPLOYMENTS}?fieldValidation=Strict"), ODD).await;
    assert_eq!(
        (code, said["message"].as_str().unwrap()),
        (
            400,
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
             duplicate field \"spec.paused\", unknown field \"spec.replica\""
        )
    );
    let (code, warnings, _) =
        send(&api, "POST", &format!("{DEPLOYMENTS}?fieldValidation=Ignore&dryRun=All"), ODD).await;
    assert_eq!((code, warnings.len()), (201, 0));
    let (code, warnings, made) = send(&api, "POST", DEPLOYMENTS, ODD).await;
    assert_eq!(code, 201);
    assert_eq!(
        warnings,
        ["299 - \"duplicate field \\\"spec.paused\\\"\"", "299 - \"unknown field \\\"spec.replica\\\"\""]
    );
    assert!(made["spec"].get("replica").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_of_1_24_says_nothing_of_fields_that_it_does_not_know() {
    let api = server_of(KubeVersion::new(1, 24, 17));
    let (code, warnings, made) = send(&api, "POST", &format!("{DEPLOYMENTS}?fieldValidation=Strict"), ODD).await;
    assert_eq!((code, warnings.len(), made["spec"].get("replica")), (201, 0, None));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_type_is_refused_by_create_and_by_patch() {
    let api = server();
    let wrong = ODD.replace("\"replica\": 1", "\"replicas\": \"1\"");
    let (code, _, said) = send(&api, "POST", DEPLOYMENTS, &wrong).await;
    assert_eq!(
        (code, said["message"].as_str().unwrap()),
        (
            400,
            "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go \
             struct field DeploymentSpec.spec.replicas of type int32"
        )
    );
    send(&api, "POST", DEPLOYMENTS, ODD).await;
    let (code, _, said) = send(&api, "PATCH", &format!("{DEPLOYMENTS}/a"), r#"{"spec": {"replicas": "1"}}"#).await;
    assert_eq!((code, said["reason"].as_str().unwrap()), (422, "Invalid"));
    assert!(said["message"].as_str().unwrap().starts_with(" \"\" is invalid: patch: Invalid value: "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn openapi_tells_types_and_paths_of_built_in_and_custom_kinds() {
    let client = server().client();
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "port": {"x-kubernetes-int-or-string": true},
            }}},
        }}}]}});
    raw(&client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let index = raw(&client, "GET", "/openapi/v3", Value::Null).await.unwrap();
    let address = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let custom = raw(&client, "GET", address, Value::Null).await.unwrap();
    let widget = &custom["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["port"]["anyOf"][0]["type"], "integer");
    assert_eq!(widget["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    assert!(custom["components"]["schemas"].get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").is_some());
    let patch = &custom["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());

    let apps = raw(&client, "GET", "/openapi/v3/apis/apps/v1", Value::Null).await.unwrap();
    let spec = &apps["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"];
    assert_eq!(spec["properties"]["containers"]["x-kubernetes-patch-merge-key"], "name");
    assert!(spec["properties"]["containers"]["description"].as_str().unwrap().starts_with("List of containers"));
    let paths = &apps["paths"];
    let patch = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some());
    let parameters: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(parameters, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let scale = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Scale");
    let (code, ..) = status(raw(&client, "GET", "/openapi/v3/apis/none/v1", Value::Null).await.unwrap_err());
    assert_eq!(code, 404);
}
