//! InstallPlans: which one is ours, who else is in it, and what its phase means.

use std::collections::BTreeSet;

use toolbox_engine::{Verdict, Why};

use crate::Object;

use super::{Chosen, OlmCause};

/// The plan to approve, or why none can be.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanChoice {
    /// None installs the version asked for yet.
    None,
    /// This one leads to the version asked for.
    Plan(Planned),
    /// OLM offers another version of the package, which does not lead there.
    Other(Object, OlmCause),
}

/// A plan on the way to the version asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Object,
    /// The CSV that it installs for us: the one asked for, or an older one that OLM has to go by.
    pub csv: String,
}

fn csvs(plan: &Object) -> Vec<String> {
    plan.list("/spec/clusterServiceVersionNames").iter().filter_map(|name| name.as_str()).map(str::to_owned).collect()
}

/// Whether OLM made the plan for this Subscription: a plan of an earlier life of it, or of another one, may list the same
/// CSV, and approving it brings nothing or something else.
fn is_of(plan: &Object, subscription: &Object) -> bool {
    let owned = !subscription.uid().is_empty() && plan.owner_uids().contains(&subscription.uid());
    let named = ["/status/installPlanRef", "/status/installplan"].iter().any(|path| {
        let text = |field: &str| subscription.text(&format!("{path}/{field}"));
        text("name") == Some(plan.name()) && text("uid").is_none_or(|uid| uid.is_empty() || uid == plan.uid())
    });
    owned || named
}

/// The newest plan that OLM made for this Subscription and that installs the version asked for; before there is one, the
/// plan for a version between, which OLM wants carried out first. A plan that leads elsewhere is told apart from no plan
/// at all.
pub fn choose_plan(plans: &[Object], subscription: &Object, chosen: &Chosen) -> PlanChoice {
    let csv = chosen.published.csv.as_str();
    let generation = |plan: &Object| plan.number("/spec/generation").unwrap_or(0);
    let alive = || plans.iter().filter(|plan| !plan.is_deleting());
    let ours = alive()
        .filter(|plan| is_of(plan, subscription))
        .filter(|plan| csvs(plan).iter().any(|name| name == csv))
        .max_by_key(|plan| (generation(plan), plan.name().to_owned()));
    if let Some(plan) = ours {
        return PlanChoice::Plan(Planned { plan: plan.clone(), csv: csv.to_owned() });
    }
    let named =
        subscription.text("/status/installPlanRef/name").or_else(|| subscription.text("/status/installplan/name"));
    let named = alive().find(|plan| Some(plan.name()) == named && is_of(plan, subscription));
    if let Some(between) = named.and_then(|plan| between(plan, subscription, chosen)) {
        return PlanChoice::Plan(between);
    }
    let other = named
        .filter(|plan| plan.text("/status/phase") == Some("RequiresApproval"))
        // While the plan is being written the Subscription may still name the one before.
        .filter(|_| subscription.text("/status/state") == Some("UpgradePending"))
        .filter(|_| subscription.text("/status/currentCSV") != Some(csv));
    match other {
        Some(plan) => {
            PlanChoice::Other(plan.clone(), OlmCause::WrongPlan { offered: csvs(plan), wanted: csv.to_owned() })
        }
        None => PlanChoice::None,
    }
}

/// The plan as one for a version between what the Subscription has and what was asked for. A Subscription that starts at
/// the version asked for has none: whatever else is planned for it is something else.
fn between(plan: &Object, subscription: &Object, chosen: &Chosen) -> Option<Planned> {
    let installed = subscription.text("/status/installedCSV").filter(|csv| !csv.is_empty());
    let current = subscription.text("/status/currentCSV").filter(|csv| Some(*csv) != installed)?;
    let starts_there = subscription.text("/spec/startingCSV") == Some(&chosen.published.csv);
    let leads = chosen.leads_by(current) && csvs(plan).iter().any(|name| name == current);
    let is_between = leads && (installed.is_some() || !starts_there);
    is_between.then(|| Planned { plan: plan.clone(), csv: current.to_owned() })
}

/// Who else the plan would install: every CSV but the one wanted, except those that it brings along as dependencies,
/// which no Subscription of somebody else asks for.
pub fn strangers(plan: &Object, wanted: &str, requires_others: bool, subscriptions: &[Object]) -> Vec<String> {
    let subscribed: BTreeSet<&str> = subscriptions
        .iter()
        .filter(|subscription| subscription.namespace() == plan.namespace())
        .filter(|subscription| subscription.label("olm.managed").is_none())
        .flat_map(|subscription| {
            ["/status/currentCSV", "/status/installedCSV", "/spec/startingCSV"]
                .into_iter()
                .filter_map(|path| subscription.text(path))
        })
        .collect();
    csvs(plan)
        .into_iter()
        .filter(|csv| csv != wanted)
        .filter(|csv| !requires_others || subscribed.contains(csv.as_str()))
        .collect()
}

/// Whether OLM has finished writing the plan. It creates it first and writes its status next, and when somebody changed it
/// between the two, by approving it for instance, OLM gives this plan up and makes another.
pub fn plan_written(plan: &Object) -> Verdict<()> {
    if plan.text("/status/phase").is_some_and(|phase| !phase.is_empty()) {
        return Verdict::Done(());
    }
    Verdict::Pending(Why::waiting(plan.refer(), "plan-unwritten", "has no phase yet: OLM is still writing it"))
}

/// Whether the plan will not be carried out before somebody approves it.
pub fn wants_approval(plan: &Object) -> bool {
    plan.text("/status/phase") == Some("RequiresApproval") && plan.flag("/spec/approved") != Some(true)
}

/// What the plan's phase means for somebody who waits for it to be carried out.
pub fn plan_verdict(plan: &Object) -> Verdict<()> {
    match plan.text("/status/phase").unwrap_or_default() {
        "Complete" => Verdict::Done(()),
        "Failed" => {
            let condition = plan.condition("Installed");
            let message = condition
                .map(|condition| condition.message.to_owned())
                .filter(|message| !message.is_empty())
                .or_else(|| plan.text("/status/message").map(str::to_owned))
                .unwrap_or_else(|| "OLM gives no message".to_owned());
            Verdict::Failed(Why::new(plan.refer(), &OlmCause::PlanFailed { message }))
        }
        "RequiresApproval" => Verdict::Pending(Why::waiting(plan.refer(), "plan-not-approved", "waits for approval")),
        _ => match lookup_trouble(plan) {
            Some(message) => Verdict::Failed(Why::new(plan.refer(), &OlmCause::BundleUnpack { message, job: None })),
            None => Verdict::Pending(Why::waiting(
                plan.refer(),
                "plan-installing",
                format!("is {}", plan.text("/status/phase").unwrap_or("not looked at yet")),
            )),
        },
    }
}

/// Older OLM leaves the plan Installing for ever when a bundle cannot be unpacked, and says so in a lookup.
fn lookup_trouble(plan: &Object) -> Option<String> {
    plan.list("/status/bundleLookups")
        .iter()
        .filter_map(|lookup| lookup["conditions"].as_array())
        .flatten()
        .filter(|condition| condition["status"] == "True")
        .find(|condition| {
            let text = condition["message"].as_str().unwrap_or_default();
            let failed = condition["type"] == "BundleLookupFailed";
            let unpullable = condition["type"] == "BundleLookupPending"
                && (text.contains("ImagePullBackOff")
                    || text.contains("ErrImagePull")
                    || text.contains("DeadlineExceeded"));
            failed || unpullable
        })
        .map(|condition| condition["message"].as_str().unwrap_or("the bundle's image cannot be unpacked").to_owned())
}
