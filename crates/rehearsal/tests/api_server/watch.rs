//! Watches: what they send, how they resume, how they end.

use std::time::Duration;

use super::common::{map, maps, server, server_of, status};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::watcher::{self, Event, watcher},
};
use serde_json::json;
use toolbox_rehearsal::{Fault, FaultRule, KubeVersion};

fn text(event: &Event<ConfigMap>) -> String {
    event.to_string()
}

async fn next(stream: &mut (impl futures::Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin)) -> String {
    match stream.next().await.unwrap() {
        Ok(event) => text(&event),
        Err(error) => format!("error: {error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_watches_and_resumes_after_a_cut() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    api.create(&PostParams::default(), &map("a")).await.unwrap();
    let mut stream = Box::pin(watcher(api.clone(), watcher::Config::default()));
    for expected in ["Init", "InitApply(a)", "InitDone"] {
        assert_eq!(next(&mut stream).await, expected);
    }
    api.create(&PostParams::default(), &map("b")).await.unwrap();
    assert_eq!(next(&mut stream).await, "Apply(b)");
    server.faults().cut_watches("configmaps");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut stream).await, "Delete(a)");
    assert_eq!(server.requests().of("list"), 1);
    assert_eq!(server.requests().of("watch"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_after_an_expired_watch() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    api.create(&PostParams::default(), &map("a")).await.unwrap();
    let mut stream = Box::pin(watcher(api.clone(), watcher::Config::default()));
    for expected in ["Init", "InitApply(a)", "InitDone"] {
        assert_eq!(next(&mut stream).await, expected);
    }
    // Open the watch, then expire it.
    api.create(&PostParams::default(), &map("b")).await.unwrap();
    assert_eq!(next(&mut stream).await, "Apply(b)");
    server.faults().expire_watches("");
    assert!(next(&mut stream).await.contains("too old"));
    for expected in ["Init", "InitApply(a)", "InitApply(b)", "InitDone"] {
        assert_eq!(next(&mut stream).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn resuming_before_the_history_is_an_error_event() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    let made = api.create(&PostParams::default(), &map("a")).await.unwrap();
    api.create(&PostParams::default(), &map("b")).await.unwrap();
    server.compact();
    let stream = api.watch(&WatchParams::default(), &made.resource_version().unwrap()).await.unwrap();
    let events: Vec<_> = stream.try_collect::<Vec<_>>().await.unwrap();
    let [WatchEvent::Error(error)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((error.code, error.reason.as_str()), (410, "Expired"));
    assert!(error.message.starts_with("too old resource version: "), "{}", error.message);
    server.faults().add(FaultRule::new(Fault::Expired).verb("watch").times(1));
    let (code, ..) = status(api.watch(&WatchParams::default(), "5").await.err().unwrap());
    assert_eq!(code, 410);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_its_bookmark() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    api.create(&PostParams::default(), &map("a")).await.unwrap();
    let mut stream = Box::pin(watcher(api.clone(), watcher::Config::default().streaming_lists()));
    for expected in ["Init", "InitApply(a)", "InitDone"] {
        assert_eq!(next(&mut stream).await, expected);
    }
    assert_eq!(server.requests().of("list"), 0);
    let old = server_of(KubeVersion::new(1, 30, 0)).client();
    let (code, _, message) =
        status(maps(&old).watch(&WatchParams::default().initial_events(), "0").await.err().unwrap());
    assert_eq!(code, 422);
    assert!(message.contains("WatchList feature gate"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn quiet_watches_get_bookmarks_and_end_in_time() {
    let server = server();
    let client = server.client();
    let start = server.clock().now();
    let params = WatchParams::default().timeout(150);
    let stream = maps(&client).watch(&params, "1").await.unwrap();
    let events: Vec<_> = stream.try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| matches!(event, WatchEvent::Bookmark(_))));
    assert_eq!(server.clock().now().duration_since(start).as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection() {
    let server = server();
    let client = server.client();
    let api = maps(&client);
    let params = WatchParams::default().labels("on=yes").timeout(5);
    let stream = api.watch(&params, "1").await.unwrap();
    api.create(&PostParams::default(), &map("a")).await.unwrap();
    for value in [json!("yes"), json!("no")] {
        let patch = json!({"metadata": {"labels": {"on": value}}});
        api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
    let events: Vec<_> = stream.try_collect::<Vec<_>>().await.unwrap();
    let kinds: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(kinds, ["Added event", "Deleted event"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_refuses_connections_for_a_while() {
    let server = server();
    let client = server.client();
    let api: Api<ConfigMap> = maps(&client);
    server.faults().restart(Duration::from_secs(30));
    assert!(matches!(api.get_opt("a").await, Err(kube::Error::Service(_))));
    server.clock().sleep(Duration::from_secs(31)).await;
    assert!(api.get_opt("a").await.unwrap().is_none());
    server.faults().add(FaultRule::new(Fault::TooManyRequests { retry_after: 3 }).verb("get").times(1));
    assert_eq!(status(api.get_opt("a").await.unwrap_err()).0, 429);
    assert!(api.get_opt("a").await.unwrap().is_none());
}
