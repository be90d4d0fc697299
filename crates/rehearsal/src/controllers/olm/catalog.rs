//! Catalog sources: a connection that becomes READY, or never does.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controllers::kit::{CATALOG_SOURCE, Cache, Context, Controller, Kind, Read, Timers};

/// Namespace of catalogs that every namespace sees.
pub(crate) const CATALOG_NAMESPACE: &str = "openshift-marketplace";

/// The part of the catalog operator that connects to catalogs.
pub(crate) struct Catalogs;

impl Controller for Catalogs {
    const KINDS: &'static [Kind] = &[CATALOG_SOURCE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for source in cache.all(CATALOG_SOURCE) {
            let known = context.scenario.catalogs.iter().find(|catalog| catalog.name == source.name());
            let end = known.map_or("", |catalog| catalog.stuck_at.as_str());
            let settled = if end.is_empty() { "READY" } else { end };
            if source.is_deleted() || state(&source) == settled {
                continue;
            }
            let wait = context.draw(context.scenario.timings.catalog_ready, "catalogReady", source.name());
            let next = match (timers.passed(format!("{}/ready", source.uid()), wait), end) {
                (false, _) => "CONNECTING",
                (true, "") => "READY",
                (true, stuck) => stuck,
            };
            if state(&source) != next {
                cache.status(CATALOG_SOURCE, &source, connection(&source, next, &context.stamp())).await?;
            }
        }
        Ok(())
    }
}

/// The state that OLM last saw a catalog in.
pub(super) fn state(source: &DynamicObject) -> &str {
    source.text("/status/connectionState/lastObservedState")
}

/// The status of a catalog in a connection state.
pub(crate) fn connection(source: &DynamicObject, state: &str, now: &str) -> Value {
    json!({"connectionState": {
        "address": format!("{}.{}.svc:50051", source.name(), source.namespace()),
        "lastConnect": now,
        "lastObservedState": state,
    }})
}
