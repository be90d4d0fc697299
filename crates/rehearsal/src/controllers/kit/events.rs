//! Events about objects, counted as the real recorders do.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::json;

use super::{Cache, Context, EVENT, Kind, Read};

/// Writes Events of one component and counts repetitions.
pub(crate) struct Recorder {
    component: &'static str,
    kind: Kind,
    counts: BTreeMap<String, (i64, String)>,
}

impl Recorder {
    /// A recorder of a component about objects of one kind.
    pub(crate) fn new(component: &'static str, kind: Kind) -> Self {
        Self { component, kind, counts: BTreeMap::new() }
    }

    /// Records `reason` and `message` about an object. Losing an event is no reason to fail.
    pub(crate) async fn record(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        about: &DynamicObject,
        warning: bool,
        reason: &str,
        message: &str,
    ) {
        if cache.is_held(self.kind, about) {
            return;
        }
        let number = context.dice.number(about.uid(), &format!("{reason}/{message}"));
        let name = format!("{}.{number:016x}", about.name());
        let namespace = if about.namespace().is_empty() { "default" } else { about.namespace() };
        let now = context.stamp();
        let (count, first) = self.counts.entry(format!("{namespace}/{name}")).or_insert((0, now.clone()));
        *count += 1;
        let mut event = EVENT.object(namespace, &name);
        event.data = json!({
            "type": if warning { "Warning" } else { "Normal" },
            "reason": reason,
            "message": message,
            "count": *count,
            "firstTimestamp": *first,
            "lastTimestamp": now,
            "involvedObject": {
                "apiVersion": self.kind.api_version(), "kind": self.kind.name, "namespace": about.namespace(),
                "name": about.name(), "uid": about.uid(),
            },
            "source": {"component": self.component},
            "reportingComponent": "", "reportingInstance": "", "eventTime": null,
        });
        let outcome = if *count == 1 {
            cache.create(EVENT, &event).await
        } else {
            let patch = json!({"count": *count, "lastTimestamp": now});
            cache.patch(EVENT, &event, patch).await
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, reason, "event lost");
        }
    }
}
