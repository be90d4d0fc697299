//! ClusterServiceVersions: which are a package's, which are orphans, and what their phase means.

use std::time::Duration;

use jiff::Timestamp;
use toolbox_engine::{Verdict, Why};

use crate::Object;

use super::{OlmCause, PackageRef, Patience};

/// How long a CSV may stay Failed for a reason that OLM gets over by itself.
const PASSING_FAILURE: Duration = Duration::from_secs(180);

/// Whether the CSV is one of the package's, in its own namespace (not one of the copies OLM makes elsewhere).
pub fn belongs_to(csv: &Object, package: &PackageRef) -> bool {
    let namespace = csv.namespace().unwrap_or_default();
    let labelled = csv.label(&package.component_label(namespace)).is_some();
    let named = csv.name().strip_prefix(package.name.as_str()).is_some_and(|rest| {
        rest.strip_prefix('.')
            .map(|version| version.strip_prefix('v').unwrap_or(version))
            .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    });
    (labelled || named) && csv.label("olm.copiedFrom").is_none() && csv.text("/status/reason") != Some("Copied")
}

/// The package's CSVs that no Subscription refers to: OLM will not install next to them.
pub fn orphan_csvs(csvs: &[Object], subscriptions: &[Object], package: &PackageRef) -> Vec<Object> {
    let referred = |csv: &Object| {
        subscriptions.iter().any(|subscription| {
            subscription.namespace() == csv.namespace()
                && ["/status/installedCSV", "/status/currentCSV"]
                    .iter()
                    .any(|path| subscription.text(path) == Some(csv.name()))
        })
    };
    // A Subscription of the package that has no status yet may be about to name it.
    let undecided = |csv: &Object| {
        subscriptions.iter().any(|subscription| {
            subscription.namespace() == csv.namespace()
                && subscription.text("/spec/name") == Some(package.name.as_str())
                && subscription.text("/status/currentCSV").is_none()
                && subscription.condition("ResolutionFailed").is_none()
        })
    };
    csvs.iter()
        .filter(|csv| belongs_to(csv, package) && !csv.is_deleting())
        .filter(|csv| !referred(csv) && !undecided(csv))
        .cloned()
        .collect()
}

/// What the phase means. The reason alone is not read: a CSV says `InstallSucceeded` while it still installs.
pub fn csv_verdict(csv: &Object, patience: &mut Patience, now: Timestamp) -> Verdict<Object> {
    const FAILED: &str = "csv-failed";
    let phase = csv.text("/status/phase").unwrap_or_default();
    let reason = csv.text("/status/reason").unwrap_or_default().to_owned();
    let message = csv.text("/status/message").unwrap_or_default().to_owned();
    if csv.is_deleting() {
        return Verdict::Pending(Why::waiting(csv.refer(), "csv-deleting", "is being deleted"));
    }
    if phase != "Failed" {
        patience.forget(FAILED);
    }
    match phase {
        "Succeeded" => Verdict::Done(csv.clone()),
        "Failed" => {
            let why = Why::new(csv.refer(), &OlmCause::CsvFailed { reason: reason.clone(), message });
            if is_passing(&reason) && !patience.is_over(FAILED, now, PASSING_FAILURE) {
                Verdict::Pending(Why { cause: format!("{}; OLM tries again", why.cause), ..why })
            } else {
                Verdict::Failed(why)
            }
        }
        "" => Verdict::Pending(Why::waiting(csv.refer(), "csv-new", "OLM has not looked at it yet")),
        _ => {
            let detail = missing_requirement(csv).unwrap_or(message);
            let detail = if detail.is_empty() { reason } else { detail };
            let text = format!("is {phase}: {detail}");
            Verdict::Pending(Why::waiting(csv.refer(), "csv-installing", text))
        }
    }
}

/// Failures that OLM gets over by itself, as opposed to those it stays in.
fn is_passing(reason: &str) -> bool {
    matches!(
        reason,
        "ComponentUnhealthy"
            | "NeedsReinstall"
            | "NeedsCertRotation"
            | "APIServiceResourceIssue"
            | "APIServiceResourcesNeedReinstall"
            | "APIServiceInstallFailed"
            | "DetectedClusterChange"
            | "InstallComponentFailed"
            | "RequirementsNotMet"
            | "BeingReplaced"
    )
}

fn missing_requirement(csv: &Object) -> Option<String> {
    let missing: Vec<String> = csv
        .list("/status/requirementStatus")
        .iter()
        .filter(|item| item["status"] == "NotPresent" || item["status"] == "PresentNotSatisfied")
        .filter_map(|item| {
            let kind = item["kind"].as_str()?;
            let name = item["name"].as_str()?;
            Some(format!("{kind} {name}"))
        })
        .collect();
    (!missing.is_empty() && csv.text("/status/phase") == Some("Pending"))
        .then(|| format!("needs {}", missing.join(", ")))
}
