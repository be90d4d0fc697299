//! Pods: where they go, and what their containers do there.

mod behaviour;
mod burn;
mod container;
mod images;
mod kubelet;
mod scheduler;
mod status;

pub(crate) use kubelet::Kubelet;
pub(crate) use scheduler::Scheduler;
