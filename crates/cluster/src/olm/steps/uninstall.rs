//! Removing an operator in an order that lets its finalizers finish: custom resource, Subscription, CSV, CRD, namespace.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolbox_engine::plan::{Act, After, Effect, Kind, Out};
use toolbox_engine::{FailureVerdict, ObjectRef, Plan, Step, StepCx, StepSpec, Verdict, Why};

use super::access::delete_and_wait;
use super::removal::{Found, find};
use crate::olm::{OlmCause, PackageRef};
use crate::{Cluster, Object, Query, Watched, conditions, kinds};

/// How long the operator gets to clean up before its finalizers are stripped, when that was asked for.
const STRIP_AFTER: Duration = Duration::from_secs(60);

/// An operator to be removed.
#[derive(Clone, Debug)]
pub struct UninstallSpec {
    /// Prefix of the steps' ids.
    pub id: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Its package; the catalog does not matter.
    pub package: PackageRef,
    /// The namespace asked for; found from the Subscription when absent.
    pub namespace: Option<String>,
    /// Where to look when there is neither a Subscription nor a CSV.
    pub usual_namespace: &'static str,
    /// The kinds of its custom resources. Those that it serves go, in this order, and those that this program made.
    pub instances: Vec<Kind>,
    /// Strip finalizers that nobody removes.
    pub strip_finalizers: bool,
    /// How long custom resources may take to go.
    pub instances_deadline: Duration,
}

/// The flag that [`UninstallSpec::strip_finalizers`] stands for, as causes name it.
const STRIP_FLAG: &str = "--strip-finalizers";

/// Handles to what a removal yields.
#[derive(Clone, Copy, Debug)]
pub struct Uninstalled {
    /// What was there.
    pub found: Out<Found>,
    /// Ready when everything that was to go is gone.
    pub gone: Out<()>,
}

/// Adds the steps that remove an operator. Nothing is there: every step says so and nothing is done.
pub fn uninstall(plan: &mut Plan, cluster: &Cluster, spec: UninstallSpec, after: After) -> Uninstalled {
    let spec = Arc::new(spec);
    let found = find_step(plan, cluster, &spec, after);
    let instances = instances_step(plan, cluster, &spec, found);
    let operator = operator_step(plan, cluster, &spec, found, instances);
    let crds = crds_step(plan, cluster, &spec, found, operator);
    let gone = namespace_step(plan, cluster, &spec, found, crds);
    Uninstalled { found, gone }
}

fn id(spec: &UninstallSpec, step: &str) -> String {
    format!("{}.{step}", spec.id)
}

fn names(objects: &[ObjectRef]) -> String {
    let names: Vec<String> = objects.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn find_step(plan: &mut Plan, cluster: &Cluster, spec: &Arc<UninstallSpec>, after: After) -> Out<Found> {
    let mut describe = StepSpec::ask(&id(spec, "find"), format!("what there is of {}", spec.title))
        .deadline(super::access::ASK)
        .does(Effect::any(Act::Read, &kinds::SUBSCRIPTION, None))
        .does(Effect::any(Act::Read, &kinds::CSV, None))
        .does(Effect::any(Act::Read, &kinds::CRD, None))
        .does(Effect::any(Act::Read, &kinds::OPERATOR_GROUP, spec.namespace.as_deref()))
        .does(Effect::any(Act::Read, &kinds::DEPLOYMENT, spec.namespace.as_deref()))
        .does(Effect::any(Act::Read, &kinds::NAMESPACE, None));
    for kind in &spec.instances {
        describe = describe.does(Effect::any(Act::Read, kind, None));
    }
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, after, |cx, ()| async move {
        let found = find(&cluster, &spec).await?;
        for what in &found.stays {
            cx.note(format!("stays: {what}"));
        }
        let what = if found.is_empty() {
            format!("nothing of {} is there", spec.title)
        } else {
            let all = [&found.instances, &found.subscriptions, &found.csvs];
            let all: Vec<String> = all.into_iter().flatten().map(ToString::to_string).collect();
            all.join(", ")
        };
        Ok(Step::AlreadySo(found, what))
    })
}

fn instances_step(plan: &mut Plan, cluster: &Cluster, spec: &Arc<UninstallSpec>, found: Out<Found>) -> Out<()> {
    let mut describe = StepSpec::change(&id(spec, "instances"), format!("the custom resources of {} go", spec.title))
        .deadline(spec.instances_deadline)
        .leaves("the operator, which the custom resources need to go");
    for kind in &spec.instances {
        describe = describe.does(Effect::any(Act::Delete, kind, None));
        if spec.strip_finalizers {
            describe = describe.does(Effect::any(Act::Patch, kind, None));
        }
    }
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, found, |cx, found| async move {
        if found.instances.is_empty() {
            return Ok(Step::AlreadySo((), "there is none".to_owned()));
        }
        for object in &found.instances {
            cluster.delete(&cx, object).await?;
        }
        if !cx.dry() {
            instances_gone(&cx, &cluster, &spec, &found).await?;
        }
        Ok(Step::Changed((), format!("removed {}", names(&found.instances))))
    })
}

/// Waits until the custom resources are gone. Without the operator a finalizer stays for ever: then, or when the
/// operator had its time, it is stripped if that was asked for.
async fn instances_gone(cx: &StepCx, cluster: &Cluster, spec: &UninstallSpec, found: &Found) -> Result<(), Why> {
    let watched: Vec<_> = spec.instances.iter().map(|kind| cluster.watch(Query::all(kind))).collect();
    let ours = |object: &&Object| found.instances.iter().any(|one| one.uid.as_deref() == Some(object.uid()));
    let judge = || {
        let verdicts = watched.iter().map(|watched| {
            watched.judge_absence(|objects| match objects.iter().find(ours) {
                None => Verdict::Done(()),
                Some(object) => one_left(object, spec, found),
            })
        });
        Verdict::all(verdicts).map(|_| ())
    };
    let changes =
        || watched.iter().map(Watched::changes).reduce(toolbox_engine::plan::Changes::and).unwrap_or_default();
    if !spec.strip_finalizers {
        return cx.wait(changes(), judge).await;
    }
    if found.operator_is_there {
        tokio::select! {
            biased;
            gone = cx.wait(changes(), judge) => return gone,
            () = cx.clock().sleep(STRIP_AFTER) => {}
        }
    }
    for kind in &spec.instances {
        let left = match cluster.list(&Query::all(kind)).await {
            Ok(left) => left,
            Err(error) if error.is_not_served() => continue,
            Err(error) => return Err(error.into()),
        };
        for object in left.iter().filter(ours) {
            if object.finalizers().is_empty() {
                continue;
            }
            let text = format!("{}: stripped {}, as asked", object.refer(), object.finalizers().join(", "));
            cx.warn("finalizers-stripped", text);
            // With its uid, so that an object that has taken its name meanwhile keeps its own.
            let patch = json!({"metadata": {"finalizers": null, "uid": object.uid()}});
            cluster.patch(cx, kind, object.namespace(), object.name(), patch).await?;
        }
    }
    cx.wait(changes(), judge).await
}

fn one_left(object: &Object, spec: &UninstallSpec, found: &Found) -> Verdict<()> {
    let finalizers: Vec<String> = object.finalizers().into_iter().map(str::to_owned).collect();
    let stuck = object.is_deleting() && !finalizers.is_empty();
    if stuck && !found.operator_is_there && !spec.strip_finalizers {
        let cause = OlmCause::OperatorGone { finalizers, flag: STRIP_FLAG.to_owned() };
        return Verdict::Failed(Why::new(object.refer(), &cause));
    }
    match conditions::gone(std::slice::from_ref(object), &object.refer()) {
        Verdict::Pending(why) if stuck => {
            let next = format!(
                "see the operator's log in {}, or strip the finalizer with {STRIP_FLAG}; the operator was not removed",
                found.namespace.as_deref().unwrap_or("its namespace")
            );
            Verdict::Pending(why.or_else(FailureVerdict::Product, next))
        }
        verdict => verdict,
    }
}

fn operator_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<UninstallSpec>,
    found: Out<Found>,
    instances: Out<()>,
) -> Out<()> {
    let namespace = spec.namespace.as_deref();
    let describe = StepSpec::change(&id(spec, "operator"), format!("Subscription and CSV of {} go", spec.title))
        .does(Effect::decided(Act::Delete, &kinds::SUBSCRIPTION, namespace, "the package"))
        .does(Effect::decided(Act::Delete, &kinds::CSV, namespace, "the package"));
    let cluster = cluster.clone();
    plan.step(describe, (found, instances), |cx, (found, _)| async move {
        // The Subscription first: it would bring the CSV back.
        let objects: Vec<ObjectRef> = found.subscriptions.iter().chain(&found.csvs).cloned().collect();
        if objects.is_empty() {
            return Ok(Step::AlreadySo((), "neither is there".to_owned()));
        }
        for (objects, kind) in [(&found.subscriptions, &kinds::SUBSCRIPTION), (&found.csvs, &kinds::CSV)] {
            for object in objects {
                delete_and_wait(&cx, &cluster, kind, object).await?;
            }
        }
        Ok(Step::Changed((), format!("removed {}", names(&objects))))
    })
}

fn crds_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<UninstallSpec>,
    found: Out<Found>,
    operator: Out<()>,
) -> Out<()> {
    let describe = StepSpec::change(&id(spec, "crds"), format!("the kinds of {} go", spec.title))
        .does(Effect::decided(Act::Delete, &kinds::CRD, None, "the CSV"));
    let cluster = cluster.clone();
    plan.step(describe, (found, operator), |cx, (found, _)| async move {
        let mut removed = Vec::new();
        for name in &found.crds {
            let Some(crd) = cluster.get(&kinds::CRD, None, name).await? else {
                continue;
            };
            if has_others(&cluster, &crd, &found.instances).await? {
                cx.note(format!("stays: CustomResourceDefinition {name}, of which there are objects"));
                continue;
            }
            delete_and_wait(&cx, &cluster, &kinds::CRD, &crd.refer()).await?;
            removed.push(name.clone());
        }
        if removed.is_empty() {
            return Ok(Step::AlreadySo((), "none is there that could go".to_owned()));
        }
        Ok(Step::Changed((), format!("removed {}", removed.join(", "))))
    })
}

/// Deleting a CRD deletes its objects; those that nobody asked to remove protect it.
async fn has_others(cluster: &Cluster, crd: &Object, ours: &[ObjectRef]) -> Result<bool, Why> {
    let text = |pointer| crd.text(pointer).unwrap_or_default().to_owned();
    let version = crd
        .list("/spec/versions")
        .iter()
        .find(|version| version["served"] == true)
        .and_then(|version| version["name"].as_str())
        .unwrap_or_default();
    let kind = Kind {
        group: text("/spec/group").into(),
        version: version.to_owned().into(),
        kind: text("/spec/names/kind").into(),
        plural: text("/spec/names/plural").into(),
        namespaced: crd.text("/spec/scope") == Some("Namespaced"),
    };
    match cluster.list(&Query::all(&kind)).await {
        Ok(objects) => {
            let ours = |object: &Object| ours.iter().any(|one| one.uid.as_deref() == Some(object.uid()));
            Ok(!objects.iter().all(ours))
        }
        Err(error) if error.is_not_served() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn namespace_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<UninstallSpec>,
    found: Out<Found>,
    crds: Out<()>,
) -> Out<()> {
    let namespace = spec.namespace.as_deref();
    let describe = StepSpec::change(&id(spec, "namespace"), format!("the namespace of {} goes", spec.title))
        .deadline(Duration::from_secs(300))
        .does(Effect::decided(Act::Delete, &kinds::OPERATOR_GROUP, namespace, "our mark"))
        .does(Effect::decided(Act::Delete, &kinds::NAMESPACE, None, "our mark"));
    let cluster = cluster.clone();
    plan.step(describe, (found, crds), |cx, (found, _)| async move {
        let objects: Vec<ObjectRef> = found.groups.iter().chain(&found.own_namespace).cloned().collect();
        if objects.is_empty() {
            let what = if found.stays.is_empty() {
                "there is none".to_owned()
            } else {
                format!("stays: {}", found.stays.join("; "))
            };
            return Ok(Step::AlreadySo((), what));
        }
        for group in &found.groups {
            delete_and_wait(&cx, &cluster, &kinds::OPERATOR_GROUP, group).await?;
        }
        if let Some(namespace) = &found.own_namespace {
            delete_and_wait(&cx, &cluster, &kinds::NAMESPACE, namespace).await?;
        }
        Ok(Step::Changed((), format!("removed {}", names(&objects))))
    })
}
