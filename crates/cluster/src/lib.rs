//! The only crate of the tools that talks to a cluster: connecting, reading, changing, watching, judging.
//!
//! [`Cluster`] is the door; [`Object`] is what comes through it. Waits look at shared watches ([`Watched`]) and judge
//! with the functions of [`conditions`]:
//!
//! ```
//! # use toolbox_cluster::{Cluster, Query, conditions, kinds};
//! # use toolbox_engine::{ObjectRef, StepCx, Why};
//! # async fn example(cx: &StepCx, cluster: &Cluster, old: ObjectRef) -> Result<(), Why> {
//! let pods = cluster.watch(Query::within(&kinds::POD, "nvidia-gpu-operator"));
//! cx.wait(pods.changes(), || pods.judge_absence(|pods| conditions::gone(pods, &old))).await
//! # }
//! ```
//!
//! Kinds are always given with group and version. This crate must not read the environment or print.

mod access;
mod cluster;
pub mod conditions;
mod connect;
mod error;
mod hub;
pub mod kinds;
mod lease;
mod list;
pub mod machines;
pub mod nodes;
mod object;
pub mod olm;
mod query;
#[cfg(test)]
mod testing;
mod transport;
mod undeclared;
mod write;

pub use access::Gap;
pub use cluster::{Cluster, ClusterInfo, LogOptions};
pub use connect::ConnectOptions;
pub use error::{ClusterError, FieldConflict, FieldError};
pub use hub::Watched;
pub use object::{Condition, Object};
pub use query::Query;
pub use transport::{Patience, Traffic};
pub use write::{Applied, Change, MANAGED_BY, MANAGER, RUN};
