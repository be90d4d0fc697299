//! What the parts of a run before this one left, proved: the same object by uid, or gone.

use std::time::Duration;

use toolbox_cluster::Cluster;
use toolbox_engine::journal::{Entry, Records};
use toolbox_engine::run::Made;
use toolbox_engine::{RunDir, Why};

use crate::cli::undo::of_lost_create;

/// How long the end of a run that failed may take for it.
const AT_THE_END: Duration = Duration::from_secs(5);

/// Strikes off what was made and is gone, and finds what was made without an answer.
pub(super) async fn prove_all(cluster: &Cluster, run: &RunDir, run_id: &str) -> Result<(), Why> {
    for object in run.journal_so_far().leftovers() {
        let found = match cluster.kind(&object.api_version, &object.kind).await {
            Ok(kind) => cluster.get(&kind, object.namespace.as_deref(), &object.name).await,
            Err(error) => Err(error),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) if error.is_absent() => None,
            // What may not be looked at is believed to be there.
            Err(toolbox_cluster::ClusterError::Forbidden { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if found.is_none_or(|found| object.uid.as_deref().is_some_and(|uid| uid != found.uid())) {
            run.journal(&Entry::Deleted { object });
        }
    }
    find_lost(cluster, run, run_id).await
}

/// Finds what this run may have made although no answer came, so that it is told with what is left. It has little time:
/// somebody may be waiting for a run that was interrupted.
pub(super) async fn prove_lost(cluster: &Cluster, run: &RunDir, run_id: &str) {
    tokio::select! {
        biased;
        // What cannot be found now is found by a clean-up.
        _ = find_lost(cluster, run, run_id) => {}
        () = cluster.clock().sleep(AT_THE_END) => {}
    }
}

async fn find_lost(cluster: &Cluster, run: &RunDir, run_id: &str) -> Result<(), Why> {
    for Made { step, object } in run.journal_so_far().lost {
        for found in of_lost_create(cluster, &object, run_id).await? {
            run.journal(&Entry::Made { step: step.clone(), object: found.refer() });
        }
    }
    Ok(())
}
