//! Cluster service versions: from no phase to Succeeded, or Failed with a reason.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::group;
use crate::controllers::kit::{
    CRD, CSV, Cache, Context, Controller, DEPLOYMENT, Kind, OPERATOR_GROUP, Read, Timers, is_true, owner_reference,
};

/// The OLM operator itself.
pub(crate) struct Csvs;

/// How long OLM waits for a Deployment before the CSV is Failed.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);

impl Controller for Csvs {
    const KINDS: &'static [Kind] = &[CSV, OPERATOR_GROUP, DEPLOYMENT, CRD];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for csv in cache.all(CSV) {
            if !csv.is_deleted() {
                one(context, cache, timers, &csv).await?;
            }
        }
        self.retire(cache).await
    }
}

impl Csvs {
    /// CSVs that have been replaced, one after the other, go once the last of the chain has succeeded.
    async fn retire(&self, cache: &mut Cache) -> Result<(), kube::Error> {
        for csv in cache.all(CSV) {
            let mut successor = csv.clone();
            while csv.text("/status/phase") == "Succeeded"
                && let Some(old) = cache.get(CSV, csv.namespace(), successor.text("/spec/replaces"))
                && !old.is_deleted()
            {
                cache.delete(CSV, &old, false).await?;
                successor = old;
            }
        }
        Ok(())
    }
}

async fn one(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    csv: &DynamicObject,
) -> Result<(), kube::Error> {
    let others = cache.within(CSV, csv.namespace());
    if let Some(successor) = others.iter().find(|other| other.text("/spec/replaces") == csv.name()) {
        let message = format!("being replaced by csv: {}", successor.name());
        return phase(context, cache, csv, "Replacing", "BeingReplaced", &message).await;
    }
    let groups = cache.within(OPERATOR_GROUP, csv.namespace());
    if let Some((reason, message)) = group::objection(csv, &groups) {
        return phase(context, cache, csv, "Failed", reason, &message).await;
    }
    if let Some(group) = groups.first() {
        cache.patch(CSV, csv, json!({"metadata": {"annotations": group::annotations(group)}})).await?;
    }
    let uid = csv.uid().to_owned();
    let timings = &context.scenario.timings;
    let who = csv.text("/spec/install/spec/deployments/0/name").to_owned();
    let stable =
        matches!(csv.text("/status/reason"), "TooManyOperatorGroups" | "UnsupportedOperatorGroup" | "NoOperatorGroup");
    match csv.text("/status/phase") {
        "Failed" if stable => {
            phase(context, cache, csv, "Pending", "RequirementsUnknown", "OperatorGroup no longer in the way").await
        }
        "" => phase(context, cache, csv, "Pending", "RequirementsUnknown", "requirements not yet checked").await,
        "Pending" => {
            if csv.text("/status/reason") == "RequirementsUnknown" {
                return phase(
                    context,
                    cache,
                    csv,
                    "Pending",
                    "RequirementsNotMet",
                    "one or more requirements couldn't be found",
                )
                .await;
            }
            let passed = timers
                .passed(format!("{uid}/requirements"), context.draw(timings.csv_requirements, "csvRequirements", &who));
            if passed && crds_are_there(cache, csv) {
                phase(
                    context,
                    cache,
                    csv,
                    "InstallReady",
                    "AllRequirementsMet",
                    "all requirements found, attempting install",
                )
                .await?;
            }
            Ok(())
        }
        "InstallReady" => {
            if timers.passed(format!("{uid}/install"), context.draw(timings.csv_install, "csvInstall", &who)) {
                for deployment in deployments(csv) {
                    own(cache, &deployment).await?;
                }
                let message = "waiting for install components to report healthy";
                phase(context, cache, csv, "Installing", "InstallSucceeded", message).await?;
            }
            Ok(())
        }
        "Installing" => installing(context, cache, timers, csv, &who).await,
        "Succeeded" => {
            if let Some(name) = unavailable(cache, csv) {
                let message = format!(
                    "installing: waiting for deployment {name} to become ready: deployment \"{name}\" not available"
                );
                phase(context, cache, csv, "Failed", "ComponentUnhealthy", &message).await?;
            }
            Ok(())
        }
        "Failed" if csv.text("/status/reason") == "ComponentUnhealthy" => {
            phase(context, cache, csv, "Pending", "NeedsReinstall", "installing: deployment changed, reinstalling")
                .await
        }
        _ => Ok(()),
    }
}

/// Creates a Deployment, or takes over the one of the version before.
async fn own(cache: &mut Cache, deployment: &DynamicObject) -> Result<(), kube::Error> {
    let Some(present) = cache.get(DEPLOYMENT, deployment.namespace(), deployment.name()) else {
        return cache.create(DEPLOYMENT, deployment).await;
    };
    let metadata = json!({
        "labels": deployment.metadata.labels, "ownerReferences": deployment.metadata.owner_references,
    });
    cache.patch(DEPLOYMENT, &present, json!({"metadata": metadata, "spec": deployment.data["spec"]})).await
}

async fn installing(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    csv: &DynamicObject,
    who: &str,
) -> Result<(), kube::Error> {
    let uid = csv.uid();
    let health = context.draw(context.scenario.timings.csv_health, "csvHealth", who);
    let late = timers.passed(format!("{uid}/timeout"), INSTALL_TIMEOUT);
    match unavailable(cache, csv) {
        None => {
            if timers.passed(format!("{uid}/health"), health) {
                phase(
                    context,
                    cache,
                    csv,
                    "Succeeded",
                    "InstallSucceeded",
                    "install strategy completed with no errors",
                )
                .await?;
            }
            Ok(())
        }
        Some(name) if late => {
            let message = format!(
                "install failed: deployment {name} not ready before timeout: deployment \"{name}\" exceeded its progress deadline"
            );
            phase(context, cache, csv, "Failed", "InstallCheckFailed", &message).await
        }
        Some(name) => {
            // The first check comes a moment after the install itself.
            if timers.passed(format!("{uid}/look"), health) {
                let message = format!(
                    "installing: waiting for deployment {name} to become ready: deployment \"{name}\" not available: \
                     Deployment does not have minimum availability."
                );
                phase(context, cache, csv, "Installing", "InstallWaiting", &message).await?;
            }
            Ok(())
        }
    }
}

/// The first Deployment of a CSV that is not there or not available.
fn unavailable(cache: &Cache, csv: &DynamicObject) -> Option<String> {
    deployments(csv)
        .iter()
        .map(Read::name)
        .find(|name| {
            !cache.get(DEPLOYMENT, csv.namespace(), name).is_some_and(|found| {
                is_true(&found, "Available") && found.int("/status/observedGeneration") >= found.generation()
            })
        })
        .map(ToOwned::to_owned)
}

fn crds_are_there(cache: &Cache, csv: &DynamicObject) -> bool {
    csv.list("/spec/customresourcedefinitions/owned").iter().all(|owned| {
        let name = owned["name"].as_str().unwrap_or_default();
        cache.get(CRD, "", name).is_some_and(|crd| is_true(&crd, "Established"))
    })
}

/// The Deployments that a CSV asks for.
fn deployments(csv: &DynamicObject) -> Vec<DynamicObject> {
    let entries = csv.list("/spec/install/spec/deployments").iter();
    let targets = csv.annotation("olm.targetNamespaces").unwrap_or_default().to_owned();
    entries
        .map(|entry| {
            let mut deployment = DEPLOYMENT.object(csv.namespace(), entry["name"].as_str().unwrap_or_default());
            let mut owner = owner_reference(CSV, csv);
            owner.controller = Some(false);
            owner.block_owner_deletion = Some(false);
            deployment.metadata.owner_references = Some(vec![owner]);
            deployment.metadata.labels = Some(
                [
                    ("olm.owner".to_owned(), csv.name().to_owned()),
                    ("olm.owner.namespace".to_owned(), csv.namespace().to_owned()),
                ]
                .into(),
            );
            let mut spec = entry["spec"].clone();
            spec["template"]["metadata"]["annotations"] = json!({
                "olm.operatorNamespace": csv.namespace(), "olm.targetNamespaces": targets,
            });
            deployment.data = json!({"spec": spec});
            deployment
        })
        .collect()
}

async fn phase(
    context: &Context,
    cache: &mut Cache,
    csv: &DynamicObject,
    phase: &str,
    reason: &str,
    message: &str,
) -> Result<(), kube::Error> {
    if csv.text("/status/phase") == phase
        && csv.text("/status/reason") == reason
        && csv.text("/status/message") == message
    {
        return Ok(());
    }
    let now = context.stamp();
    let since = if csv.text("/status/phase") == phase {
        csv.at("/status/lastTransitionTime").clone()
    } else {
        now.clone().into()
    };
    let entry = json!({
        "phase": phase, "reason": reason, "message": message, "lastUpdateTime": now, "lastTransitionTime": since,
    });
    let mut history: Vec<Value> = csv.list("/status/conditions").to_vec();
    history.push(entry.clone());
    // Twenty entries are kept.
    let surplus = history.len().saturating_sub(20);
    history.drain(..surplus);
    let mut status = entry;
    status["conditions"] = history.into();
    cache.status(CSV, csv, status).await
}
