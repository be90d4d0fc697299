//! Changing machine sets: making one at 0 replicas, then scaling it.

use serde_json::json;
use toolbox_core::cluster::machines::{self, derive};
use toolbox_core::cluster::{Cluster, kinds};
use toolbox_core::engine::{Step, StepCx, Why};

use super::intent::{Intent, Try, machine_set};

/// The first try. The others are emptied once it holds its machines; only a preview says so here already.
pub(super) async fn first(
    cx: &StepCx,
    cluster: &Cluster,
    intent: &Intent,
    instance_type: &str,
    wanted: i64,
) -> Result<Step<()>, Why> {
    let Some(first) = intent.tries.first() else {
        return Ok(Step::AlreadySo((), intent.because.clone()));
    };
    let changed = attempt(cx, cluster, first, instance_type, wanted).await?;
    if cx.dry() {
        for other in &intent.emptied {
            empty(cx, cluster, other).await?;
        }
    }
    Ok(if changed {
        Step::Changed((), format!("{} has {wanted} replicas", first.set))
    } else {
        Step::AlreadySo((), intent.because.clone())
    })
}

/// Asks for the machines in this set. False when it was so already.
pub(super) async fn attempt(
    cx: &StepCx,
    cluster: &Cluster,
    one: &Try,
    instance_type: &str,
    wanted: i64,
) -> Result<bool, Why> {
    if let Some(base) = &one.base {
        let manifest =
            derive(base, &one.set, instance_type).map_err(|cause| Why::new(machine_set(&one.set), &cause))?;
        for (file, object) in [("source_machineset.json", base.value()), ("new_machineset.json", &manifest)] {
            if let Ok(text) = serde_json::to_string_pretty(object) {
                cx.file(file, format!("{text}\n"));
            }
        }
        cluster.apply(cx, manifest).await?;
    }
    if one.base.is_none() && one.before == wanted {
        return Ok(false);
    }
    scale(cx, cluster, &one.set, wanted).await?;
    Ok(true)
}

/// Takes a try back: 0 for a set of ours, what it was for one of somebody else's. Says how many it keeps.
pub(super) async fn take_back(cx: &StepCx, cluster: &Cluster, one: &Try) -> Result<i64, Why> {
    let kept = if one.ours { 0 } else { one.before };
    scale(cx, cluster, &one.set, kept).await?;
    Ok(kept)
}

/// Removes the machines of a set.
pub(super) async fn empty(cx: &StepCx, cluster: &Cluster, set: &str) -> Result<(), Why> {
    scale(cx, cluster, set, 0).await
}

async fn scale(cx: &StepCx, cluster: &Cluster, set: &str, replicas: i64) -> Result<(), Why> {
    let patch = json!({"spec": {"replicas": replicas}});
    cluster.patch(cx, &kinds::MACHINE_SET, Some(machines::NAMESPACE), set, patch).await?;
    Ok(())
}
