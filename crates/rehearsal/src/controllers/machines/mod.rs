//! The Machine API: machine sets, machines, the cloud behind them and the nodes they become.

mod cloud;
mod machine;
mod machineset;
mod nodes;
pub(crate) mod provider;

pub(crate) use cloud::{KERNEL, MACHINE_SET_LABEL, NAMESPACE, NewNode, OSTREE, instance, node_from};
pub(crate) use machine::Machines;
pub(crate) use machineset::MachineSets;
pub(crate) use nodes::Nodes;
