//! Discovery, reviews, access and virtual kinds.

use super::common::{maps, raw, server, server_of, status};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::Discovery,
};
use serde_json::{Value, json};
use toolbox_rehearsal::{
    KubeVersion,
    api::{Deny, kinds::KindDef},
};

#[tokio::test(start_paused = true)]
async fn a_client_discovers_versions_groups_and_kinds() {
    let client = server_of(KubeVersion::new(1, 24, 17)).client();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((version.git_version.as_str(), version.minor.as_str()), ("v1.24.17", "24"));
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let (resource, capabilities) = discovery.resolve_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment")).unwrap();
    assert_eq!(resource.plural, "deployments");
    assert!(
        capabilities.subresources.iter().any(|(sub, _)| sub.plural == "scale" || sub.plural == "deployments/scale")
    );
    let aggregated = server().client();
    let groups = aggregated.list_api_groups_aggregated().await.unwrap();
    assert!(
        groups
            .items
            .iter()
            .any(|group| group.metadata.as_ref().unwrap().name.as_deref() == Some("operators.coreos.com"))
    );
    for path in ["/readyz", "/livez", "/healthz"] {
        assert_eq!(client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap(), "ok");
    }
    let (code, reason, _) = status(raw(&client, "GET", "/api/v1/gadgets", Value::Null).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (404, "NotFound"));
}

#[tokio::test(start_paused = true)]
async fn a_user_is_refused_what_is_denied_and_told_so_beforehand() {
    let server = server();
    server.deny("jane", Deny::verb("list", "", "configmaps"));
    let client = server.client_as("jane");
    let (code, reason, message) = status(maps(&client).list(&ListParams::default()).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        message,
        "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    assert!(maps(&client).get_opt("a").await.unwrap().is_none());
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (verb, allowed) in [("list", false), ("get", true)] {
        let review =
            json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": "default"}}});
        let answer = raw(&client, "POST", path, review).await.unwrap();
        assert_eq!(answer["status"]["allowed"], json!(allowed));
    }
    let who = raw(&client, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await.unwrap();
    assert_eq!(who["status"]["userInfo"]["username"], "jane");
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_virtual_kind_come_from_its_provider() {
    let server = server();
    let kind = KindDef::namespaced("packages.operators.coreos.com", "v1", "PackageManifest", "packagemanifests");
    server.set_virtual(kind, |namespace: Option<&str>| {
        vec![json!({"metadata": {"name": "nfd", "namespace": namespace, "labels": {"catalog": "redhat-operators"}}})]
    });
    let gvk = GroupVersionKind::gvk("packages.operators.coreos.com", "v1", "PackageManifest");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "packagemanifests");
    let api: Api<DynamicObject> = Api::namespaced_with(server.client(), "openshift-marketplace", &resource);
    assert_eq!(api.get("nfd").await.unwrap().namespace().as_deref(), Some("openshift-marketplace"));
    assert_eq!(api.list(&ListParams::default().labels("catalog=other")).await.unwrap().items.len(), 0);
    assert_eq!(
        status(api.get("none").await.unwrap_err()).2,
        "packagemanifests.packages.operators.coreos.com \"none\" not found"
    );
}
