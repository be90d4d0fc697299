//! The parts of the steps that are rules.

use serde_json::json;
use toolbox_engine::{ObjectRef, Why};

use super::instance::{example, passes};
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
