//! Machine sets of the Machine API: their size field, which one to derive from, the derived set, and what a failed
//! Machine says about its cloud. Always `machine.openshift.io/v1beta1`: Cluster API has kinds of the same names.
//!
//! Rules on objects only; nothing here asks the cluster.

mod base;
mod cause;
mod derive;
mod failure;
mod name;
mod size;

pub use base::{Bases, bases};
pub use cause::MachineCause;
pub use derive::derive;
pub use failure::{FailureClass, MachineFailure, failure, trouble};
pub use name::derived_name;
pub use size::{SizeField, instance_type, size_field, zone};

use size::field_of;

use crate::Object;

/// Where machine sets live.
pub const NAMESPACE: &str = "openshift-machine-api";

/// The label that ties Machines to their set.
pub const SET_LABEL: &str = "machine.openshift.io/cluster-api-machineset";

/// How many machines the set wants. Absent is the API's default, 1.
pub fn replicas(set: &Object) -> i64 {
    set.number("/spec/replicas").unwrap_or(1)
}

/// How many machines the set has. Absent is 0.
pub fn current(set: &Object) -> i64 {
    set.number("/status/replicas").unwrap_or(0)
}

/// How many of its nodes are available. Absent is 0.
pub fn available(set: &Object) -> i64 {
    set.number("/status/availableReplicas").unwrap_or(0)
}

/// Whether the Cluster API copy of the set or machine is the one that counts, so that changing this one has no effect.
pub fn is_foreign(object: &Object) -> bool {
    ["/status/authoritativeAPI", "/spec/authoritativeAPI"]
        .into_iter()
        .find_map(|path| object.text(path).filter(|api| !api.is_empty()))
        .is_some_and(|api| api == "ClusterAPI")
}

/// The machine set a Machine belongs to.
pub fn set_of(machine: &Object) -> Option<&str> {
    machine.label(SET_LABEL)
}

#[cfg(test)]
mod tests;
