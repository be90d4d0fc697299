//! Everything that can stop an operator's installation or removal, each with its next action.

use toolbox_engine::{Cause, Exit, FailureVerdict};

/// Why an operator cannot be installed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OlmCause {
    /// The cluster has no OLM.
    NoOlm,
    /// The catalog asked for does not exist.
    NoCatalog {
        /// Catalogs that exist.
        others: Vec<String>,
    },
    /// The catalog's server is not connected.
    CatalogNotReady {
        /// `lastObservedState`.
        state: String,
    },
    /// The catalog answers and does not have the package.
    PackageMissing {
        /// The package.
        package: String,
        /// Other catalogs that offer it.
        elsewhere: Vec<String>,
    },
    /// The channel asked for is not in the package.
    UnknownChannel {
        /// It; empty when the package names no default channel.
        channel: String,
        /// `channel (versions)` for each channel.
        offers: Vec<String>,
    },
    /// The version asked for is in none of the channels looked at.
    UnknownVersion {
        /// It.
        version: String,
        /// The channel it was looked for in, if one was asked for.
        channel: Option<String>,
        /// `channel (versions)` for each channel.
        offers: Vec<String>,
    },
    /// The version supports no group scope that fits the namespace.
    NoFittingScope {
        /// The CSV.
        csv: String,
        /// What it supports.
        modes: String,
        /// What was needed, in words.
        needed: String,
    },
    /// An OperatorGroup is there whose scope the version does not support.
    GroupMismatch {
        /// Its namespaces, in words.
        targets: String,
        /// What the version supports.
        modes: String,
    },
    /// Several OperatorGroups in one namespace: OLM installs nothing there.
    SeveralGroups {
        /// Their names.
        names: Vec<String>,
    },
    /// A CSV of an earlier installation that no Subscription refers to.
    OrphanCsv {
        /// The command that removes it.
        remove: String,
    },
    /// A Subscription of the same package is there and is not what was asked for.
    SubscriptionDiffers {
        /// How, in words.
        how: String,
        /// What to do.
        next: String,
    },
    /// The InstallPlan would also install or upgrade other operators.
    Strangers {
        /// Their CSVs.
        csvs: Vec<String>,
    },
    /// OLM plans another version than the one asked for.
    WrongPlan {
        /// What it plans.
        offered: Vec<String>,
        /// What was asked for.
        wanted: String,
    },
    /// OLM takes an older version for the newest that can be reached.
    NoWay {
        /// What is installed.
        installed: String,
        /// What was asked for.
        wanted: String,
        /// The channel.
        channel: String,
    },
    /// The InstallPlan failed.
    PlanFailed {
        /// What OLM says.
        message: String,
    },
    /// OLM finds no set of operators that satisfies the Subscription.
    Unresolvable {
        /// The condition's reason.
        reason: String,
        /// What OLM says.
        message: String,
        /// One sentence of plain language.
        plain: String,
    },
    /// The Subscription was judged before its catalog was ready and is not looked at again for a long time.
    Stale {
        /// What OLM says.
        message: String,
        /// The command that deletes the Subscription.
        remove: String,
    },
    /// Another catalog, not the one installed from, stops resolution.
    OtherCatalog {
        /// Its connection state and since when.
        state: String,
        /// The operator that waits.
        waiting: String,
    },
    /// The bundle image could not be unpacked.
    BundleUnpack {
        /// What OLM says.
        message: String,
        /// The unpack job, when it was found.
        job: Option<String>,
    },
    /// The CSV failed for good.
    CsvFailed {
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
    },
    /// The CSV carries no example of the kind.
    NoExample {
        /// The kind wanted.
        kind: String,
        /// The kinds there are.
        others: Vec<String>,
    },
    /// Something waits for a finalizer that nobody removes any more.
    OperatorGone {
        /// The finalizers.
        finalizers: Vec<String>,
        /// The flag that strips them.
        flag: String,
    },
    /// Several installations were found where one was meant.
    Ambiguous {
        /// The namespaces.
        namespaces: Vec<String>,
    },
}

impl Cause for OlmCause {
    fn code(&self) -> &'static str {
        match self {
            OlmCause::NoOlm => "no-olm",
            OlmCause::NoCatalog { .. } => "no-catalog",
            OlmCause::CatalogNotReady { .. } => "catalog-not-ready",
            OlmCause::PackageMissing { .. } => "package-missing",
            OlmCause::UnknownChannel { .. } => "unknown-channel",
            OlmCause::UnknownVersion { .. } => "unknown-version",
            OlmCause::NoFittingScope { .. } => "no-fitting-scope",
            OlmCause::GroupMismatch { .. } => "operator-group-mismatch",
            OlmCause::SeveralGroups { .. } => "second-operator-group",
            OlmCause::OrphanCsv { .. } => "orphan-csv",
            OlmCause::SubscriptionDiffers { .. } => "subscription-differs",
            OlmCause::Strangers { .. } => "strangers-in-plan",
            OlmCause::WrongPlan { .. } => "wrong-plan",
            OlmCause::NoWay { .. } => "no-upgrade-path",
            OlmCause::PlanFailed { .. } => "install-plan-failed",
            OlmCause::Unresolvable { .. } => "resolution-failed",
            OlmCause::Stale { .. } => "stale-subscription",
            OlmCause::OtherCatalog { .. } => "other-catalog",
            OlmCause::BundleUnpack { .. } => "bundle-unpack-failed",
            OlmCause::CsvFailed { .. } => "csv-failed",
            OlmCause::NoExample { .. } => "no-example",
            OlmCause::OperatorGone { .. } => "operator-gone",
            OlmCause::Ambiguous { .. } => "several-installations",
        }
    }

    fn text(&self) -> String {
        match self {
            OlmCause::NoOlm => "this cluster has no Operator Lifecycle Manager".to_owned(),
            OlmCause::NoCatalog { .. } => "there is no such catalog".to_owned(),
            OlmCause::CatalogNotReady { state } => format!("the catalog's connection is {state}"),
            OlmCause::PackageMissing { package, .. } => {
                format!("the catalog does not list package `{package}`")
            }
            OlmCause::UnknownChannel { channel, .. } if channel.is_empty() => {
                "the package names no default channel".to_owned()
            }
            OlmCause::UnknownChannel { channel, .. } => format!("has no channel `{channel}`"),
            OlmCause::UnknownVersion {
                version,
                channel: Some(channel),
                ..
            } => format!("version {version} is not in channel `{channel}`"),
            OlmCause::UnknownVersion { version, .. } => {
                format!("version {version} is in none of its channels")
            }
            OlmCause::NoFittingScope { csv, modes, needed } => {
                format!("{csv} supports {modes}, and {needed}")
            }
            OlmCause::GroupMismatch { targets, modes } => format!(
                "this OperatorGroup is for {targets}, and the version to be installed supports {modes}"
            ),
            OlmCause::SeveralGroups { names } => format!(
                "{} OperatorGroups in one namespace ({}), so OLM installs nothing there",
                names.len(),
                names.join(", ")
            ),
            OlmCause::OrphanCsv { .. } => {
                "is left from an earlier installation: no Subscription refers to it, and OLM will not install next to it"
                    .to_owned()
            }
            OlmCause::SubscriptionDiffers { how, .. } => how.clone(),
            OlmCause::Strangers { csvs } => {
                format!("would also install {}, which nobody asked for", csvs.join(", "))
            }
            OlmCause::WrongPlan { offered, wanted } => {
                format!("OLM plans {} where {wanted} was asked for", offered.join(", "))
            }
            OlmCause::NoWay { installed, wanted, channel } => {
                format!("OLM finds no upgrade from {installed} to {wanted} in channel `{channel}`")
            }
            OlmCause::PlanFailed { message } => format!("the InstallPlan failed: {message}"),
            OlmCause::Unresolvable {
                reason,
                message,
                plain,
            } => format!("{plain} ({reason}: {message})"),
            OlmCause::Stale { message, .. } => format!(
                "was judged before its catalog was ready, and OLM does not look again for up to 15 min ({message})"
            ),
            OlmCause::OtherCatalog { state, waiting } => format!(
                "this catalog is not the one that {waiting} comes from, and it stops every installation: {state}"
            ),
            OlmCause::BundleUnpack { message, job } => match job {
                Some(job) => format!("the bundle could not be unpacked by job {job}: {message}"),
                None => format!("the bundle could not be unpacked: {message}"),
            },
            OlmCause::CsvFailed { reason, message } => format!("failed with {reason}: {message}"),
            OlmCause::NoExample { kind, .. } => {
                format!("its `alm-examples` hold no {kind}")
            }
            OlmCause::OperatorGone { finalizers, .. } => format!(
                "waits for {}, and the operator that would remove it is gone",
                finalizers.join(", ")
            ),
            OlmCause::Ambiguous { namespaces } => {
                format!("is installed in several namespaces: {}", namespaces.join(", "))
            }
        }
    }

    fn next(&self) -> String {
        match self {
            OlmCause::NoOlm => "install OLM, or use a cluster that has it".to_owned(),
            OlmCause::NoCatalog { others } if others.is_empty() => "add a CatalogSource, there is none".to_owned(),
            OlmCause::NoCatalog { others } => {
                format!("choose one with --catalog: {}", others.join(", "))
            }
            OlmCause::CatalogNotReady { .. } => {
                "see its pod in the catalog's namespace: its image, its log, its registry".to_owned()
            }
            OlmCause::PackageMissing { elsewhere, .. } if elsewhere.is_empty() => {
                "check the catalog's image and that it is meant for this OpenShift version".to_owned()
            }
            OlmCause::PackageMissing { elsewhere, .. } => {
                format!("another catalog has it: --catalog {}", elsewhere.join(" or --catalog "))
            }
            OlmCause::UnknownChannel { offers, .. } => format!("choose from: {}", offers.join(", ")),
            OlmCause::UnknownVersion { offers, .. } => {
                format!("choose from what is published for this cluster: {}", offers.join(", "))
            }
            OlmCause::NoFittingScope { .. } => "choose the namespace with --namespace, or another version".to_owned(),
            OlmCause::GroupMismatch { .. } => {
                "use another namespace with --namespace, or have the owner of the group change it".to_owned()
            }
            OlmCause::SeveralGroups { .. } => {
                "remove all but one of them, or use a namespace of its own with --namespace".to_owned()
            }
            OlmCause::OrphanCsv { remove } => format!("undeploy the operator, or remove it by hand: {remove}"),
            OlmCause::SubscriptionDiffers { next, .. } => next.clone(),
            OlmCause::Strangers { .. } => {
                "install into a namespace of its own with --namespace, or accept them with --approve-strangers"
                    .to_owned()
            }
            OlmCause::WrongPlan { .. } => "ask for what OLM offers, or undeploy first".to_owned(),
            OlmCause::NoWay { .. } => {
                "upgrade by a channel that has the versions between, or undeploy first".to_owned()
            }
            OlmCause::PlanFailed { .. } => {
                "see the plan's steps in its status; undeploy before the next try".to_owned()
            }
            OlmCause::Unresolvable { .. } => {
                "see the other Subscriptions and CSVs of the namespace; undeploy what is in the way".to_owned()
            }
            OlmCause::Stale { remove, .. } => format!("delete the Subscription and run again: {remove}"),
            OlmCause::OtherCatalog { .. } => {
                "have its owner repair or remove it; the operator and its own catalog are in order".to_owned()
            }
            OlmCause::BundleUnpack { job, .. } => match job {
                Some(job) => format!(
                    "check that the bundle image can be pulled, then delete job {job} and its ConfigMap: OLM remembers the failure"
                ),
                None => {
                    "check that the bundle image can be pulled, then delete the failed unpack job: OLM remembers it"
                        .to_owned()
                }
            },
            OlmCause::CsvFailed { reason, .. } => csv_next(reason).to_owned(),
            OlmCause::NoExample { others, .. } => {
                format!("examples there are: {}", others.join(", "))
            }
            OlmCause::OperatorGone { flag, .. } => {
                format!("install the operator again and let it clean up, or strip the finalizer with {flag}")
            }
            OlmCause::Ambiguous { .. } => "say which one with --namespace".to_owned(),
        }
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            OlmCause::NoCatalog { .. }
            | OlmCause::UnknownChannel { .. }
            | OlmCause::UnknownVersion { .. }
            | OlmCause::NoFittingScope { .. }
            | OlmCause::GroupMismatch { .. }
            | OlmCause::SeveralGroups { .. }
            | OlmCause::OrphanCsv { .. }
            | OlmCause::SubscriptionDiffers { .. }
            | OlmCause::Strangers { .. }
            | OlmCause::WrongPlan { .. }
            | OlmCause::NoWay { .. }
            | OlmCause::OperatorGone { .. }
            | OlmCause::Ambiguous { .. } => FailureVerdict::Configuration,
            OlmCause::NoOlm
            | OlmCause::CatalogNotReady { .. }
            | OlmCause::PackageMissing { .. }
            | OlmCause::Unresolvable { .. }
            | OlmCause::Stale { .. }
            | OlmCause::OtherCatalog { .. }
            | OlmCause::BundleUnpack { .. } => FailureVerdict::Infrastructure,
            OlmCause::CsvFailed { reason, .. } if is_about_groups(reason) => FailureVerdict::Configuration,
            OlmCause::PlanFailed { .. } | OlmCause::CsvFailed { .. } | OlmCause::NoExample { .. } => {
                FailureVerdict::Product
            }
        }
    }

    fn exit(&self) -> Exit {
        match self {
            // What was asked for cannot be had on this cluster: nothing was changed.
            OlmCause::NoCatalog { .. } | OlmCause::UnknownChannel { .. } | OlmCause::UnknownVersion { .. } => {
                Exit::Configuration
            }
            OlmCause::OperatorGone { .. } => Exit::CleanUp,
            _ => Exit::Failed,
        }
    }
}

/// Whether a CSV's reason is about the namespace's OperatorGroup.
pub(super) fn is_about_groups(reason: &str) -> bool {
    matches!(
        reason,
        "UnsupportedOperatorGroup"
            | "TooManyOperatorGroups"
            | "NoOperatorGroup"
            | "InterOperatorGroupOwnerConflict"
            | "CannotModifyStaticOperatorGroupProvidedAPIs"
    )
}

fn csv_next(reason: &str) -> &'static str {
    match reason {
        "UnsupportedOperatorGroup" => {
            "the namespace's OperatorGroup does not fit this version: use a namespace of its own with --namespace"
        }
        "TooManyOperatorGroups" => "remove all but one OperatorGroup of the namespace",
        "NoOperatorGroup" => "create an OperatorGroup in the namespace, or run the installation again",
        "OwnerConflict" | "InterOperatorGroupOwnerConflict" => "another operator owns the same API: undeploy it first",
        _ => "see the operator's Deployment and its pods in the CSV's namespace",
    }
}
