//! Subscriptions: from a wish to an install plan, and the conditions and states a waiting tool sees meanwhile.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::installplan::given_up;
use super::{component_label, resolve};
use crate::controllers::kit::{
    CATALOG_SOURCE, CSV, Cache, Context, Controller, INSTALL_PLAN, Kind, Read, SUBSCRIPTION, Timers, is_true,
    owner_reference, with_condition,
};
use crate::scenario::Bundle;

/// The part of the catalog operator that follows subscriptions.
pub(crate) struct Subscriptions;

impl Controller for Subscriptions {
    const KINDS: &'static [Kind] = &[SUBSCRIPTION, INSTALL_PLAN, CSV, CATALOG_SOURCE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for subscription in cache.all(SUBSCRIPTION) {
            if !subscription.is_deleted() {
                one(context, cache, timers, &subscription).await?;
            }
        }
        Ok(())
    }
}

async fn one(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    subscription: &DynamicObject,
) -> Result<(), kube::Error> {
    label(cache, subscription).await?;
    match plan_of(cache, subscription) {
        Some(plan) => follow(context, cache, timers, subscription, &plan).await,
        None => resolve(context, cache, timers, subscription).await,
    }
}

async fn label(cache: &mut Cache, subscription: &DynamicObject) -> Result<(), kube::Error> {
    let label = component_label(subscription.text("/spec/name"), subscription.namespace());
    cache.patch(SUBSCRIPTION, subscription, json!({"metadata": {"labels": {label: ""}}})).await
}

/// The plan that this subscription waits for: its newest, unless that is carried out.
fn plan_of(cache: &Cache, subscription: &DynamicObject) -> Option<std::sync::Arc<DynamicObject>> {
    let installed = subscription.text("/status/installedCSV");
    let plans = cache.within(INSTALL_PLAN, subscription.namespace());
    plans
        .into_iter()
        .filter(|plan| plan.owned_by(subscription.uid()) && !plan.is_deleted() && !given_up(plan))
        .max_by_key(|plan| plan.int("/spec/generation"))
        .filter(|plan| !plan.list("/spec/clusterServiceVersionNames").iter().any(|name| name == installed))
}

async fn resolve(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    subscription: &DynamicObject,
) -> Result<(), kube::Error> {
    let timings = &context.scenario.timings;
    let package = subscription.text("/spec/name").to_owned();
    let uid = subscription.uid();
    let now = context.stamp();
    let installed = subscription.text("/status/installedCSV").to_owned();
    let wait = context.draw(timings.subscription_resolve, "subscriptionResolve", &package);
    if !timers.passed(format!("{uid}/resolve/{installed}"), wait) {
        return Ok(());
    }
    // What could not be resolved is looked at again at the next resync only.
    let failed = is_true(subscription, "ResolutionFailed");
    if failed {
        let round = format!("{uid}/resync");
        if !timers.passed(&round, context.draw(timings.olm_resync, "olmResync", "")) {
            return Ok(());
        }
        timers.restart(&round);
    }
    match resolve::next(context, cache, subscription) {
        Err(why) => {
            let healthy = why.reason != "ErrorPreventedResolution";
            let conditions = health(subscription.list("/status/conditions"), healthy, &now);
            let conditions = with_condition(&conditions, "ResolutionFailed", true, why.reason, &why.message, &now);
            cache.status(SUBSCRIPTION, subscription, json!({"conditions": conditions})).await
        }
        Ok(None) => {
            if !installed.is_empty() && subscription.text("/status/state") != "AtLatestKnown" {
                cache.status(SUBSCRIPTION, subscription, json!({"state": "AtLatestKnown"})).await?;
            }
            Ok(())
        }
        Ok(Some(bundle)) => {
            let mut conditions = health(subscription.list("/status/conditions"), true, &now);
            conditions.retain(|condition| condition["type"] != "ResolutionFailed");
            unpack(context, cache, timers, subscription, bundle, conditions).await
        }
    }
}

/// The bundle is unpacked, and then a plan exists; or the unpacking fails.
async fn unpack(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    subscription: &DynamicObject,
    bundle: &Bundle,
    conditions: Vec<Value>,
) -> Result<(), kube::Error> {
    let now = context.stamp();
    let package = subscription.text("/spec/name").to_owned();
    if is_true(subscription, "BundleUnpackFailed") {
        return Ok(());
    }
    let wait = context.draw(context.scenario.timings.bundle_unpack, "bundleUnpack", &package);
    if !timers.passed(format!("{}/unpack/{}", subscription.uid(), bundle.csv), wait) {
        let conditions = with_condition(&conditions, "BundleUnpacking", true, "UnpackingInProgress", "", &now);
        return cache.status(SUBSCRIPTION, subscription, json!({"conditions": conditions})).await;
    }
    let mut conditions = conditions;
    conditions.retain(|condition| condition["type"] != "BundleUnpacking");
    if context.scenario.quirks.unpack_failure == package {
        let message = format!(
            "bundle unpacking failed. Reason: DeadlineExceeded, and Message: Job was active longer than specified deadline ({})",
            bundle.csv
        );
        conditions = with_condition(&conditions, "BundleUnpackFailed", true, "BundleUnpackFailed", &message, &now);
        return cache.status(SUBSCRIPTION, subscription, json!({"conditions": conditions})).await;
    }
    cache.status(SUBSCRIPTION, subscription, json!({"conditions": conditions})).await?;
    // Plans of one namespace are counted, those that were given up too.
    let before = cache.within(INSTALL_PLAN, subscription.namespace());
    let last = before.iter().filter_map(|plan| plan.at("/spec/generation").as_u64()).max().unwrap_or_default();
    cache.create(INSTALL_PLAN, &plan(subscription, bundle, last + 1)).await
}

fn plan(subscription: &DynamicObject, bundle: &Bundle, generation: u64) -> DynamicObject {
    let namespace = subscription.namespace();
    let approval = match subscription.text("/spec/installPlanApproval") {
        "Manual" => "Manual",
        _ => "Automatic",
    };
    let mut plan = INSTALL_PLAN.object(namespace, "");
    plan.metadata.name = None;
    plan.metadata.generate_name = Some("install-".to_owned());
    plan.metadata.labels = Some([(component_label(subscription.text("/spec/name"), namespace), String::new())].into());
    let mut owner = owner_reference(SUBSCRIPTION, subscription);
    owner.controller = Some(false);
    owner.block_owner_deletion = Some(false);
    plan.metadata.owner_references = Some(vec![owner]);
    plan.data = json!({"spec": {
        "approval": approval, "approved": approval == "Automatic",
        "clusterServiceVersionNames": [bundle.csv], "generation": generation,
    }});
    plan
}

/// The plan exists: the subscription names it a moment later, and then goes where the plan goes.
async fn follow(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    subscription: &DynamicObject,
    plan: &DynamicObject,
) -> Result<(), kube::Error> {
    let now = context.stamp();
    let package = subscription.text("/spec/name");
    let wait = context.draw(context.scenario.timings.subscription_status, "subscriptionStatus", package);
    if !timers.passed(format!("{}/named/{}", subscription.uid(), plan.name()), wait) {
        return Ok(());
    }
    let csv = plan.text("/spec/clusterServiceVersionNames/0");
    let mut conditions = subscription.list("/status/conditions").to_vec();
    let reason = match plan.text("/status/phase") {
        "RequiresApproval" => "RequiresApproval",
        "Complete" => "",
        _ => "Installing",
    };
    let reference = json!({
        "apiVersion": INSTALL_PLAN.api_version(), "kind": INSTALL_PLAN.name, "name": plan.name(),
        "namespace": plan.namespace(), "uid": plan.uid(),
    });
    let mut status = json!({
        "currentCSV": csv, "installPlanGeneration": plan.at("/spec/generation"), "installPlanRef": reference, "installplan": reference,
        "state": "UpgradePending",
    });
    if reason.is_empty() {
        conditions.retain(|condition| condition["type"] != "InstallPlanPending");
        status["state"] = "AtLatestKnown".into();
        status["installedCSV"] = csv.into();
    } else {
        conditions = with_condition(&conditions, "InstallPlanPending", true, reason, "", &now);
    }
    status["conditions"] = conditions.into();
    if subscription.text("/status/state") != status["state"] {
        status["lastUpdated"] = now.into();
    }
    cache.status(SUBSCRIPTION, subscription, status).await
}

/// The conditions with the one about catalogs.
fn health(present: &[Value], healthy: bool, now: &str) -> Vec<Value> {
    let (reason, message) = if healthy {
        ("AllCatalogSourcesHealthy", "all available catalogsources are healthy")
    } else {
        (
            "UnhealthyCatalogSourceFound",
            "one or more catalogsources in this namespace or the global catalog namespace are unhealthy",
        )
    };
    with_condition(present, "CatalogSourcesUnhealthy", !healthy, reason, message, now)
}
