//! The operators that the catalogs offer, and what their operands do to nodes.

pub(crate) mod gpu;
mod nfd;
mod presence;

pub(crate) use gpu::{DevicePlugins, GpuOperator};
pub(crate) use nfd::{NfdOperator, NfdWorkers};
