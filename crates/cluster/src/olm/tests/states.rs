//! What the states of Subscriptions, InstallPlans and CSVs mean for somebody who waits.

use std::time::Duration;

use jiff::Timestamp;
use toolbox_engine::{Verdict, Why};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn failed<T: std::fmt::Debug>(verdict: Verdict<T>) -> Why {
    match verdict {
        Verdict::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

fn pending<T: std::fmt::Debug>(verdict: Verdict<T>) -> Why {
    match verdict {
        Verdict::Pending(why) => why,
        other => panic!("{other:?}"),
    }
}

fn subscription(conditions: Value) -> Object {
    Object::new(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "gpu-operator-certified", "namespace": "nvidia-gpu-operator"},
        "status": {"conditions": conditions},
    }))
}

fn catalog(name: &str, state: &str) -> Object {
    Object::new(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": MARKETPLACE},
        "status": {"connectionState": {"lastObservedState": state, "lastConnect": "2026-01-01T00:00:00Z"}},
    }))
}

fn look(subscription: &Object, catalogs: &[Object], seconds: i64, patience: &mut Patience) -> Verdict<()> {
    let sight = Sight { package: &gpu(), catalogs, now: at(seconds) };
    subscription_verdict(subscription, &sight, patience)
}

#[test]
fn resolution_that_fails_twice_in_a_row_ends_the_wait_in_plain_words() {
    let message = "constraints not satisfiable: clusterserviceversion gpu-operator-certified.v1.10.1 exists and is not referenced by a subscription";
    let there = subscription(json!([
        {"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable", "message": message}]));
    let mut patience = Patience::default();
    pending(look(&there, &[], 0, &mut patience));
    let fine = subscription(json!([]));
    assert_eq!(look(&fine, &[], 5, &mut patience), Verdict::Done(()));
    pending(look(&there, &[], 10, &mut patience));
    let why = failed(look(&there, &[], 20, &mut patience));
    assert!(why.cause.starts_with("a CSV of an earlier installation is in the way"), "{}", why.cause);
    assert!(why.cause.contains(message));
}

#[test]
fn another_teams_catalog_is_named_tolerated_and_then_an_infrastructure_failure() {
    let there = subscription(
        json!([{"type": "ResolutionFailed", "status": "True", "reason": "ErrorPreventedResolution",
        "message": "failed to populate resolver cache from source team-old/openshift-marketplace: connection refused"}]),
    );
    let catalogs = [
        catalog("team", "CONNECTING"),
        catalog("team-old", "TRANSIENT_FAILURE"),
        catalog("certified-operators", "READY"),
    ];
    let mut patience = Patience::default();
    let why = pending(look(&there, &catalogs, 0, &mut patience));
    assert_eq!(why.object.name, "team-old");
    assert!(why.cause.contains("not the one"), "{}", why.cause);
    assert!(why.cause.contains("TRANSIENT_FAILURE since"), "{}", why.cause);
    pending(look(&there, &catalogs, 200, &mut patience));
    let why = failed(look(&there, &catalogs, 301, &mut patience));
    assert_eq!(why.verdict, toolbox_engine::FailureVerdict::Infrastructure);
}

#[test]
fn a_subscription_older_than_its_catalog_is_to_be_made_again() {
    let there = subscription(json!([
        {"type": "CatalogSourcesUnhealthy", "status": "True", "reason": "NoCatalogSourcesFound", "message": "no catalogs"},
        {"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable",
         "message": "no operators found in package gpu-operator-certified"}]));
    let mut patience = Patience::default();
    let catalogs = [catalog("certified-operators", "READY")];
    pending(look(&there, &catalogs, 0, &mut patience));
    let why = failed(look(&there, &catalogs, 60, &mut patience));
    assert!(
        why.next.contains(
            "kubectl delete subscriptions.operators.coreos.com gpu-operator-certified -n nvidia-gpu-operator"
        ),
        "{}",
        why.next
    );
}

#[test]
fn a_bundle_that_cannot_be_unpacked_ends_the_wait_in_the_new_shape_and_the_old() {
    let there = subscription(json!([{"type": "BundleUnpackFailed", "status": "True", "reason": "BundleUnpackFailed",
        "message": "bundle unpacking failed. Reason: DeadlineExceeded"}]));
    let why = failed(look(&there, &[], 0, &mut Patience::default()));
    assert_eq!(why.code, "bundle-unpack-failed");
    assert!(why.next.contains("OLM remembers it"));
    let old = Object::new(json!({"kind": "InstallPlan", "status": {"phase": "Installing", "bundleLookups": [
        {"conditions": [{"type": "BundleLookupPending", "status": "True", "reason": "JobIncomplete",
                         "message": "unpack job not completed: Back-off pulling image (ImagePullBackOff)"}]}]}}));
    assert_eq!(failed(plan_verdict(&old)).code, "bundle-unpack-failed");
    let job = Object::new(json!({"kind": "Job", "metadata": {"name": "1a2b"}, "status": {"failed": 1, "conditions": [
        {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too slow"}]}}));
    assert_eq!(failed_job(&[job]), Some(("1a2b".to_owned(), "DeadlineExceeded: too slow".to_owned())));
}

#[test]
fn a_plan_says_what_it_waits_for_and_why_it_failed() {
    let plan = |status: Value| {
        Object::new(json!({"kind": "InstallPlan", "metadata": {"name": "install-1"}, "status": status}))
    };
    let fresh = plan(json!({}));
    assert_eq!(pending(plan_verdict(&fresh)).cause, "is not looked at yet");
    assert_eq!(pending(plan_written(&fresh)).cause, "has no phase yet: OLM is still writing it");
    let written = plan(json!({"phase": "RequiresApproval"}));
    assert_eq!((plan_written(&written), wants_approval(&written)), (Verdict::Done(()), true));
    assert!(!wants_approval(&fresh));
    assert_eq!(pending(plan_verdict(&plan(json!({"phase": "RequiresApproval"})))).cause, "waits for approval");
    assert_eq!(plan_verdict(&plan(json!({"phase": "Complete"}))), Verdict::Done(()));
    let broken = plan(json!({"phase": "Failed", "conditions": [
        {"type": "Installed", "status": "False", "reason": "InstallComponentFailed", "message": "no such CRD"}]}));
    assert_eq!(failed(plan_verdict(&broken)).cause, "the InstallPlan failed: no such CRD");
}

fn csv(status: Value) -> Object {
    Object::new(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "gpu-operator-certified.v1.11.0", "namespace": "nvidia-gpu-operator"}, "status": status,
    }))
}

#[test]
fn a_csv_is_read_by_its_phase_and_not_by_its_reason() {
    let mut patience = Patience::default();
    let mut judge = |status: Value| csv_verdict(&csv(status), &mut patience, at(0));
    assert!(matches!(judge(json!({"phase": "Succeeded", "reason": "InstallSucceeded"})), Verdict::Done(_)));
    let installing = judge(
        json!({"phase": "Installing", "reason": "InstallSucceeded", "message": "waiting for install components to report healthy"}),
    );
    assert_eq!(pending(installing).cause, "is Installing: waiting for install components to report healthy");
    let missing = judge(
        json!({"phase": "Pending", "reason": "RequirementsNotMet", "message": "one or more requirements couldn't be found",
        "requirementStatus": [{"kind": "ServiceAccount", "name": "gpu-operator", "status": "NotPresent"},
                              {"kind": "CustomResourceDefinition", "name": "x", "status": "Present"}]}),
    );
    assert_eq!(pending(missing).cause, "is Pending: needs ServiceAccount gpu-operator");
    assert_eq!(pending(judge(json!({}))).code, "csv-new");
}

#[test]
fn reasons_that_stay_end_the_wait_and_those_that_pass_are_put_up_with_for_a_while() {
    let group = json!({"phase": "Failed", "reason": "UnsupportedOperatorGroup", "message": "OwnNamespace InstallModeType not supported"});
    let why = failed(csv_verdict(&csv(group), &mut Patience::default(), at(0)));
    assert_eq!(why.cause, "failed with UnsupportedOperatorGroup: OwnNamespace InstallModeType not supported");
    assert_eq!(why.verdict, toolbox_engine::FailureVerdict::Configuration);
    let unhealthy =
        csv(json!({"phase": "Failed", "reason": "ComponentUnhealthy", "message": "deployment not available"}));
    let mut patience = Patience::default();
    let why = pending(csv_verdict(&unhealthy, &mut patience, at(0)));
    assert!(why.cause.ends_with("OLM tries again"), "{}", why.cause);
    // It recovers, fails again, and has its time again.
    pending(csv_verdict(&csv(json!({"phase": "Installing", "message": "x"})), &mut patience, at(170)));
    pending(csv_verdict(&unhealthy, &mut patience, at(180)));
    failed(csv_verdict(&unhealthy, &mut patience, at(360)));
}

#[test]
fn patience_is_counted_from_the_first_sight_without_a_break() {
    let mut patience = Patience::default();
    let limit = Duration::from_secs(10);
    assert!(!patience.is_over("x", at(0), limit));
    assert!(patience.is_over("x", at(10), limit));
    patience.forget("x");
    assert!(!patience.is_over("x", at(11), limit));
}
