//! Writes against a small server of our own.

use std::sync::Arc;

use serde_json::json;
use toolbox_engine::plan::{Plan, RunOptions, run};
use toolbox_engine::{Clock, Step, StepSpec};

use super::*;
use crate::testing::{Script, cluster};

async fn step<R>(cluster: &Cluster, what: impl FnOnce(StepCx, Cluster) -> R + Send + 'static) -> Result<Applied, Why>
where
    R: Future<Output = Result<Applied, Why>> + Send + 'static,
{
    let found = Arc::new(std::sync::Mutex::new(None));
    let (keep, cluster) = (found.clone(), cluster.clone());
    let mut plan = Plan::new("test");
    plan.step(StepSpec::change("make", "make"), (), move |cx, ()| async move {
        *keep.lock().unwrap() = Some(what(cx, cluster).await?);
        Ok(Step::Changed((), String::new()))
    });
    let outcome = run(plan, RunOptions::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH))).await;
    let found = found.lock().unwrap().take();
    found.ok_or_else(|| outcome.why.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_was_lost_is_looked_for_before_it_is_repeated() {
    let script = Script::new();
    // Nothing there; the create is done but its answer is lost; then the object is there with our mark.
    let made = Arc::new(std::sync::Mutex::new(None::<Value>));
    let store = made.clone();
    script.answer(move |request| {
        let mut stored = store.lock().unwrap();
        match request.method.as_str() {
            "POST" => {
                let mut object = request.json();
                object["metadata"]["uid"] = "u1".into();
                *stored = Some(object);
                Err("connection reset".to_owned())
            }
            _ => Ok(match &*stored {
                Some(object) => (200, object.clone()),
                None => (404, json!({"reason": "NotFound", "details": {"name": "burn"}})),
            }),
        }
    });
    let cluster = cluster(&script).with_run_id("run-1");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "burn", "namespace": "ns"}});
    let applied = step(&cluster, |cx, cluster| async move { cluster.create(&cx, pod).await }).await.unwrap();
    assert_eq!(applied.change, Change::Created);
    assert_eq!(applied.what(), "created Pod ns/burn");
    assert_eq!(applied.object.label(MANAGED_BY), Some(MANAGER));
    assert_eq!(applied.object.annotation(RUN), Some("run-1"));
    assert_eq!(cluster.traffic().requests["create"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_refuses_a_second_deletion_is_being_deleted() {
    for (deleting, gone) in [(true, Ok(true)), (false, Err("conflict"))] {
        let script = Script::new();
        script.answer(move |asked| {
            if asked.method == "DELETE" {
                return Ok((
                    409,
                    json!({"reason": "Conflict", "message": "The system is ensuring all content is removed"}),
                ));
            }
            let stamp = deleting.then_some("2026-01-01T00:00:00Z");
            let metadata = json!({"name": "ns", "uid": "u1", "deletionTimestamp": stamp});
            Ok((200, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})))
        });
        let cluster = cluster(&script);
        let found = Arc::new(std::sync::Mutex::new(None));
        let keep = found.clone();
        let _ = step(&cluster, |cx, cluster| async move {
            let target = ObjectRef::new("v1", "Namespace", None, "ns").with_uid("u1");
            *keep.lock().unwrap() = Some(cluster.delete(&cx, &target).await);
            Ok(Applied { object: Object::new(json!({})), change: Change::Unchanged })
        })
        .await;
        let found = found.lock().unwrap().take().unwrap();
        assert_eq!(found.map_err(|why| why.code.into_owned()), gone.map_err(str::to_owned));
    }
}

/// A server that answers by the second of its clock.
fn by_time(
    script: &Script,
    clock: Clock,
    answer: impl Fn(u64, &crate::testing::Asked) -> (u16, Value) + Send + Sync + 'static,
) {
    script.answer(move |asked| Ok(answer(clock.elapsed().as_secs(), asked)));
}

#[tokio::test(start_paused = true)]
async fn a_kind_and_a_webhook_that_are_just_starting_get_some_seconds() {
    let script = Script::new();
    let cluster = cluster(&script);
    by_time(&script, cluster.clock().clone(), |second, asked| match (second, &*asked.method) {
        (0..8, _) => (404, json!("404 page not found")),
        (_, "GET") => (404, json!({"reason": "NotFound", "details": {"name": "gpu"}})),
        (8..15, _) => {
            (500, json!({"reason": "InternalError", "message": "failed calling webhook \"x\": connection refused"}))
        }
        _ => (201, asked.json()),
    });
    let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}});
    let done = step(&cluster, |cx, cluster| async move { cluster.apply(&cx, policy).await }).await.unwrap();
    assert_eq!(done.change, Change::Created);
    assert!((15..20).contains(&cluster.clock().elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_never_comes_is_said_not_to_be_served() {
    let script = Script::new();
    let cluster = cluster(&script);
    script.answer(|_| Ok((404, json!("404 page not found"))));
    let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}});
    let why = step(&cluster, |cx, cluster| async move { cluster.apply(&cx, policy).await }).await.unwrap_err();
    assert_eq!(why.code, "kind-not-served");
    assert!(cluster.clock().elapsed() < Duration::from_secs(31));
}
