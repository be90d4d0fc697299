//! Resolution: which bundle a subscription leads to, or why to none.

use kube::core::DynamicObject;

use super::catalog::{CATALOG_NAMESPACE, state};
use crate::controllers::kit::{CATALOG_SOURCE, CSV, Cache, Context, Read, SUBSCRIPTION};
use crate::scenario::{Bundle, Package};

/// Why a subscription leads nowhere: the condition's reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unresolved {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The package that a subscription names.
pub(super) fn package<'a>(context: &'a Context, subscription: &DynamicObject) -> Option<&'a Package> {
    let source = subscription.text("/spec/source");
    let catalog = context.scenario.catalogs.iter().find(|catalog| catalog.name == source)?;
    catalog.packages.iter().find(|package| package.name == subscription.text("/spec/name"))
}

/// The bundle to install next: the starting one at first, then what replaces the installed one.
pub(super) fn next<'a>(
    context: &'a Context,
    cache: &Cache,
    subscription: &DynamicObject,
) -> Result<Option<&'a Bundle>, Unresolved> {
    healthy(cache)?;
    let name = subscription.name();
    let wanted = subscription.text("/spec/name");
    let nothing = |text: String| Unresolved {
        reason: "ConstraintsNotSatisfiable",
        message: format!("constraints not satisfiable: {text}, subscription {name} exists"),
    };
    let source = subscription.text("/spec/source");
    let namespace = subscription.text("/spec/sourceNamespace");
    if cache.get(CATALOG_SOURCE, namespace, source).is_none() {
        return Err(nothing(format!(
            "no operators found from catalog {source} in namespace {namespace} referenced by subscription {name}"
        )));
    }
    let Some(package) = package(context, subscription) else {
        return Err(nothing(format!(
            "no operators found in package {wanted} in the catalog referenced by subscription {name}"
        )));
    };
    if context.scenario.quirks.resolution_failure == package.name {
        return Err(nothing(format!(
            "subscription {name} requires {source}/{namespace}/{}/{}, bundle {} requires an operator providing an API with \
             group: example.test, version: v1, kind: Missing",
            subscription.text("/spec/channel"),
            package.channels.values().flatten().next().map_or("", String::as_str),
            package.name,
        )));
    }
    let channel = match subscription.text("/spec/channel") {
        "" => package.default_channel.as_str(),
        channel => channel,
    };
    let Some(csvs) = package.channels.get(channel) else {
        return Err(nothing(format!(
            "no operators found in channel {channel} of package {wanted} in the catalog referenced by subscription {name}"
        )));
    };
    let bundle =
        |csv: &str| package.bundles.iter().find(|bundle| bundle.csv == csv && csvs.iter().any(|known| known == csv));
    let installed = subscription.text("/status/installedCSV");
    if !installed.is_empty() {
        return Ok(csvs.iter().filter_map(|csv| bundle(csv)).find(|bundle| bundle.replaces == installed));
    }
    let first = match subscription.text("/spec/startingCSV") {
        "" => csvs.first().map_or("", String::as_str),
        starting => starting,
    };
    let Some(found) = bundle(first) else {
        return Err(nothing(format!(
            "no operators found with name {first} in channel {channel} of package {wanted} in the catalog referenced by subscription {name}"
        )));
    };
    orphan(cache, subscription, found).map_or(Ok(Some(found)), |orphan| {
        let api = found.owned.first().cloned().unwrap_or_default();
        Err(Unresolved {
            reason: "ConstraintsNotSatisfiable",
            message: format!(
                "constraints not satisfiable: clusterserviceversion {orphan} exists and is not referenced by a subscription, \
                 @existing/{ns}//{orphan} and {source}/{namespace}/{channel}/{first} originate from package {wanted}, \
                 provide {} ({}/{}), subscription {name} requires {source}/{namespace}/{channel}/{first}, subscription {name} exists",
                api.kind,
                api.group,
                api.version,
                ns = subscription.namespace(),
            ),
        })
    })
}

/// Any catalog that cannot be asked stops resolution for everybody.
fn healthy(cache: &Cache) -> Result<(), Unresolved> {
    let sources = cache.within(CATALOG_SOURCE, CATALOG_NAMESPACE);
    let Some(broken) = sources.iter().find(|source| state(source) != "READY") else { return Ok(()) };
    let name = broken.name();
    Err(Unresolved {
        reason: "ErrorPreventedResolution",
        message: format!(
            "failed to populate resolver cache from source {name}/{CATALOG_NAMESPACE}: failed to list bundles: rpc error: \
             code = Unavailable desc = connection error: desc = \"transport: Error while dialing dial tcp: lookup \
             {name}.{CATALOG_NAMESPACE}.svc: connect: connection refused\""
        ),
    })
}

/// A CSV of the same operator that no subscription knows.
fn orphan(cache: &Cache, subscription: &DynamicObject, bundle: &Bundle) -> Option<String> {
    let subscriptions = cache.within(SUBSCRIPTION, subscription.namespace());
    let referenced = |name: &str| {
        subscriptions
            .iter()
            .any(|other| other.text("/status/installedCSV") == name || other.text("/status/currentCSV") == name)
    };
    let crd = bundle.owned.first().map(|crd| format!("{}.{}", crd.plural, crd.group))?;
    cache.within(CSV, subscription.namespace()).into_iter().find_map(|csv| {
        let same = csv.list("/spec/customresourcedefinitions/owned").iter().any(|owned| owned["name"] == crd);
        (same && !csv.is_deleted() && !referenced(csv.name())).then(|| csv.name().to_owned())
    })
}
