//! Install plans: approved by hand or by themselves, then their objects exist.

use kube::core::DynamicObject;
use serde_json::json;

use super::bundle;
use crate::controllers::kit::{
    CRD, CSV, Cache, Context, Controller, INSTALL_PLAN, Kind, OPERATOR_GROUP, Read, SERVICE_ACCOUNT, Timers,
    with_condition,
};
use crate::scenario::{Bundle, Package};

/// The part of the catalog operator that carries out plans.
pub(crate) struct InstallPlans;

impl Controller for InstallPlans {
    const KINDS: &'static [Kind] = &[INSTALL_PLAN, OPERATOR_GROUP, CSV];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for plan in cache.all(INSTALL_PLAN) {
            if !plan.is_deleted() {
                one(context, cache, timers, &plan).await?;
            }
        }
        Ok(())
    }
}

/// OpenShift releases from which on a plan stops at a doubtful group, and no CSV is made.
const STRICT_FROM: u32 = 14;

async fn one(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    plan: &DynamicObject,
) -> Result<(), kube::Error> {
    let now = context.stamp();
    let approved = plan.at("/spec/approved") == &json!(true);
    match plan.text("/status/phase") {
        // Changed before its status was written: OLM's write fails, and it plans again instead.
        "" if given_up(plan) => Ok(()),
        "" => {
            let package =
                find(context, plan.text("/spec/clusterServiceVersionNames/0")).map_or("", |(package, _)| &package.name);
            let wait = context.draw(context.scenario.timings.plan_written, "planWritten", package);
            if !timers.passed(format!("{}/written", plan.uid()), wait) {
                return Ok(());
            }
            let phase = if approved { "Installing" } else { "RequiresApproval" };
            let steps = steps(context, plan);
            cache.status(INSTALL_PLAN, plan, json!({"phase": phase, "catalogSources": [], "plan": steps})).await
        }
        "RequiresApproval" if approved => cache.status(INSTALL_PLAN, plan, json!({"phase": "Installing"})).await,
        "Installing" => {
            let groups = cache.within(OPERATOR_GROUP, plan.namespace()).len();
            if groups != 1 && minor(context) >= STRICT_FROM {
                let message = match groups {
                    0 => "no operator group found that is managing this namespace".to_owned(),
                    count => format!("more than one operator group(s) are managing this namespace count={count}"),
                };
                let present = plan.list("/status/conditions");
                let conditions = with_condition(present, "Installed", false, "InstallCheckFailed", &message, &now);
                return cache.status(INSTALL_PLAN, plan, json!({"message": message, "conditions": conditions})).await;
            }
            let Some((package, bundle)) = find(context, plan.text("/spec/clusterServiceVersionNames/0")) else {
                return Ok(());
            };
            let wait = context.draw(context.scenario.timings.plan_install, "planInstall", &package.name);
            if timers.passed(format!("{}/install", plan.uid()), wait) {
                install(context, cache, plan, package, bundle).await?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether OLM has lost this plan: somebody approved it while its status was still to be written.
pub(super) fn given_up(plan: &DynamicObject) -> bool {
    plan.text("/status/phase").is_empty()
        && plan.text("/spec/approval") == "Manual"
        && plan.at("/spec/approved") == &json!(true)
}

async fn install(
    context: &Context,
    cache: &mut Cache,
    plan: &DynamicObject,
    package: &Package,
    bundle: &Bundle,
) -> Result<(), kube::Error> {
    for crd in &bundle.owned {
        cache.create(CRD, &bundle::definition(crd)).await?;
    }
    cache.create(SERVICE_ACCOUNT, &bundle::service_account(bundle, plan.namespace())).await?;
    cache.create(CSV, &bundle::csv(context, package, bundle, plan.namespace())).await?;
    let conditions = with_condition(plan.list("/status/conditions"), "Installed", true, "", "", &context.stamp());
    cache.status(INSTALL_PLAN, plan, json!({"phase": "Complete", "conditions": conditions})).await
}

fn steps(context: &Context, plan: &DynamicObject) -> Vec<serde_json::Value> {
    let Some((_, bundle)) = find(context, plan.text("/spec/clusterServiceVersionNames/0")) else { return Vec::new() };
    let step = |kind: &str, name: &str| {
        json!({
            "resolving": bundle.csv, "status": "Unknown",
            "resource": {"kind": kind, "name": name, "group": "", "version": "", "manifest": "", "sourceName": "", "sourceNamespace": ""},
        })
    };
    let crds =
        bundle.owned.iter().map(|crd| step("CustomResourceDefinition", &format!("{}.{}", crd.plural, crd.group)));
    [step("ClusterServiceVersion", &bundle.csv)]
        .into_iter()
        .chain(crds)
        .chain([step("ServiceAccount", &bundle.service_account)])
        .collect()
}

/// Package and bundle of a CSV's name.
fn find<'a>(context: &'a Context, csv: &str) -> Option<(&'a Package, &'a Bundle)> {
    let packages = context.scenario.catalogs.iter().flat_map(|catalog| &catalog.packages);
    packages
        .flat_map(|package| package.bundles.iter().map(move |bundle| (package, bundle)))
        .find(|(_, bundle)| bundle.csv == csv)
}

/// The minor version of OpenShift.
fn minor(context: &Context) -> u32 {
    context.scenario.openshift.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default()
}
