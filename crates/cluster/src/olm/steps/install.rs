//! Installing an operator: catalog, version, namespace, group, Subscription, InstallPlan, CSV.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolbox_engine::plan::{Act, After, Effect, Out};
use toolbox_engine::{Plan, Step, StepCx, StepSpec, Why};

use super::package::wait_for_package;
use super::progress::{self, Stage};
use super::spec::InstallSpec;
use super::target::{Action, Target, aim};
use crate::olm::{GroupRule, OlmCause, Package, Planned, Scope, group_rule, strangers};
use crate::{Cluster, Object, Query, kinds};

/// How long the packages of all catalogs may take to be read.
const PROVIDERS: Duration = Duration::from_secs(60);

/// Handles to what an installation yields.
#[derive(Clone, Copy, Debug)]
pub struct Installed {
    /// Version, channel, namespace and what was done about what is there.
    pub target: Out<Target>,
    /// The namespace.
    pub namespace: Out<String>,
    /// The CSV that has succeeded.
    pub csv: Out<Object>,
}

/// Adds the steps that install an operator. Everything is decided, and everything that speaks against it is found,
/// before the first change.
pub fn install(plan: &mut Plan, cluster: &Cluster, spec: InstallSpec, after: After) -> Installed {
    let spec = Arc::new(spec);
    let package = package_step(plan, cluster, &spec, after);
    providers_step(plan, cluster, &spec, package);
    let target = target_step(plan, cluster, &spec, package);
    let namespace = namespace_step(plan, cluster, &spec, target);
    let group = group_step(plan, cluster, &spec, target, namespace);
    let subscription = subscription_step(plan, cluster, &spec, target, group);
    let install_plan = plan_step(plan, cluster, &spec, target, subscription);
    let approved = approve_step(plan, cluster, &spec, target, install_plan);
    let csv = csv_step(plan, cluster, &spec, target, approved);
    Installed { target, namespace, csv }
}

fn id(spec: &InstallSpec, step: &str) -> String {
    format!("{}.{step}", spec.id)
}

fn package_step(plan: &mut Plan, cluster: &Cluster, spec: &Arc<InstallSpec>, after: After) -> Out<Package> {
    let describe =
        StepSpec::ask(&id(spec, "package"), format!("catalog {} offers {}", spec.package.catalog, spec.package.name))
            .deadline(spec.package_deadline)
            .does(Effect::any(Act::Watch, &kinds::CATALOG_SOURCE, None))
            .does(Effect::any(Act::Read, &kinds::PACKAGE_MANIFEST, Some(&spec.package.catalog_namespace)));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, after, |cx, ()| async move {
        let package = wait_for_package(&cx, &cluster, &spec.package).await?;
        if let Some(keep) = spec.keep_package {
            keep(&cx, &package.manifest);
        }
        let what = format!("channels {}", package.offers().join(", "));
        Ok(Step::AlreadySo(package, what))
    })
}

/// Says which other catalogs offer a package of the same name: people mean theirs at times. Nothing waits for the answer,
/// and nothing fails for want of it, since every package of every catalog has to be read for it.
fn providers_step(plan: &mut Plan, cluster: &Cluster, spec: &Arc<InstallSpec>, package: Out<Package>) {
    let describe = StepSpec::ask(&id(spec, "providers"), format!("other catalogs that offer {}", spec.package.name))
        .deadline(super::access::ASK)
        .does(Effect::any(Act::Read, &kinds::PACKAGE_MANIFEST, Some(&spec.package.catalog_namespace)));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    let _: Out<()> = plan.step(describe, package.done(), |cx, ()| async move {
        let everything = Query::within(&kinds::PACKAGE_MANIFEST, &spec.package.catalog_namespace);
        let read = tokio::select! {
            biased;
            read = cluster.list(&everything) => read.map_err(|error| error.to_string()),
            () = cx.clock().sleep(PROVIDERS) => Err(format!("no answer within {} s", PROVIDERS.as_secs())),
        };
        let what = match read.map(|manifests| Package::elsewhere(&manifests, &spec.package)) {
            Ok(others) if others.is_empty() => "no other catalog has it".to_owned(),
            Ok(others) => {
                let (name, catalog) = (&spec.package.name, &spec.package.catalog);
                let what = format!("package {name} is also in {}; {catalog} is the one used", others.join(", "));
                cx.note(what.clone());
                what
            }
            Err(problem) => format!("not known: {problem}"),
        };
        Ok(Step::AlreadySo((), what))
    });
}

fn target_step(plan: &mut Plan, cluster: &Cluster, spec: &Arc<InstallSpec>, package: Out<Package>) -> Out<Target> {
    let describe = StepSpec::ask(&id(spec, "target"), format!("version and namespace of {}", spec.title))
        .deadline(super::access::ASK)
        .does(Effect::any(Act::Read, &kinds::SUBSCRIPTION, None))
        .does(Effect::any(Act::Read, &kinds::CSV, spec.namespace.as_deref()))
        .does(Effect::any(Act::Read, &kinds::OPERATOR_GROUP, spec.namespace.as_deref()));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, package, |cx, package| async move {
        let target = aim(&cx, &cluster, &spec, &package).await?;
        cx.version(spec.title, spec.wish.exact(), Some(&target.chosen.published.version));
        let what = target.to_string();
        Ok(Step::AlreadySo(target, what))
    })
}

fn namespace_step(plan: &mut Plan, cluster: &Cluster, spec: &Arc<InstallSpec>, target: Out<Target>) -> Out<String> {
    let describe = StepSpec::change(&id(spec, "namespace"), format!("namespace of {}", spec.title)).does(
        super::access::named_or_decided(Act::Apply, &kinds::NAMESPACE, None, spec.namespace.as_deref(), "the bundle"),
    );
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, target, |cx, target| async move {
        let name = target.placement.namespace.clone();
        let found = cluster.get(&kinds::NAMESPACE, None, &name).await?;
        // One that is on its way out is waited for by the apply.
        let Some(namespace) = found.filter(|namespace| !namespace.is_deleting()) else {
            let manifest = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": spec.namespace_labels},
            });
            cluster.apply(&cx, manifest).await?;
            let what = format!("created Namespace {name}");
            return Ok(Step::Changed(name, what));
        };
        let missing: BTreeMap<&String, &String> =
            spec.namespace_labels.iter().filter(|(key, value)| namespace.label(key) != Some(value.as_str())).collect();
        if missing.is_empty() {
            let what = format!("{name} is there");
            return Ok(Step::AlreadySo(name, what));
        }
        // A patch and not an apply: a namespace that was there before must not carry our mark.
        let patch = json!({"metadata": {"labels": missing}});
        cluster.patch(&cx, &kinds::NAMESPACE, None, &name, patch).await?;
        let what = format!("labelled {name}");
        Ok(Step::Changed(name, what))
    })
}

fn group_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<InstallSpec>,
    target: Out<Target>,
    namespace: Out<String>,
) -> Out<()> {
    let describe = StepSpec::change(&id(spec, "operator-group"), format!("OperatorGroup of {}", spec.title))
        .does(Effect::on(Act::Apply, &kinds::OPERATOR_GROUP, spec.namespace.as_deref(), spec.group));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, (target, namespace), |cx, (target, namespace)| async move {
        let groups = if target.namespace_exists || !cx.dry() {
            cluster.list(&Query::within(&kinds::OPERATOR_GROUP, &namespace)).await?
        } else {
            Vec::new()
        };
        match group_rule(&groups, &target.placement, &target.chosen) {
            GroupRule::Use(group) => {
                let what = format!("OperatorGroup {} is there and fits", group.name());
                Ok(Step::AlreadySo((), what))
            }
            GroupRule::Refuse(refusal) => Err(super::target::group_refusal(*refusal, &namespace)),
            GroupRule::Create(scope) => {
                let mut group = json!({
                    "apiVersion": kinds::OPERATOR_GROUP.api_version(), "kind": "OperatorGroup",
                    "metadata": {"name": spec.group, "namespace": *namespace},
                    "spec": {},
                });
                if scope == Scope::Own {
                    group["spec"]["targetNamespaces"] = json!([*namespace]);
                }
                cluster.apply(&cx, group).await?;
                Ok(Step::Changed((), format!("created OperatorGroup {}", spec.group)))
            }
        }
    })
}

fn subscription_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<InstallSpec>,
    target: Out<Target>,
    group: Out<()>,
) -> Out<()> {
    let describe = StepSpec::change(&id(spec, "subscription"), format!("Subscription of {}", spec.title))
        .does(Effect::on(Act::Apply, &kinds::SUBSCRIPTION, spec.namespace.as_deref(), &spec.package.name));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, (target, group), |cx, (target, _)| async move {
        let namespace = target.placement.namespace.as_str();
        match &target.action {
            Action::Adopt { because, .. } => Ok(Step::AlreadySo((), because.clone())),
            Action::Upgrade { subscription, because } => {
                let patch = json!({"spec": {"channel": target.chosen.channel}});
                cluster.patch(&cx, &kinds::SUBSCRIPTION, Some(namespace), subscription, patch).await?;
                Ok(Step::Changed((), because.clone()))
            }
            Action::Create => {
                let package = &spec.package;
                let subscription = json!({
                    "apiVersion": kinds::SUBSCRIPTION.api_version(), "kind": "Subscription",
                    "metadata": {"name": package.name, "namespace": namespace},
                    "spec": {
                        "name": package.name,
                        "channel": target.chosen.channel,
                        "source": package.catalog,
                        "sourceNamespace": package.catalog_namespace,
                        "installPlanApproval": spec.approval.as_str(),
                        "startingCSV": target.chosen.published.csv,
                    },
                });
                cluster.apply(&cx, subscription).await?;
                let what = format!("created Subscription {} to channel {}", package.name, target.chosen.channel);
                Ok(Step::Changed((), what))
            }
        }
    })
}

fn plan_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<InstallSpec>,
    target: Out<Target>,
    subscription: Out<()>,
) -> Out<Option<Planned>> {
    let describe = StepSpec::wait(&id(spec, "install-plan"), format!("OLM plans {}", spec.title), spec.plan_deadline)
        .does(Effect::any(Act::Watch, &kinds::SUBSCRIPTION, None))
        .does(Effect::any(Act::Watch, &kinds::CATALOG_SOURCE, None))
        .does(Effect::any(Act::Watch, &kinds::OPERATOR_GROUP, spec.namespace.as_deref()))
        .does(Effect::any(Act::Watch, &kinds::INSTALL_PLAN, spec.namespace.as_deref()))
        .does(Effect::any(Act::Watch, &kinds::CSV, spec.namespace.as_deref()));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, (target, subscription), |cx, (target, _)| async move {
        let found = progress::wait(&cx, &cluster, &spec, &target, Stage::Planned, &[]).await?;
        Ok(match found.plan {
            Some(planned) => {
                let what = format!("InstallPlan {} for {}", planned.plan.name(), planned.csv);
                Step::AlreadySo(Some(planned), what)
            }
            None => Step::AlreadySo(None, format!("{} is installed already", target.chosen.published.csv)),
        })
    })
}

fn approve_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<InstallSpec>,
    target: Out<Target>,
    install_plan: Out<Option<Planned>>,
) -> Out<Option<String>> {
    let describe = StepSpec::change(&id(spec, "approve"), format!("the plan of {} is approved", spec.title))
        .does(Effect::decided(Act::Patch, &kinds::INSTALL_PLAN, spec.namespace.as_deref(), "the Subscription's plan"));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, (target, install_plan), |cx, (target, install_plan)| async move {
        let Some(found) = install_plan.as_ref() else {
            return Ok(Step::AlreadySo(None, "nothing has to be approved".to_owned()));
        };
        let csv = Some(found.csv.clone());
        if found.plan.flag("/spec/approved") == Some(true) {
            return Ok(Step::AlreadySo(csv, format!("InstallPlan {} is approved", found.plan.name())));
        }
        approve(&cx, &cluster, &spec, &target, found).await?;
        Ok(Step::Changed(csv, format!("approved InstallPlan {} for {}", found.plan.name(), found.csv)))
    })
}

/// Approves a plan, unless it installs what nobody asked for.
async fn approve(
    cx: &StepCx,
    cluster: &Cluster,
    spec: &InstallSpec,
    target: &Target,
    Planned { plan, csv }: &Planned,
) -> Result<(), Why> {
    let namespace = target.placement.namespace.as_str();
    let subscriptions = cluster.list(&Query::within(&kinds::SUBSCRIPTION, namespace)).await?;
    let others = strangers(plan, csv, target.chosen.requires_others, &subscriptions);
    if !others.is_empty() {
        if !spec.approve_strangers {
            return Err(Why::new(plan.refer(), &OlmCause::Strangers { csvs: others }));
        }
        cx.note(format!("also approves {}, as asked with --approve-strangers", others.join(", ")));
    }
    let patch = json!({"spec": {"approved": true}});
    cluster.patch(cx, &kinds::INSTALL_PLAN, Some(namespace), plan.name(), patch).await?;
    Ok(())
}

fn csv_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &Arc<InstallSpec>,
    target: Out<Target>,
    approved: Out<Option<String>>,
) -> Out<Object> {
    let describe =
        StepSpec::wait(&id(spec, "csv"), format!("the operator of {} is installed", spec.title), spec.csv_deadline)
            .named(spec.csv_wait)
            .does(Effect::any(Act::Watch, &kinds::CSV, spec.namespace.as_deref()))
            .does(Effect::decided(Act::Patch, &kinds::INSTALL_PLAN, spec.namespace.as_deref(), "the plans that follow"))
            .leaves("the Subscription and whatever OLM made of it");
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, (target, approved), |cx, (target, approved)| async move {
        let wanted = &target.chosen.published.csv;
        let mut between: Vec<String> = approved.iter().filter(|csv| *csv != wanted).cloned().collect();
        let csv = loop {
            let found = progress::wait(&cx, &cluster, &spec, &target, Stage::Succeeded, &between).await?;
            if let Some(csv) = found.csv {
                break csv;
            }
            // OLM plans an upgrade one version after the other, and may plan again at any time: each plan wants approval.
            if let Some(planned) = found.plan {
                approve(&cx, &cluster, &spec, &target, &planned).await?;
                cx.note(format!("OLM planned again: approved InstallPlan {} for {}", planned.plan.name(), planned.csv));
                if planned.csv != *wanted && !between.contains(&planned.csv) {
                    between.push(planned.csv);
                }
            }
        };
        cx.version("csv", None, Some(csv.name()));
        let what = format!("{} succeeded", csv.name());
        Ok(Step::AlreadySo(csv, what))
    })
}
