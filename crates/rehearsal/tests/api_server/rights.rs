//! Users whose rights come from roles.

use super::common::{map, maps, raw, server, status};
use kube::{
    Client,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use toolbox_rehearsal::{ApiServer, api::User};

fn named(server: &ApiServer, name: &str) -> Client {
    Client::new(server.as_user(User::named(name)), "default")
}

async fn bind(client: &Client, role: &str, user: &str) {
    let binding = json!({
        "metadata": {"name": format!("{role}-{user}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    raw(client, "POST", path, binding).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_user_may_do_what_bound_roles_say_and_the_cluster_s_own_parts_everything() {
    let server = server();
    let jane = named(&server, "jane");
    let (code, _, message) = status(maps(&jane).list(&ListParams::default()).await.unwrap_err());
    assert_eq!(code, 403);
    assert!(message.starts_with("configmaps is forbidden: User \"jane\" cannot list"), "{message}");
    bind(&server.client(), "view", "jane").await;
    assert!(maps(&jane).list(&ListParams::default()).await.unwrap().items.is_empty());
    assert_eq!(status(maps(&jane).create(&PostParams::default(), &map("a")).await.unwrap_err()).0, 403);
    maps(&server.client_as("controller")).create(&PostParams::default(), &map("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_another_s_place_without_the_right() {
    let server = server();
    let ask = |user: User| {
        let server = server.as_user(user);
        async move {
            let request =
                http::Request::get("/api/v1/namespaces/default/configmaps").header("impersonate-user", "june");
            Client::new(server, "default").request::<Value>(request.body(Vec::new()).unwrap()).await
        }
    };
    let (code, _, message) = status(ask(User::named("jane")).await.unwrap_err());
    assert_eq!(
        (code, message.as_str()),
        (
            403,
            "users \"june\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
        )
    );
    let (_, _, message) = status(ask(User::admin()).await.unwrap_err());
    assert!(message.starts_with("configmaps is forbidden: User \"june\""), "{message}");
    bind(&server.client(), "view", "june").await;
    assert_eq!(ask(User::admin()).await.unwrap()["kind"], "ConfigMapList");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_ask_is_not_told_what_there_is() {
    let jane = named(&server(), "jane");
    let (code, ..) = status(raw(&jane, "GET", "/apis/example.com/v1/things", Value::Null).await.unwrap_err());
    assert_eq!(code, 403);
    assert!(jane.apiserver_version().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_connection_into_a_pod_is_refused_as_by_a_node_that_cannot_be_reached() {
    let client = server().client();
    let node =
        json!({"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}});
    raw(&client, "POST", "/api/v1/nodes", node).await.unwrap();
    let pod = json!({
        "metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]},
    });
    raw(&client, "POST", "/api/v1/namespaces/default/pods", pod).await.unwrap();
    let request =
        http::Request::post("/api/v1/namespaces/default/pods/a/exec?command=ls").header("upgrade", "SPDY/3.1");
    let (code, _, message) = status(client.request::<Value>(request.body(Vec::new()).unwrap()).await.unwrap_err());
    let expected = "error dialing backend: dial tcp 10.0.0.7:10250: connect: connection refused";
    assert_eq!((code, message.as_str()), (500, expected));
}
