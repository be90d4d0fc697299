//! Answers of real servers, read.

use super::*;
use serde_json::{Value, json};

fn read(code: u16, body: &Value) -> ClusterError {
    let object = ObjectRef::new("apps/v1", "Deployment", Some("ns"), "x");
    ClusterError::of_answer(code, body.to_string().as_bytes(), "patch", &object)
}

#[test]
fn an_unknown_kind_is_not_a_missing_object() {
    let object = ObjectRef::new("nvidia.com/v1", "ClusterPolicy", None, "gpu");
    let plain = ClusterError::of_answer(404, b"404 page not found\n", "get", &object);
    assert!(plain.is_not_served());
    let unknown = json!({"reason": "NotFound", "details": {}, "code": 404,
        "message": "the server could not find the requested resource"});
    assert!(read(404, &unknown).is_not_served());
    let missing = json!({"reason": "NotFound", "details": {"name": "x", "kind": "deployments"}});
    assert!(matches!(read(404, &missing), ClusterError::NotFound { .. }));
}

#[test]
fn a_create_in_a_missing_namespace_is_about_the_namespace() {
    let body = json!({"reason": "NotFound", "details": {"name": "ns", "kind": "namespaces"}});
    assert_eq!(read(404, &body).object().to_string(), "Namespace/ns");
}

#[test]
fn a_conflict_names_the_other_manager_and_the_field() {
    let body = json!({"reason": "Conflict", "message": "Apply failed", "details": {"causes": [
        {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl-edit\" using apps/v1", "field": ".spec.replicas"}]}});
    let why = Why::from(read(409, &body));
    assert_eq!(why.to_string(), "Deployment/ns/x: `kubectl-edit` owns .spec.replicas");
    assert!(why.next.contains("--force-conflicts"));
}

#[test]
fn a_refused_object_prints_its_field_paths_and_is_a_configuration_error() {
    let body = json!({"reason": "Invalid", "message": "long", "details": {"causes": [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.operator.deployGFD"}]}});
    let why = Why::from(read(422, &body));
    assert!(why.cause.contains("spec.operator.deployGFD: Required value"));
    assert_eq!(why.exit, Exit::Configuration);
}

#[test]
fn a_missing_right_names_the_user() {
    let body = json!({"reason": "Forbidden", "message":
        "deployments.apps \"x\" is forbidden: User \"system:serviceaccount:ci:bot\" cannot patch resource"});
    let why = Why::from(read(403, &body));
    assert_eq!(why.cause, "`system:serviceaccount:ci:bot` may not patch it");
    assert_eq!(why.exit, Exit::Access);
}

#[test]
fn a_terminating_namespace_is_not_a_missing_right() {
    let body = json!({"reason": "Forbidden", "message": "because it is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating"}]}});
    let why = Why::from(read(403, &body));
    assert_eq!(why.code, "namespace-terminating");
    assert_eq!(why.exit, Exit::Failed);
}
