//! Operators installed by the Operator Lifecycle Manager: what a catalog offers, what is there already, and what the
//! states of a Subscription, an InstallPlan and a ClusterServiceVersion mean for somebody who waits.
//!
//! Everything but [`steps`] is rules on objects and asks nobody, so that each rule can be tested on a few lines of JSON.

mod cause;
mod csv;
mod existing;
mod group;
mod package;
mod patience;
mod plan;
mod resolve;
pub mod steps;
mod subscription;

pub use cause::OlmCause;
pub use csv::{belongs_to, csv_verdict, orphan_csvs};
pub use existing::{Existing, existing_rule};
pub use group::{GroupRule, group_rule, scope_of};
pub use package::{Channel, Head, InstallModes, Package, PackageRef, Published};
pub use patience::Patience;
pub use plan::{PlanChoice, Planned, choose_plan, plan_verdict, plan_written, strangers, wants_approval};
pub use resolve::{Chosen, Placement, Scope, Wish, choose, place};
pub use subscription::{Sight, subscription_verdict};

pub(crate) use package::version_of;
pub(crate) use subscription::{catalog_state, failed_job};

#[cfg(test)]
mod tests;

/// The namespace of cluster-wide operators, whose group is there already.
pub const GLOBAL_NAMESPACE: &str = "openshift-operators";

/// The namespace of the catalogs.
pub const MARKETPLACE: &str = "openshift-marketplace";
