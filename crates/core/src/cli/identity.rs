//! Which cluster a run was on: what it made is looked for there and nowhere else.

use toolbox_cluster::{Cluster, kinds};
use toolbox_engine::Why;

use super::wrong_flag;

/// The key under which it is kept for those who resume the run or take it back.
pub(crate) const KEY: &str = "cluster.id";

/// What tells this cluster from every other one, whatever address it is reached by; nothing when that may not be asked.
pub(crate) async fn of(cluster: &Cluster) -> Option<String> {
    let namespace = cluster.get(&kinds::NAMESPACE, None, "kube-system").await.ok().flatten()?;
    Some(namespace.uid().to_owned()).filter(|uid| !uid.is_empty())
}

/// Refuses a run that was on another cluster: none of its objects would be found, and that looks like success.
pub(crate) fn check(flag: &str, before: Option<&str>, now: Option<&str>) -> Result<(), Why> {
    match (before, now) {
        (Some(before), Some(now)) if before != now => Err(wrong_flag(
            flag,
            "that run was on another cluster than this one",
            "choose its cluster with --context or --kubeconfig; the run's summary.json names it; nothing was changed",
        )),
        _ => Ok(()),
    }
}
