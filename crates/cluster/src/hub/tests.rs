//! Watches against a small server of our own.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use toolbox_engine::Verdict;

use super::feed::{Feed, View};
use crate::testing::{Script, cluster};
use crate::{Object, Query, kinds};

fn names(objects: &[Object]) -> Vec<String> {
    objects.iter().map(|o| o.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn equal_queries_share_a_watch_and_a_deletion_between_lists_is_seen() {
    let script = Script::new();
    let (lists, watches) = (AtomicU32::new(0), AtomicU32::new(0));
    script.answer(move |asked| {
        if asked.path.contains("watch=true") {
            return match watches.fetch_add(1, Ordering::SeqCst) {
                0 => Ok((503, json!({"code": 503, "message": "starting"}))),
                _ => Ok((410, json!({"code": 410, "reason": "Expired"}))),
            };
        }
        let first = lists.fetch_add(1, Ordering::SeqCst) == 0;
        let items = if first {
            json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}])
        } else {
            json!([{"metadata": {"name": "b"}}])
        };
        Ok((200, json!({"metadata": {"resourceVersion": "5"}, "items": items})))
    });
    let cluster = cluster(&script);
    let one = cluster.watch(Query::all(&kinds::NODE));
    let two = cluster.watch(Query::all(&kinds::NODE));
    assert!(matches!(one.judge(|_| Verdict::Done(())), Verdict::Pending(why) if why.code == "listing"));
    let mut changes = one.subscribe();
    changes.changed().await.unwrap();
    assert_eq!(names(&two.objects()), ["a", "b"]);
    let away = one.judge(|_| Verdict::Done(()));
    assert!(matches!(away, Verdict::Pending(why) if why.code == "api-unreachable"));
    changes.changed().await.unwrap();
    assert_eq!(names(&two.objects()), ["b"]);
    assert_eq!(one.judge(|objects| Verdict::Done(objects.len())), Verdict::Done(1));
}

/// Asks a server that throttles for some seconds with this header; when its objects were seen, and how often it was asked.
async fn throttled(retry_after: u64, seconds: u64) -> (u64, u32) {
    let script = Script::new();
    let cluster = cluster(&script);
    let (clock, asked) = (cluster.clock().clone(), std::sync::Arc::new(AtomicU32::new(0)));
    let count = asked.clone();
    script.answer(move |asked| {
        if asked.path.contains("watch=true") {
            return Err("nobody is there".to_owned());
        }
        count.fetch_add(1, Ordering::SeqCst);
        if clock.elapsed().as_secs() < seconds {
            return Ok((429, json!({"code": 429, "retryAfter": retry_after})));
        }
        Ok((200, json!({"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]})))
    });
    let nodes = cluster.watch(Query::all(&kinds::NODE));
    let mut changes = nodes.subscribe();
    while nodes.objects().is_empty() {
        changes.changed().await.unwrap();
    }
    (cluster.clock().elapsed().as_secs(), asked.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn a_server_is_believed_when_it_asks_for_a_pause_within_reason() {
    assert_eq!(throttled(7, 10).await, (14, 3));
    // A day is not.
    let (seen, _) = throttled(86_400, 10).await;
    assert_eq!(seen, 60);
    // None at all would be a storm.
    let (seen, asked) = throttled(0, 10).await;
    assert!(seen == 10 && asked <= 101, "{seen} {asked}");
}

fn map(value: &str, version: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "resourceVersion": version},
        "data": {"k": value}})
}

#[tokio::test(start_paused = true)]
async fn the_old_state_is_not_taken_for_the_answer_to_our_own_change() {
    let cluster = cluster(&Script::new());
    let query = Query::within(&kinds::CONFIG_MAP, "ns");
    let feed = Feed::new(query, cluster.shared.transport.clone(), std::sync::Weak::new());
    let value = || match feed.view() {
        View::Objects(objects) => objects[0].text("/data/k").unwrap().to_owned(),
        View::Pending(why) => why.code.into_owned(),
        View::NotServed(_) | View::Failed(_) => panic!("neither"),
    };
    feed.replace(vec![map("old", "5")], "5");
    assert_eq!(value(), "old");
    feed.expect(&Object::new(map("new", "7")));
    assert_eq!(value(), "catching-up");
    feed.apply(Vec::new(), "6");
    assert_eq!(value(), "catching-up");
    let mut version = feed.version.subscribe();
    version.borrow_and_update();
    feed.apply(Vec::new(), "8");
    assert!(version.has_changed().unwrap(), "waits are told");
    assert_eq!(value(), "old");
    // Something of another place has no part in it.
    let mut elsewhere = map("x", "9");
    elsewhere["metadata"]["namespace"] = "other".into();
    feed.expect(&Object::new(elsewhere));
    assert_eq!(value(), "old");
}
