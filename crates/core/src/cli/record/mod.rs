//! `rehearse --record`: watches a real cluster for a while, changes nothing, and writes a scenario that shows the same.

mod clean;
mod shape;
mod tape;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolbox_cluster::{Cluster, ClusterError, Query, Watched, kinds};
use toolbox_engine::plan::{Changes, Kind};
use toolbox_engine::{Clock, Redactor, Report, Why};
use toolbox_rehearsal::Scenario;

use super::output;
use crate::config::{ConfigError, plain, to_yaml};
use tape::Tape;

/// What is to be recorded.
pub(crate) struct Request<'a> {
    /// The scenario to be written.
    pub(crate) file: &'a Path,
    /// Namespaces whose objects are recorded; none means all but the platform's own.
    pub(crate) namespaces: &'a [String],
    /// How long.
    pub(crate) time: Duration,
}

/// Kinds that are recorded wherever they are, owners before what they own.
const CLUSTER: [Kind; 5] = [kinds::NAMESPACE, kinds::CRD, kinds::NODE, kinds::CLUSTER_POLICY, kinds::PACKAGE_MANIFEST];
/// Kinds that are recorded in the namespaces asked for.
const NAMESPACED: [Kind; 14] = [
    kinds::MACHINE_SET,
    kinds::MACHINE,
    kinds::CATALOG_SOURCE,
    kinds::OPERATOR_GROUP,
    kinds::SUBSCRIPTION,
    kinds::INSTALL_PLAN,
    kinds::CSV,
    kinds::NODE_FEATURE_DISCOVERY,
    kinds::NODE_FEATURE,
    kinds::DEPLOYMENT,
    kinds::REPLICA_SET,
    kinds::DAEMON_SET,
    kinds::JOB,
    kinds::POD,
];
/// Namespaces of the platform that belong to what is tested.
const OURS: [&str; 3] = ["openshift-machine-api", "openshift-marketplace", "openshift-nfd"];

/// Whether what is in a namespace is recorded.
fn wanted(namespaces: &[String], kind: &Kind, namespace: &str) -> bool {
    let always = [kinds::MACHINE_SET, kinds::MACHINE, kinds::CATALOG_SOURCE];
    if namespaces.is_empty() {
        let platform = namespace.starts_with("openshift") || namespace.starts_with("kube-");
        return !platform || (OURS.contains(&namespace) && (always.contains(kind) || namespace == "openshift-nfd"));
    }
    always.contains(kind) || namespaces.iter().any(|asked| asked == namespace)
}

/// Watches until the time is over or somebody stops it, and writes the file.
pub(crate) async fn record(
    cluster: &Cluster,
    clock: &Clock,
    request: &Request<'_>,
    stop: &CancellationToken,
    redactor: &Redactor,
) -> Result<Report, Why> {
    let folder = request.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(unwritable(request.file, "its directory does not exist"));
    }
    let scenario = watch(cluster, clock, request, stop, redactor).await?;
    let count = scenario["recorded"]["objects"].as_array().map_or(0, Vec::len);
    let changes: usize = scenario["recorded"]["objects"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|recorded| recorded["changes"].as_array().map_or(0, Vec::len))
        .sum();
    let text = format!(
        "# Recorded from a cluster; secrets were taken out, but read it before you hand it on.\n{}",
        to_yaml(&scenario)?
    );
    let text = redactor.text(&text);
    std::fs::write(request.file, text.as_bytes()).map_err(|error| unwritable(request.file, &plain(&error)))?;
    let file = request.file.display().to_string();
    if let Err(error) = Scenario::from_yaml(&file, &text) {
        output::complain(&format!("note: the recording has to be corrected before it can be shown: {error}"));
    }
    let text = format!("{file}: {count} objects, {changes} changes in {} s", scenario["recorded"]["seconds"]);
    Ok(Report { text, json: serde_json::json!({"file": file, "objects": count, "changes": changes}) })
}

fn unwritable(file: &Path, problem: &str) -> Why {
    let error = ConfigError::file(file.display().to_string(), format!("the recording cannot be written: {problem}"));
    error.help("name a file in a directory that can be written").into()
}

/// The scenario that shows what was seen.
async fn watch(
    cluster: &Cluster,
    clock: &Clock,
    request: &Request<'_>,
    stop: &CancellationToken,
    redactor: &Redactor,
) -> Result<Value, Why> {
    let mut watches = Vec::new();
    for kind in CLUSTER.iter().chain(&NAMESPACED) {
        // Catalogs are read once: they have thousands of packages.
        if *kind != kinds::PACKAGE_MANIFEST && cluster.serves(kind).await? {
            watches.push(cluster.watch(Query::all(kind)));
        }
    }
    settled(&mut watches, clock, stop).await;
    let packages = match cluster.list(&Query::all(&kinds::PACKAGE_MANIFEST)).await {
        Ok(packages) => packages,
        Err(ClusterError::NotServed { .. }) => Vec::new(),
        Err(error) => {
            output::complain(&format!("note: packages are not recorded: {error}"));
            Vec::new()
        }
    };
    let began = clock.now();
    let start = clock.elapsed();
    let mut tape = Tape::new(request.namespaces, redactor);
    loop {
        let passed = clock.elapsed().saturating_sub(start);
        tape.look(&watches, passed);
        if passed >= request.time {
            break;
        }
        let mut changes = watches.iter().fold(Changes::default(), |all, watched| all.and(watched.changes()));
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = changes.next(clock) => {}
            () = clock.sleep(request.time.saturating_sub(passed)) => {}
        }
    }
    let passed = clock.elapsed().saturating_sub(start);
    let infrastructure = cluster.get(&kinds::INFRASTRUCTURE, None, "cluster").await.ok().flatten();
    let mut scenario = shape::scenario(cluster.info(), infrastructure.as_ref(), &watches, &packages);
    scenario["recorded"] = tape.recording(began, passed);
    redactor.json(&mut scenario);
    Ok(scenario)
}

/// Waits until everything was listed once, and leaves out what may not be read.
async fn settled(watches: &mut Vec<Watched>, clock: &Clock, stop: &CancellationToken) {
    /// How long a list may take before the recording starts without it.
    const PATIENCE: Duration = Duration::from_secs(60);
    let start = clock.elapsed();
    while watches.iter().any(|watched| watched.trouble().is_some()) && clock.elapsed() < start + PATIENCE {
        watches.retain(|watched| {
            let trouble = watched.trouble().filter(|why| why.exit == toolbox_engine::Exit::Access);
            if let Some(why) = &trouble {
                output::complain(&format!("note: not recorded: {why}"));
            }
            trouble.is_none()
        });
        let mut changes = watches.iter().fold(Changes::default(), |all, watched| all.and(watched.changes()));
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = changes.next(clock) => {}
            () = clock.sleep(Duration::from_millis(100)) => {}
        }
    }
}
