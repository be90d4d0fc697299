//! The ClusterPolicy: created as soon as the API knows its kind and the version's own example is there.

use std::time::Duration;

use serde_json::Value;
use toolbox_core::cluster::olm::steps::{Installed, create, kind_is_served};
use toolbox_core::cluster::{Change, Cluster, Object, Query, conditions, kinds};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{Plan, Step, StepCx, StepSpec, Verdict, Why};

use super::policy;
use crate::names::CRD;

/// How long the kind may take to be served once the operator is installed.
const CRD_DEADLINE: Duration = Duration::from_secs(300);

/// Looks for a CRD that an earlier installation left: it may refuse what the new version's ClusterPolicy has.
pub(super) fn leftover_step(plan: &mut Plan, cluster: &Cluster, after: After) -> Out<bool> {
    let describe = crate::asking("gpu-operator.leftover-crd", "a CRD left by an earlier version")
        .does(Effect::on(Act::Read, &kinds::CRD, None, CRD))
        .does(Effect::any(Act::Read, &kinds::CSV, None));
    let cluster = cluster.clone();
    plan.step(describe, after, |cx, ()| async move {
        let Some(crd) = cluster.get(&kinds::CRD, None, CRD).await? else {
            return Ok(Step::AlreadySo(false, "there is none".to_owned()));
        };
        let csvs = match cluster.list(&Query::all(&kinds::CSV)).await {
            Ok(csvs) => csvs,
            Err(error) if error.is_not_served() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if csvs.iter().any(owns_the_crd) {
            return Ok(Step::AlreadySo(false, "the CRD belongs to an installed version".to_owned()));
        }
        let since = crd.created().unwrap_or("an unknown time").to_owned();
        cx.warn(
            "leftover_crd",
            format!("CRD {CRD} of {since} is left from an earlier installation; no installed version owns it"),
        );
        Ok(Step::AlreadySo(true, format!("the CRD of {since} belongs to no installed version")))
    })
}

fn owns_the_crd(csv: &Object) -> bool {
    csv.list("/spec/customresourcedefinitions/owned")
        .iter()
        .any(|owned| owned.get("name").and_then(Value::as_str) == Some(CRD))
}

/// Adds the steps that create the ClusterPolicy.
pub(super) fn steps(
    plan: &mut Plan,
    cluster: &Cluster,
    patch: Option<Value>,
    installed: &Installed,
    leftover: Out<bool>,
) -> Out<Object> {
    let crd = kind_is_served(plan, cluster, ("gpu-operator", &kinds::CLUSTER_POLICY), CRD_DEADLINE, installed);
    let describe = StepSpec::change("gpu-operator.cluster-policy", "the ClusterPolicy")
        .deadline(CRD_DEADLINE)
        .does(Effect::any(Act::Watch, &kinds::CLUSTER_POLICY, None))
        .does(Effect::decided(Act::Apply, &kinds::CLUSTER_POLICY, None, "the CSV's examples"));
    let cluster = cluster.clone();
    plan.step(describe, (installed.csv, crd, leftover), move |cx, (csv, _, leftover)| async move {
        if let Some(present) = present(&cx, &cluster).await? {
            return change(&cx, &cluster, present, patch.as_ref()).await;
        }
        let examples = csv.annotation("alm-examples");
        let manifest =
            policy::from_examples(examples, patch.as_ref()).map_err(|cause| Why::new(csv.refer(), &cause))?;
        let pretty = serde_json::to_string_pretty(&manifest).unwrap_or_default();
        cx.file("gpu_operator_clusterpolicy.json", format!("{pretty}\n"));
        let applied = create(&cx, &cluster, manifest, patch.as_ref()).await.map_err(|why| {
            if *leftover && why.code.contains("invalid") {
                let next = format!(
                    "delete the CRD that an earlier version left, and run again: kubectl delete {} {CRD}",
                    kinds::CRD.full_name()
                );
                let verdict = why.verdict;
                return why.or_else(verdict, next);
            }
            why
        })?;
        Ok(step_of(applied.object.clone(), applied.change, applied.what()))
    })
}

fn step_of(object: Object, change: Change, what: String) -> Step<Object> {
    match change {
        Change::Unchanged => Step::AlreadySo(object, what),
        Change::Created | Change::Updated => Step::Changed(object, what),
    }
}

/// The ClusterPolicy that is there. One that is being deleted is waited for.
async fn present(cx: &StepCx, cluster: &Cluster) -> Result<Option<Object>, Why> {
    let list = cluster.list(&Query::all(&kinds::CLUSTER_POLICY)).await;
    let policies = match list {
        Ok(policies) => policies,
        Err(error) if error.is_not_served() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if let Some(policy) = policies.iter().find(|policy| !policy.is_deleting()) {
        return Ok(Some(policy.clone()));
    }
    if policies.is_empty() || cx.dry() {
        return Ok(None);
    }
    let watched = cluster.watch(Query::all(&kinds::CLUSTER_POLICY));
    cx.wait(watched.changes(), || {
        watched.judge_absence(|now| {
            let gone = policies.iter().map(|policy| conditions::gone(now, &policy.refer()));
            Verdict::all(gone).map(|_| ())
        })
    })
    .await?;
    Ok(None)
}

/// Keeps a ClusterPolicy as it is, but for what was asked to be changed.
async fn change(cx: &StepCx, cluster: &Cluster, present: Object, patch: Option<&Value>) -> Result<Step<Object>, Why> {
    let name = present.name().to_owned();
    let Some(patch) = patch else {
        let what = format!("ClusterPolicy {name} is there and stays as it is");
        return Ok(Step::AlreadySo(present, what));
    };
    let mut patched = present.value().clone();
    super::patch::merge(&mut patched, patch);
    if patched == *present.value() {
        let what = format!("ClusterPolicy {name} is there, with the changes asked for");
        return Ok(Step::AlreadySo(present, what));
    }
    let applied = cluster.patch(cx, &kinds::CLUSTER_POLICY, None, &name, patch.clone()).await?;
    Ok(step_of(applied.object.clone(), applied.change, applied.what()))
}
