//! ReplicaSets: as many pods as wanted, and their counts.

use serde_json::json;

use super::deployment::nonzero;
use super::{is_finished, is_ready, pod_from};
use crate::controllers::kit::{Cache, Context, Controller, Kind, POD, REPLICA_SET, Read, Timers};

/// The ReplicaSet controller.
pub(crate) struct ReplicaSets;

impl Controller for ReplicaSets {
    const KINDS: &'static [Kind] = &[REPLICA_SET, POD];

    async fn reconcile(&mut self, _: &Context, cache: &mut Cache, _: &mut Timers) -> Result<(), kube::Error> {
        for set in cache.all(REPLICA_SET) {
            if set.is_deleted() {
                continue;
            }
            let wanted = set.at("/spec/replicas").as_i64().unwrap_or(1);
            let mut pods = cache.within(POD, set.namespace());
            pods.retain(|pod| pod.owned_by(set.uid()) && !pod.is_deleted() && !is_finished(pod));
            let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
            for _ in present..wanted {
                cache.create(POD, &pod_from(REPLICA_SET, &set, set.at("/spec/template"))).await?;
            }
            // Pods that are not ready go first.
            pods.sort_by_key(|pod| is_ready(pod));
            for pod in pods.iter().take(usize::try_from(present - wanted).unwrap_or(0)) {
                cache.delete(POD, pod, false).await?;
            }
            let ready = pods.iter().filter(|pod| is_ready(pod)).count().min(usize::try_from(wanted).unwrap_or(0));
            let ready = nonzero(i64::try_from(ready).unwrap_or(0));
            let status = json!({
                "observedGeneration": set.generation(),
                "replicas": wanted,
                "fullyLabeledReplicas": nonzero(wanted),
                "readyReplicas": ready,
                "availableReplicas": ready,
            });
            cache.status(REPLICA_SET, &set, status).await?;
        }
        Ok(())
    }
}
