//! Whether an operator is there to do its work: its kind is served and its Deployment runs.

use std::sync::Arc;

use kube::core::DynamicObject;

use crate::controllers::kit::{CRD, Cache, DEPLOYMENT, Kind, Read, is_true};

/// Starts to watch a custom kind once its definition is established. Whether it is watched.
pub(super) fn served(cache: &mut Cache, kind: Kind) -> bool {
    let name = format!("{}.{}", kind.plural, kind.group);
    let there = cache.get(CRD, "", &name).is_some_and(|crd| is_true(&crd, "Established") && !crd.is_deleted());
    if there {
        cache.watch(kind);
    } else {
        cache.unwatch(kind);
    }
    there
}

/// The operator's Deployment, if it is available.
pub(super) fn running(cache: &Cache, deployment: &str) -> Option<Arc<DynamicObject>> {
    let mut all = cache.all(DEPLOYMENT).into_iter();
    all.find(|found| found.name() == deployment && !found.is_deleted() && is_true(found, "Available"))
}
