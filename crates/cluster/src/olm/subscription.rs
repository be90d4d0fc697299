//! What a Subscription's conditions mean for somebody who waits.

use std::time::Duration;

use jiff::Timestamp;
use toolbox_engine::{Verdict, Why};

use crate::{Condition, Object};

use super::{OlmCause, PackageRef, Patience};

/// Two looks this far apart that find the same trouble: it is not a glimpse of something in between.
const TWICE: Duration = Duration::from_secs(10);
/// How long another catalog may be away: its pod may be restarting.
const OTHER_CATALOG: Duration = Duration::from_secs(300);
/// How long "no catalog found" may stay although the catalog is ready.
const STALE: Duration = Duration::from_secs(60);

/// What is looked at beside the Subscription.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The package that is installed.
    pub package: &'a PackageRef,
    /// The catalogs.
    pub catalogs: &'a [Object],
    /// Now.
    pub now: Timestamp,
}

/// Done when nothing stands in the way of an InstallPlan (which says nothing about whether there is one).
pub fn subscription_verdict(subscription: &Object, sight: &Sight<'_>, patience: &mut Patience) -> Verdict<()> {
    let is_true = |kind: &str| subscription.condition(kind).filter(Condition::is_true);
    if let Some(failed) = is_true("BundleUnpackFailed") {
        let cause = OlmCause::BundleUnpack { message: failed.message.to_owned(), job: None };
        return Verdict::Failed(Why::new(subscription.refer(), &cause));
    }
    if let Some(failed) = is_true("ResolutionFailed") {
        return resolution(subscription, &failed, sight, patience);
    }
    for trouble in ["resolution", "other-catalog", "stale"] {
        patience.forget(trouble);
    }
    if let Some(failed) = is_true("InstallPlanFailed") {
        let message = if failed.message.is_empty() { failed.reason.to_owned() } else { failed.message.to_owned() };
        return Verdict::Failed(Why::new(subscription.refer(), &OlmCause::PlanFailed { message }));
    }
    if let Some(unpacking) = is_true("BundleUnpacking") {
        return Verdict::Pending(Why::waiting(
            subscription.refer(),
            "bundle-unpacking",
            format!("the bundle is being unpacked: {}", unpacking.message),
        ));
    }
    if let Some(unhealthy) = is_true("CatalogSourcesUnhealthy") {
        return Verdict::Pending(Why::waiting(
            subscription.refer(),
            "catalogs-unhealthy",
            format!("OLM says of the catalogs: {}", unhealthy.message),
        ));
    }
    Verdict::Done(())
}

fn resolution(
    subscription: &Object,
    failed: &Condition<'_>,
    sight: &Sight<'_>,
    patience: &mut Patience,
) -> Verdict<()> {
    let refer = subscription.refer();
    if let Some(catalog) = blamed(failed.message, sight) {
        let ours = catalog.name() == sight.package.catalog
            && catalog.namespace() == Some(sight.package.catalog_namespace.as_str());
        let state = catalog_state(catalog).unwrap_or_else(|| "its state is unknown".to_owned());
        let cause = if ours {
            OlmCause::CatalogNotReady { state }
        } else {
            OlmCause::OtherCatalog { state, waiting: sight.package.name.clone() }
        };
        let why = Why::new(catalog.refer(), &cause).with("condition ResolutionFailed", failed.message);
        return if patience.is_over("other-catalog", sight.now, OTHER_CATALOG) {
            Verdict::Failed(why)
        } else {
            Verdict::Pending(why)
        };
    }
    let unseen = subscription
        .condition("CatalogSourcesUnhealthy")
        .filter(|condition| condition.is_true() && condition.reason == "NoCatalogSourcesFound");
    if let Some(unseen) = unseen {
        let cause = OlmCause::Stale {
            message: unseen.message.to_owned(),
            remove: format!(
                "kubectl delete subscriptions.operators.coreos.com {} -n {}",
                subscription.name(),
                subscription.namespace().unwrap_or_default()
            ),
        };
        let why = Why::new(refer, &cause);
        return if patience.is_over("stale", sight.now, STALE) { Verdict::Failed(why) } else { Verdict::Pending(why) };
    }
    let cause = OlmCause::Unresolvable {
        reason: failed.reason.to_owned(),
        message: failed.message.to_owned(),
        plain: plain(failed.message),
    };
    let why = Why::new(refer, &cause);
    if patience.is_over("resolution", sight.now, TWICE) { Verdict::Failed(why) } else { Verdict::Pending(why) }
}

/// The catalog that the message names and that is not ready.
fn blamed<'a>(message: &str, sight: &Sight<'a>) -> Option<&'a Object> {
    let not_ready = |catalog: &&Object| {
        catalog.text("/status/connectionState/lastObservedState").is_some_and(|state| state != "READY")
    };
    sight.catalogs.iter().filter(not_ready).find(|catalog| names(message, catalog.name()))
}

/// Whether `message` names `word`, and not just a longer name that contains it.
fn names(message: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    message
        .match_indices(word)
        .any(|(at, _)| !message[..at].ends_with(part) && !message[at + word.len()..].starts_with(part))
}

/// `TRANSIENT_FAILURE since 2026-01-01T00:00:00Z`.
pub(crate) fn catalog_state(catalog: &Object) -> Option<String> {
    let state = catalog.text("/status/connectionState/lastObservedState")?;
    Some(match catalog.text("/status/connectionState/lastConnect") {
        Some(since) => format!("{state} since {since}"),
        None => state.to_owned(),
    })
}

/// Name and reason of a job that failed.
pub(crate) fn failed_job(jobs: &[Object]) -> Option<(String, String)> {
    jobs.iter().find_map(|job| {
        let failed = job.condition("Failed").filter(crate::Condition::is_true)?;
        Some((job.name().to_owned(), failed.text()))
    })
}

/// What the solver's sentence means.
fn plain(message: &str) -> String {
    if message.contains("is not referenced by a subscription") {
        return "a CSV of an earlier installation is in the way: remove it".to_owned();
    }
    if message.contains("no operators found") {
        return "the catalog does not have what the Subscription asks for".to_owned();
    }
    if message.contains("provide") || message.contains("originate from") {
        return "two operators of this namespace want to provide the same API".to_owned();
    }
    "OLM finds no set of operators that satisfies every Subscription of the namespace".to_owned()
}
