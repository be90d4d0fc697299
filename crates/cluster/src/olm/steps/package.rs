//! Waiting for a catalog to offer a package. Package servers cannot be watched (they answer "method not allowed"), so
//! their list is read again every few seconds. One good read is enough and is kept: the next one may come from a replica
//! that does not know the package yet.

use std::time::Duration;

use toolbox_engine::why::Evidence;
use toolbox_engine::{FailureVerdict, ObjectRef, StepCx, Why};

use crate::olm::{OlmCause, Package, PackageRef};
use crate::{Cluster, ClusterError, Object, Query, kinds};

/// Between two looks at the package server.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Where a package server's trouble shows.
const SEE_SERVER: &str = "see the packageserver pods in openshift-operator-lifecycle-manager";

/// The package as the catalog offers it, once the catalog is ready to install from.
pub(super) async fn wait_for_package(cx: &StepCx, cluster: &Cluster, id: &PackageRef) -> Result<Package, Why> {
    leave_flake(cx, cluster, id);
    let mut offered = None;
    loop {
        let why = match look(cluster, id, &mut offered).await? {
            Ok(package) => return Ok(package),
            Err(why) => why,
        };
        if cx.dry() {
            return Err(why);
        }
        cx.pending(why);
        cx.clock().sleep(LOOK_AGAIN).await;
    }
}

/// The outer error ends the wait, the inner one is a reason to look again.
async fn look(cluster: &Cluster, id: &PackageRef, offered: &mut Option<Package>) -> Result<Result<Package, Why>, Why> {
    let catalogs = match cluster.list(&Query::all(&kinds::CATALOG_SOURCE)).await {
        Ok(catalogs) => catalogs,
        Err(error) if error.is_not_served() => {
            return Err(Why::new(error.object(), &OlmCause::NoOlm));
        }
        Err(error) => return passing(error),
    };
    let ours =
        |catalog: &&Object| catalog.name() == id.catalog && catalog.namespace() == Some(id.catalog_namespace.as_str());
    let Some(catalog) = catalogs.iter().find(ours) else {
        let mut others: Vec<String> = catalogs.iter().map(|one| one.name().to_owned()).collect();
        others.sort();
        let object = kinds::CATALOG_SOURCE.object(Some(&id.catalog_namespace), &id.catalog);
        return Err(Why::new(object, &OlmCause::NoCatalog { others }));
    };
    if offered.is_none() {
        let query = Query::within(&kinds::PACKAGE_MANIFEST, &id.catalog_namespace).labels(id.selector());
        let manifests = match cluster.list(&query).await {
            Ok(manifests) => manifests,
            Err(error) => return package_server_away(error),
        };
        *offered = Package::find(&manifests, id);
    }
    // A Subscription made before its catalog is ready is judged wrongly and not looked at again for a quarter of an hour.
    let state = catalog.text("/status/connectionState/lastObservedState");
    if state.is_some_and(|state| state != "READY") {
        let state = crate::olm::catalog_state(catalog).unwrap_or_default();
        return Ok(Err(Why::new(catalog.refer(), &OlmCause::CatalogNotReady { state })));
    }
    match offered.take() {
        Some(package) => Ok(Ok(package)),
        None => Ok(Err(missing(cluster, id, catalog).await)),
    }
}

async fn missing(cluster: &Cluster, id: &PackageRef, catalog: &Object) -> Why {
    let everywhere = Query::within(&kinds::PACKAGE_MANIFEST, &id.catalog_namespace);
    let manifests = cluster.list(&everywhere).await.unwrap_or_default();
    let cause = OlmCause::PackageMissing { package: id.name.clone(), elsewhere: Package::elsewhere(&manifests, id) };
    Why::new(catalog.refer(), &cause)
}

/// A package server that is away or restarts is a reason to wait; no right to ask it, or none to talk to, is not.
fn passing(error: ClusterError) -> Result<Result<Package, Why>, Why> {
    if error.is_about_access() {
        return Err(error.into());
    }
    let why = Why::waiting(error.object(), "package-server-away", error.to_string())
        .or_else(FailureVerdict::Infrastructure, SEE_SERVER);
    Ok(Err(why))
}

/// The catalogs were listed a moment ago, so the API server itself is there: "not now" from the aggregated API, and a group
/// that is not served, speak of the package server behind it, which comes back.
fn package_server_away(error: ClusterError) -> Result<Result<Package, Why>, Why> {
    let said = match &error {
        ClusterError::Unreachable { last, .. } => last.clone(),
        ClusterError::NotServed { .. } => "it serves nothing".to_owned(),
        _ => return passing(error),
    };
    let service = format!("{}.{}", kinds::PACKAGE_MANIFEST.version, kinds::PACKAGE_MANIFEST.group);
    let service = ObjectRef::new("apiregistration.k8s.io/v1", "APIService", None, &service);
    let why = Why::waiting(service, "package-server-away", format!("the package server does not answer: {said}"));
    Ok(Err(why.or_else(FailureVerdict::Infrastructure, SEE_SERVER)))
}

/// A catalog that does not offer a package in time is a known flake: it is marked, and OLM's log is kept.
fn leave_flake(cx: &StepCx, cluster: &Cluster, id: &PackageRef) {
    let (cx, cluster, id) = (cx.clone(), cluster.clone(), id.clone());
    cx.clone().diagnose_with(move || async move {
        cx.file("FLAKE", format!("package {} did not show up in catalog {}\n", id.name, id.catalog));
        catalog_log(&cx, &cluster).await
    });
}

/// The end of the catalog operator's log, as a file and as evidence.
pub(super) async fn catalog_log(cx: &StepCx, cluster: &Cluster) -> Vec<Evidence> {
    const NAMESPACE: &str = "openshift-operator-lifecycle-manager";
    let query = Query::within(&kinds::POD, NAMESPACE).labels("app=catalog-operator");
    let pods = cluster.list(&query).await.unwrap_or_default();
    let Some(pod) = pods.first() else {
        return Vec::new();
    };
    let options = crate::LogOptions { tail_lines: Some(500), limit_bytes: Some(256 * 1024), ..Default::default() };
    let Ok(log) = cluster.log(NAMESPACE, pod.name(), None, &options).await else {
        return Vec::new();
    };
    cx.file("catalog_operator.log", &log);
    let tail: Vec<&str> = log.lines().rev().take(3).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    vec![Evidence { label: format!("log of pod {NAMESPACE}/{}", pod.name()), text: tail.join("\n") }]
}
