//! Writes against a small server of our own.

use std::sync::Arc;

use serde_json::json;
use toolbox_engine::plan::{Plan, RunOptions, run};
use toolbox_engine::{Clock, Exit, Step, StepSpec};

use super::*;
use crate::testing::{Script, cluster};

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
    let mut plan = Plan::new("test");
    plan.step(StepSpec::change("make", "make"), (), {
        let cluster = cluster.clone();
        move |cx, ()| async move {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "burn", "namespace": "ns"}});
            let applied = cluster.create(&cx, pod).await?;
            assert_eq!(applied.change, Change::Created);
            assert_eq!(applied.object.label(MANAGED_BY), Some(MANAGER));
            assert_eq!(applied.object.annotation(RUN), Some("run-1"));
            Ok(Step::Changed((), applied.what()))
        }
    });
    let outcome = run(plan, RunOptions::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH))).await;
    assert_eq!(outcome.exit, Exit::Done, "{:?}", outcome.why);
    assert_eq!(cluster.traffic().requests["create"], 1);
}
