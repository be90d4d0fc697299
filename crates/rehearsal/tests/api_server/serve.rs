//! The server over HTTPS on loopback.

use super::common::{map, maps, server};
use futures::{StreamExt, TryStreamExt};
use kube::{
    Client, Config, ResourceExt,
    api::{PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use toolbox_rehearsal::{
    api::Deny,
    serve::{ServeOptions, Served, serve},
};

async fn client(served: &Served, context: &str) -> Client {
    let config = Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let options = KubeConfigOptions { context: Some(context.into()), ..KubeConfigOptions::default() };
    Client::try_from(Config::from_custom_kubeconfig(config, &options).await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_reads_writes_and_watches() {
    let api = server();
    api.deny("jane", Deny::verb("create", "", "configmaps"));
    let served =
        serve(api.clone(), ServeOptions { users: vec!["jane".into()], ..ServeOptions::default() }).await.unwrap();
    let admin = client(&served, "rehearsal").await;
    let mut watch = maps(&admin).watch(&WatchParams::default(), "1").await.unwrap().boxed();
    maps(&admin).create(&PostParams::default(), &map("a")).await.unwrap();
    let Some(WatchEvent::Added(seen)) = watch.try_next().await.unwrap() else { panic!("no event") };
    assert_eq!(seen.name_any(), "a");
    let jane = client(&served, "jane").await;
    let kube::Error::Api(status) = maps(&jane).create(&PostParams::default(), &map("b")).await.unwrap_err() else {
        panic!("not a status")
    };
    assert_eq!(status.code, 403);
    api.faults().cut_watches("");
    assert!(watch.try_next().await.unwrap().is_none());
    served.shutdown().await;
}

#[tokio::test]
async fn a_stranger_is_told_so() {
    let served = serve(server(), ServeOptions::default()).await.unwrap();
    let text = served.kubeconfig().replace("token: \"", "token: \"not-");
    let config = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let kube::Error::Api(status) = maps(&client).get("a").await.unwrap_err() else { panic!("not a status") };
    assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
    assert!(client.apiserver_version().await.is_ok());
}

#[tokio::test]
async fn a_certificate_says_who_one_is() {
    let api = server();
    api.deny("jane", Deny::verb("create", "", "configmaps"));
    let served = serve(api, ServeOptions { users: vec!["jane".into()], ..ServeOptions::default() }).await.unwrap();
    let admin = client(&served, "rehearsal-certificate").await;
    maps(&admin).create(&PostParams::default(), &map("a")).await.unwrap();
    let jane = client(&served, "jane-certificate").await;
    let kube::Error::Api(status) = maps(&jane).create(&PostParams::default(), &map("b")).await.unwrap_err() else {
        panic!("not a status")
    };
    assert_eq!(status.code, 403);
    assert!(status.message.contains("User \"jane\" cannot create"), "{}", status.message);
}
