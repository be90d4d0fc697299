//! `nfd deploy` where catalogs and OLM are not as they should be: several catalogs, a package server that forgets, a plan
//! with others' operators in it.

use serde_json::json;
use tool_nfd::DeploySpec;
use toolbox_core::cluster::kinds;
use toolbox_core::engine::{Exit, FailureVerdict, Plan};
use toolbox_core::{Verb, VerbEnv};
use toolbox_testkit::{Fault, FaultRule, Rehearsed, Scenario};

const NS: &str = "openshift-nfd";
const CSV: &str = "nfd.4.11.0-202212070335";

fn plan(rehearsed: &Rehearsed, spec: DeploySpec) -> Plan {
    Box::new(spec).plan(&VerbEnv::new(rehearsed.cluster.clone())).expect("the verb has a plan")
}

/// A second catalog with the same packages under another name.
fn nightly(scenario: &mut Scenario) {
    let mut other = scenario.catalogs[0].clone();
    assert_eq!(other.name, "redhat-operators");
    "a-team-nightly".clone_into(&mut other.name);
    scenario.catalogs.push(other);
}

/// A GET by name returns the package of one catalog or the other, now this one, now that one.
#[tokio::test(start_paused = true)]
async fn of_two_catalogs_with_the_package_the_usual_one_is_used_and_the_other_is_mentioned() {
    for (catalog, other) in [("redhat-operators", "a-team-nightly"), ("a-team-nightly", "redhat-operators")] {
        let rehearsed = Rehearsed::with("default", &[], nightly).await;
        let spec = DeploySpec { catalog: catalog.to_owned(), ..DeploySpec::default() };
        let ran = rehearsed.run(plan(&rehearsed, spec)).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
        let subscription = rehearsed.object(&kinds::SUBSCRIPTION, Some(NS), "nfd").await;
        assert_eq!(subscription.text("/spec/source"), Some(catalog));
        let told = format!("package nfd is also in {other}; {catalog} is the one used");
        assert!(ran.notes().contains(&told.as_str()), "{:?}", ran.notes());
    }
}

/// The package server has replicas with caches of their own: the package is found, and a second later it is not.
#[tokio::test(start_paused = true)]
async fn one_good_look_at_the_package_is_enough() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let away = FaultRule::new(Fault::Status(503)).path("packagemanifests").skip(1);
    rehearsed.world().api().faults().add(away);
    let ran = rehearsed.run(plan(&rehearsed, DeploySpec::default())).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
}

/// OLM resolves a namespace as a whole: approving our plan would upgrade what others pinned there on purpose.
#[tokio::test(start_paused = true)]
async fn a_plan_with_somebody_elses_operator_is_only_approved_when_asked_to() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    // As an earlier run leaves it that was stopped before it approved anything.
    rehearsed.somebody_creates(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})).await;
    rehearsed
        .somebody_creates(json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "openshift-nfd-ci", "namespace": NS}, "spec": {"targetNamespaces": [NS]}}))
        .await;
    rehearsed
        .somebody_creates(json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "nfd", "namespace": NS},
            "spec": {"name": "nfd", "channel": "stable", "source": "redhat-operators", "startingCSV": CSV,
                "sourceNamespace": "openshift-marketplace", "installPlanApproval": "Manual"}}))
        .await;
    rehearsed.clock.sleep(std::time::Duration::from_secs(60)).await;
    let plans = rehearsed.all(&kinds::INSTALL_PLAN).await;
    let [install_plan] = plans.as_slice() else { panic!("one plan: {plans:?}") };
    assert_eq!(install_plan.text("/status/phase"), Some("RequiresApproval"));
    let both = json!({"spec": {"clusterServiceVersionNames": [CSV, "billing-operator.v5.1.0"]}});
    rehearsed.somebody_changes(&kinds::INSTALL_PLAN, Some(NS), install_plan.name(), both).await;

    let ran = rehearsed.run(plan(&rehearsed, DeploySpec::default())).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    let why = ran.why();
    assert_eq!((why.code.as_ref(), why.verdict), ("strangers-in-plan", FailureVerdict::Configuration), "{why}");
    assert_eq!((why.object.kind.as_str(), why.object.name.as_str()), ("InstallPlan", install_plan.name()));
    assert!(why.cause.contains("billing-operator.v5.1.0") && why.next.contains("--approve-strangers"), "{why}");
    let now = rehearsed.object(&kinds::INSTALL_PLAN, Some(NS), install_plan.name()).await;
    assert_eq!(now.flag("/spec/approved"), Some(false));

    let spec = DeploySpec { approve_strangers: true, ..DeploySpec::default() };
    let ran = rehearsed.run(plan(&rehearsed, spec)).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert!(ran.notes().iter().any(|note| note.contains("billing-operator.v5.1.0")), "{:?}", ran.notes());
}
