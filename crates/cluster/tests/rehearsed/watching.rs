//! Watches in good times: shared, lazy, complete, and woken once per batch.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use toolbox_cluster::{ClusterError, Query, conditions, kinds};
use toolbox_engine::{ObjectRef, Verdict, Why};
use toolbox_rehearsal::{Fault, FaultRule};

use crate::common::{Stage, until_map};

#[tokio::test(start_paused = true)]
async fn any_number_of_waits_share_one_list_and_one_watch_which_end_with_them() {
    let stage = Stage::new();
    let waits = stage.step(|cx, cluster| async move {
        let waits = (0..10).map(|_| until_map(&cx, &cluster, "a", "v"));
        futures::future::try_join_all(waits).await
    });
    let make = async {
        stage.sleep(10).await;
        stage.make_map("a", "v").await;
    };
    let (done, ()) = tokio::join!(waits, make);
    assert!(done.unwrap().iter().all(|at| (10.0..10.1).contains(at)));
    let traffic = stage.cluster.traffic();
    assert_eq!((traffic.requests["list"], traffic.requests["watch"]), (1, 1));
    stage.sleep(1).await;
    assert!(stage.api.faults().open_watches().iter().all(|path| !path.contains("configmaps")));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_looks_at_asks_for_nothing() {
    let stage = Stage::new();
    let _maps = stage.maps();
    stage.sleep(60).await;
    assert_eq!(stage.cluster.traffic().requests.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_lives_on_its_bookmarks() {
    let stage = Stage::new();
    let wait = stage.step(|cx, cluster| async move { until_map(&cx, &cluster, "a", "v").await });
    let make = async {
        stage.sleep(280).await;
        stage.make_map("a", "v").await;
    };
    let (done, ()) = tokio::join!(wait, make);
    done.unwrap();
    assert_eq!(stage.cluster.traffic().requests["watch"], 1);
}

#[tokio::test(start_paused = true)]
async fn every_page_is_read_and_after_an_expired_continuation_all_is_asked_for_at_once() {
    let stage = Stage::new();
    for number in 0..700 {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number:03}")}});
        stage.raw("POST", "/api/v1/nodes", node).await;
    }
    stage.fault(FaultRule::new(Fault::Expired).verb("list").skip(1).times(1));
    let nodes = stage.cluster.list(&Query::all(&kinds::NODE)).await.unwrap();
    assert_eq!(nodes.len(), 700);
    assert_eq!(stage.cluster.traffic().requests["list"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_events_costs_one_look_each_at_most() {
    let stage = Stage::new();
    stage.make_map("a", "0").await;
    let looks = std::sync::Arc::new(AtomicU32::new(0));
    let count = looks.clone();
    let wait = stage.step(|cx, cluster| async move {
        let maps = cluster.watch(Query::within(&kinds::CONFIG_MAP, "default"));
        let meant = ObjectRef::new("v1", "ConfigMap", Some("default"), "a");
        cx.wait(maps.changes(), || {
            count.fetch_add(1, Ordering::SeqCst);
            maps.judge(|maps| match maps.first().and_then(|map| map.text("/data/k")) {
                Some("1999") => Verdict::Done(()),
                _ => Verdict::Pending(Why::waiting(meant.clone(), "other", "has another value")),
            })
        })
        .await
    });
    let storm = async {
        stage.sleep(1).await;
        for number in 1..2000 {
            stage.set_map("a", &number.to_string()).await;
        }
    };
    let (done, ()) = tokio::join!(wait, storm);
    done.unwrap();
    // One look per event at most, whatever the server packs into one read.
    assert!(looks.load(Ordering::SeqCst) <= 2002);
    assert_eq!(stage.cluster.traffic().watch_events, 1999);
}

fn definition() -> serde_json::Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterpolicies.nvidia.com"},
        "spec": {"group": "nvidia.com", "scope": "Cluster",
            "names": {"plural": "clusterpolicies", "singular": "clusterpolicy", "kind": "ClusterPolicy", "listKind": "ClusterPolicyList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES: &str = "/apis/nvidia.com/v1/clusterpolicies";

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_waited_for_and_seen_at_once() {
    let stage = Stage::new();
    assert!(!stage.cluster.serves(&kinds::CLUSTER_POLICY).await.unwrap());
    let error = stage.cluster.list(&Query::all(&kinds::CLUSTER_POLICY)).await.unwrap_err();
    assert!(matches!(error, ClusterError::NotServed { .. }));
    let wait = stage.step(|cx, cluster| async move {
        let query = Query::named(&kinds::CLUSTER_POLICY, None, "gpu");
        let policy = cluster.watch(query.clone());
        cx.wait(policy.changes(), || policy.judge_one(|found| conditions::present(found, &query.object()).map(|_| ())))
            .await?;
        Ok(cx.clock().elapsed().as_secs_f64())
    });
    let make = async {
        stage.sleep(100).await;
        stage.raw("POST", CRDS, definition()).await;
        stage.sleep(5).await;
        let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}});
        stage.raw("POST", POLICIES, policy).await;
    };
    let (done, ()) = tokio::join!(wait, make);
    let at = done.unwrap();
    assert!((105.0..105.5).contains(&at), "{at}");
    assert_eq!(
        stage.kept.pending(),
        ["is being looked for", "clusterpolicies.nvidia.com (v1) is not served yet", "has not appeared"]
    );
    assert!(stage.cluster.serves(&kinds::CLUSTER_POLICY).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_any_more_has_no_objects() {
    let stage = Stage::new();
    stage.raw("POST", CRDS, definition()).await;
    stage.sleep(5).await;
    let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}});
    stage.raw("POST", POLICIES, policy).await;
    let wait = stage.step(|cx, cluster| async move {
        let query = Query::named(&kinds::CLUSTER_POLICY, None, "gpu");
        let policy = cluster.watch(query.clone());
        cx.wait(policy.changes(), || policy.judge_absence(|found| conditions::gone(found, &query.object()))).await
    });
    let remove = async {
        stage.sleep(10).await;
        stage.raw("DELETE", &format!("{CRDS}/clusterpolicies.nvidia.com"), serde_json::Value::Null).await;
    };
    let (done, ()) = tokio::join!(wait, remove);
    done.unwrap();
    assert!(stage.clock.elapsed().as_secs() < 30);
}

#[tokio::test(start_paused = true)]
async fn a_wait_after_our_own_change_looks_at_the_changed_object() {
    let stage = Stage::new();
    stage.make_map("a", "old").await;
    let seen = stage.step(|cx, cluster| async move {
        let maps = cluster.watch(Query::named(&kinds::CONFIG_MAP, Some("default"), "a"));
        let value = || {
            maps.judge_one(|map| match map.and_then(|map| map.text("/data/k")) {
                Some(value) => Verdict::Done(value.to_owned()),
                None => Verdict::Pending(Why::waiting(maps.query().object(), "absent", "has not appeared")),
            })
        };
        let before = cx.wait(maps.changes(), value).await?;
        cluster.patch(&cx, &kinds::CONFIG_MAP, Some("default"), "a", json!({"data": {"k": "new"}})).await?;
        let after = cx.wait(maps.changes(), value).await?;
        Ok((before, after))
    });
    assert_eq!(seen.await.unwrap(), ("old".to_owned(), "new".to_owned()));
}
