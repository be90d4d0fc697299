//! The GPU Operator: from a ClusterPolicy to operands on every GPU node.

mod device;
mod operands;
mod policy;

pub(crate) use device::DevicePlugins;
pub(crate) use policy::GpuOperator;
