//! What objects say about themselves, judged: done, pending because, failed because.
//!
//! Each function takes the object as it was found (or not) and a reference to the one that is meant. A reference
//! without a uid means any life of the object, and absence is pending; one with a uid means the life that was seen, and
//! its going away is a failure. A status is believed only when it speaks of the present generation.

mod cluster;
mod events;
mod pod;
mod pod_cause;
#[cfg(test)]
mod pod_tests;
mod pod_troubles;
mod presence;
mod workload;

pub(crate) use cluster::crd_serves;
pub use cluster::{DefinitionCause, condition_true, crd_established, node_ready};
pub use events::{event_count, event_message, event_time, in_order, is_about, warnings_about};
pub use pod::{is_finished, is_superseded, pod_finished, pod_ready, pod_trouble};
pub use pod_cause::PodCause;
pub use pod_troubles::{PodPatience, PodTroubles};
pub use presence::{PresenceCause, gone, holding, present};
pub use workload::{WorkloadCause, daemon_set_ready, deployment_available, job_complete};
