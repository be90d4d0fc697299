//! The parts of the steps that are rules.

use serde_json::json;
use toolbox_engine::plan::{Plan, RunOptions, run};
use toolbox_engine::{Exit, ObjectRef, Step, StepSpec, Why};

use super::instance::{create, example, passes};
use crate::testing::{Script, cluster};
use crate::{ClusterError, Object, kinds};

#[test]
fn the_example_is_found_by_group_and_kind_and_not_by_its_place() {
    let examples = json!([
        {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver"},
        {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "theirs"}},
        {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu-cluster-policy"}},
    ]);
    let csv = Object::new(json!({"kind": "ClusterServiceVersion", "metadata": {"name": "x",
        "annotations": {"alm-examples": examples.to_string()}}}));
    assert_eq!(example(&csv, &kinds::CLUSTER_POLICY).unwrap()["metadata"]["name"], "gpu-cluster-policy");
    let why = example(&csv, &kinds::NODE_FEATURE_DISCOVERY).unwrap_err();
    assert_eq!(why.next, "examples there are: NVIDIADriver, ClusterPolicy, ClusterPolicy");
}

#[test]
fn only_an_api_that_is_not_ready_is_tried_again() {
    let object = ObjectRef::new("nvidia.com/v1", "ClusterPolicy", None, "x");
    let other = |code, message: &str| {
        Why::from(ClusterError::Other {
            object: object.clone(),
            code,
            reason: "InternalError".to_owned(),
            message: message.to_owned(),
        })
    };
    assert!(passes(&Why::from(ClusterError::NotServed { object: object.clone() })));
    assert!(passes(&other(
        500,
        "Internal error occurred: failed calling webhook \"v.x\": connect: connection refused"
    )));
    assert!(!passes(&other(500, "etcd is out of space")));
    let invalid = ClusterError::Invalid {
        object: object.clone(),
        causes: Vec::new(),
        message: "spec.operator: Required value".to_owned(),
    };
    assert!(!passes(&Why::from(invalid)));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_takes_minutes_is_waited_for() {
    let script = Script::new();
    let cluster = cluster(&script);
    let clock = cluster.clock().clone();
    script.answer(move |asked| {
        Ok(match (clock.elapsed().as_secs(), &*asked.method) {
            (_, "GET") => (404, json!({"reason": "NotFound", "details": {"name": "gpu"}})),
            (0..100, _) => {
                (500, json!({"reason": "InternalError", "message": "failed calling webhook \"x\": connection refused"}))
            }
            _ => (201, asked.json()),
        })
    });
    let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}});
    let clock = cluster.clock().clone();
    let mut plan = Plan::new("test");
    let describe = StepSpec::change("make", "make").deadline(std::time::Duration::from_secs(300));
    plan.step(describe, (), move |cx, ()| async move {
        let applied = create(&cx, &cluster, policy, None).await?;
        Ok(Step::Changed((), applied.what()))
    });
    let outcome = run(plan, RunOptions::new(clock.clone())).await;
    assert_eq!(outcome.exit, Exit::Done, "{:?}", outcome.why);
    assert!((100..110).contains(&clock.elapsed().as_secs()), "{:?}", clock.elapsed());
}
