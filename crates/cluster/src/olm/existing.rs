//! What a Subscription that is already there means for the one asked for.

use std::cmp::Ordering;

use crate::Object;

use super::resolve::compare_versions;
use super::{Chosen, OlmCause, PackageRef, Wish, version_of};

/// The rule for a Subscription that is already there.
#[derive(Clone, Debug, PartialEq)]
pub enum Existing {
    /// There is none: create one.
    None,
    /// It is what was asked for: keep it. The text says why.
    Adopt(Object, String),
    /// It is an older version of what was asked for: change its channel, if need be, and approve the next plan.
    Upgrade(Object, String),
    /// It is something else.
    Refuse(Box<(Object, OlmCause)>),
}

/// Same package, catalog and channel: adopted. An older version, or another channel: upgraded if a newer version was
/// asked for. Another catalog, another namespace than the one asked for, or a newer version: refused.
pub fn existing_rule(
    subscriptions: &[Object],
    package: &PackageRef,
    wish: &Wish,
    chosen: &Chosen,
    asked_namespace: Option<&str>,
) -> Existing {
    let mut ours: Vec<&Object> = subscriptions
        .iter()
        .filter(|object| object.text("/spec/name") == Some(package.name.as_str()))
        .filter(|object| !object.is_deleting())
        .collect();
    // The one in the namespace asked for is the one that is meant, should there be several.
    ours.sort_by_key(|object| (object.namespace() != asked_namespace, object.namespace()));
    let Some(subscription) = ours.first().copied() else {
        return Existing::None;
    };
    let refuse = |how: String, next: String| {
        Existing::Refuse(Box::new((subscription.clone(), OlmCause::SubscriptionDiffers { how, next })))
    };
    let namespace = subscription.namespace().unwrap_or_default();
    if let Some(asked) = asked_namespace
        && asked != namespace
    {
        return refuse(
            format!("the package is installed already, in {namespace} and not in {asked}"),
            format!("use it with --namespace {namespace}, or undeploy it first"),
        );
    }
    let source = subscription.text("/spec/source").unwrap_or_default();
    if source != package.catalog {
        return refuse(
            format!("the package is installed from catalog `{source}` and not from `{}`", package.catalog),
            format!("use it with --catalog {source}, or undeploy it first"),
        );
    }
    let channel = subscription.text("/spec/channel").unwrap_or_default();
    let named = |path: &str| subscription.text(path).filter(|csv| !csv.is_empty());
    let installed = named("/status/installedCSV");
    let Some(known) = installed.or_else(|| named("/spec/startingCSV")) else {
        return if channel == chosen.channel || channel.is_empty() {
            let text = format!("an earlier run subscribed to channel `{channel}` already");
            Existing::Adopt(subscription.clone(), text)
        } else if wish.channel.is_none() && wish.exact().is_none() {
            let text = format!("is subscribed to channel `{channel}`; no other was asked for");
            Existing::Adopt(subscription.clone(), text)
        } else {
            let text = format!("changes to channel `{}`; nothing is installed yet", chosen.channel);
            Existing::Upgrade(subscription.clone(), text)
        };
    };
    let wants_channel = wish.channel.as_deref().is_none_or(|wanted| wanted == channel);
    let wants_version = wish.exact().is_none_or(|_| known == chosen.published.csv);
    if wants_channel && wants_version {
        let text = match installed {
            Some(_) => format!("{known} from channel `{channel}` is installed already"),
            None => format!("its Subscription starts at {known} from channel `{channel}`; nothing is installed yet"),
        };
        return Existing::Adopt(subscription.clone(), text);
    }
    // What a Subscription starts at is not there before its plan has been carried out.
    let known_as = if installed.is_some() { known.to_owned() } else { format!("{known}, which is not installed yet,") };
    match compare_versions(&version_of(known), &chosen.published.version) {
        Ordering::Less => {
            Existing::Upgrade(subscription.clone(), format!("{known_as} is upgraded to {}", chosen.published.csv))
        }
        Ordering::Equal => Existing::Upgrade(
            subscription.clone(),
            format!("{known_as} stays; its channel changes from `{channel}` to `{}`", chosen.channel),
        ),
        Ordering::Greater => {
            let is = if installed.is_some() { "is installed" } else { "is what its Subscription starts at" };
            refuse(
                format!("{known} {is}, which is newer than {}", chosen.published.csv),
                "OLM does not go back: undeploy it first".to_owned(),
            )
        }
    }
}
