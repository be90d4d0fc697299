//! What a world needs of the controllers' knowledge to make objects that look as if they had long been there.

pub(crate) use super::kit::{
    CATALOG_SOURCE, CLUSTER_VERSION, INFRASTRUCTURE, Kind, MACHINE, MACHINE_SET, NAMESPACE, NODE, OPERATOR_GROUP, Read,
    owner_reference,
};
pub(crate) use super::machines::provider::{spec as provider_spec, taint};
pub(crate) use super::machines::{MACHINE_SET_LABEL, NAMESPACE as MACHINE_NAMESPACE, NewNode, instance, node_from};
pub(crate) use super::olm::{CATALOG_NAMESPACE, GLOBAL_NAMESPACE, connection};
