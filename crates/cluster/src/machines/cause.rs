//! Everything that can stop a scale-up or -down, each with its next action.

use toolbox_engine::{Cause, Exit, FailureVerdict};

use super::{FailureClass, MachineFailure};

/// Why machines cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineCause {
    /// The kind does not exist.
    NoMachineApi,
    /// The kind exists and nothing can be derived from.
    NoWorkerSets {
        /// How many machine sets there are that are not for workers.
        others: usize,
    },
    /// The platform's machines have no instance type.
    NoSizeField {
        /// `providerSpec.value.kind`.
        kind: String,
    },
    /// `--base-machineset` names none of the candidates.
    UnknownBase {
        /// The name given.
        asked: String,
        /// The candidates.
        candidates: Vec<String>,
    },
    /// Cluster API is authoritative for the set.
    ClusterApi,
    /// The derived set's selector would not match its own machines: it would make machines without end.
    SelectorMismatch {
        /// The label that differs.
        label: String,
    },
    /// Other sets of the type hold machines.
    NeedsForce {
        /// `name (n)` for each.
        sets: Vec<String>,
        /// The total now.
        total: i64,
        /// The total asked for.
        wanted: i64,
    },
    /// A Machine failed.
    Failed(MachineFailure),
    /// Machines exist that are of another type than their set says.
    WrongType {
        /// How many.
        count: usize,
        /// Of how many.
        total: usize,
        /// What they are.
        found: String,
        /// Their names.
        machines: Vec<String>,
    },
}

impl Cause for MachineCause {
    fn code(&self) -> &'static str {
        match self {
            MachineCause::NoMachineApi => "no-machine-api",
            MachineCause::NoWorkerSets { .. } => "no-machine-sets",
            MachineCause::NoSizeField { .. } => "no-instance-type",
            MachineCause::UnknownBase { .. } => "unknown-base",
            MachineCause::ClusterApi => "cluster-api-authoritative",
            MachineCause::SelectorMismatch { .. } => "selector-mismatch",
            MachineCause::NeedsForce { .. } => "needs-force",
            MachineCause::Failed(failure) => failure.class.code(),
            MachineCause::WrongType { .. } => "wrong-instance-type",
        }
    }

    fn text(&self) -> String {
        match self {
            MachineCause::NoMachineApi => {
                "this cluster has no Machine API, so it cannot make or remove machines".to_owned()
            }
            MachineCause::NoWorkerSets { others: 0 } => "there is no machine set to derive from".to_owned(),
            MachineCause::NoWorkerSets { others } => {
                format!("there is no worker machine set to derive from ({others} of other roles)")
            }
            MachineCause::NoSizeField { kind } => {
                format!("machines of `{kind}` have no instance type")
            }
            MachineCause::UnknownBase { asked, .. } => {
                format!("`{asked}` is no worker machine set with an instance type")
            }
            MachineCause::ClusterApi => {
                "its Cluster API copy is the authoritative one, so changing this one has no effect".to_owned()
            }
            MachineCause::SelectorMismatch { label } => format!(
                "its selector does not match its own machines (`{label}`), so it would make machines without end"
            ),
            MachineCause::NeedsForce { sets, total, wanted } => format!(
                "{total} machines of this type are spread over {}, and {wanted} in one set would empty the others",
                sets.join(", ")
            ),
            MachineCause::Failed(failure) => failure.text(),
            MachineCause::WrongType { count, total, found, .. } => {
                let are = if *count == 1 { "is" } else { "are" };
                format!("{count} of {total} machines {are} {found}: the type of a set changes future machines only")
            }
        }
    }

    fn next(&self) -> String {
        match self {
            MachineCause::NoMachineApi => {
                "add a node of that type by the platform's own means, or use an installer-provisioned cluster"
                    .to_owned()
            }
            MachineCause::NoWorkerSets { .. } => {
                "create a worker machine set (machinesets.machine.openshift.io) first".to_owned()
            }
            MachineCause::NoSizeField { .. } => {
                "add a node by hand, or edit a machine set's CPU and memory: there is no type to ask for".to_owned()
            }
            MachineCause::UnknownBase { candidates, .. } if candidates.is_empty() => "there is no candidate".to_owned(),
            MachineCause::UnknownBase { candidates, .. } => {
                format!("choose one: --base-machineset {}", candidates.join(" | "))
            }
            MachineCause::ClusterApi => {
                "scale machinesets.cluster.x-k8s.io in openshift-cluster-api instead".to_owned()
            }
            MachineCause::SelectorMismatch { .. } => {
                "correct the base machine set's selector and template labels, or choose another with --base-machineset"
                    .to_owned()
            }
            MachineCause::NeedsForce { total, .. } => {
                format!("empty the others with --force, or ask for {total}")
            }
            MachineCause::Failed(failure) => failure.next(),
            MachineCause::WrongType { machines, .. } => format!(
                "delete them to have them rebuilt: kubectl delete machines.machine.openshift.io {} -n {}",
                machines.join(" "),
                super::NAMESPACE
            ),
        }
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            MachineCause::Failed(failure) => match failure.class {
                FailureClass::Quota | FailureClass::OutOfStock => FailureVerdict::Capacity,
                FailureClass::NotOffered | FailureClass::BadType | FailureClass::Credentials => {
                    FailureVerdict::Configuration
                }
                FailureClass::Other => FailureVerdict::Infrastructure,
            },
            _ => FailureVerdict::Configuration,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            // What was asked for is not sold: asking again does not help, as it may for quota and stock.
            MachineCause::UnknownBase { .. } => Exit::Configuration,
            MachineCause::Failed(failure)
                if matches!(failure.class, FailureClass::NotOffered | FailureClass::BadType) =>
            {
                Exit::Configuration
            }
            _ => Exit::Failed,
        }
    }
}
