//! Package manifests: computed from catalogs whenever somebody asks, never stored.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::bundle::{annotations, install_modes, owned};
use super::catalog::{CATALOG_NAMESPACE, state};
use crate::controllers::kit::{CATALOG_SOURCE, Cache, Context, Controller, Kind, Read, Timers};
use crate::scenario::{Catalog, Package};

/// The package server: it knows what catalogs that are READY offer.
#[derive(Clone, Default)]
pub(crate) struct PackageManifests {
    known: Arc<Mutex<Vec<Value>>>,
}

impl PackageManifests {
    /// The manifests at this moment.
    pub(crate) fn list(&self) -> Vec<Value> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the manifests of the named catalogs known.
    pub(crate) fn publish(&self, context: &Context, ready: &[&str], now: &str) {
        let catalogs = context.scenario.catalogs.iter().filter(|catalog| ready.contains(&catalog.name.as_str()));
        let all = catalogs
            .flat_map(|catalog| catalog.packages.iter().map(|package| manifest(context, catalog, package, now)));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = all.collect();
    }
}

impl Controller for PackageManifests {
    const KINDS: &'static [Kind] = &[CATALOG_SOURCE];

    async fn reconcile(&mut self, context: &Context, cache: &mut Cache, _: &mut Timers) -> Result<(), kube::Error> {
        let sources = cache.within(CATALOG_SOURCE, CATALOG_NAMESPACE);
        let ready: Vec<&str> =
            sources.iter().filter(|source| state(source) == "READY").map(|source| source.name()).collect();
        self.publish(context, &ready, &context.stamp());
        Ok(())
    }
}

fn manifest(context: &Context, catalog: &Catalog, package: &Package, now: &str) -> Value {
    let provider = json!({"name": if package.name == "nfd" { "Red Hat" } else { "NVIDIA Corporation" }});
    let channels = package.channels.iter().map(|(name, csvs)| {
        let bundle = |csv: &String| package.bundles.iter().find(|bundle| &bundle.csv == csv);
        let head = csvs.first().and_then(bundle).cloned().unwrap_or_default();
        let entries: Vec<Value> = csvs
            .iter()
            .filter_map(bundle)
            .map(|bundle| json!({"name": bundle.csv, "version": bundle.version}))
            .collect();
        json!({
            "name": name,
            "currentCSV": head.csv,
            "entries": entries,
            "currentCSVDesc": {
                "displayName": head.display_name,
                "version": head.version,
                "annotations": annotations(context, &head),
                "installModes": install_modes(&head),
                "customresourcedefinitions": {"owned": owned(&head)},
                "provider": provider,
            },
        })
    });
    json!({
        "apiVersion": "packages.operators.coreos.com/v1",
        "kind": "PackageManifest",
        "metadata": {
            "name": package.name, "namespace": CATALOG_NAMESPACE, "creationTimestamp": now,
            "labels": {
                "catalog": catalog.name, "catalog-namespace": CATALOG_NAMESPACE, "provider": provider["name"].clone(),
            },
        },
        "spec": {},
        "status": {
            "catalogSource": catalog.name, "catalogSourceNamespace": CATALOG_NAMESPACE,
            "catalogSourceDisplayName": catalog.display_name, "catalogSourcePublisher": "Red Hat",
            "packageName": package.name, "defaultChannel": package.default_channel, "provider": provider,
            "channels": channels.collect::<Vec<_>>(),
        },
    })
}
