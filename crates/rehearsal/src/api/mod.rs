//! The API server: a `tower::Service` over the store that speaks the Kubernetes API as real servers do.

mod access;
mod admission;
mod apiservice;
mod apply;
mod body;
mod builtin;
mod connect;
mod crd;
mod decode;
mod defaults;
mod delete;
mod discovery;
mod dispatch;
mod events;
mod gc;
mod housekeeping;
pub mod kinds;
mod logs;
mod openapi;
mod patch;
mod protobuf;
mod rbac;
mod read;
mod review;
mod route;
mod schema;
mod served;
mod server;
mod status;
mod strategic;
mod subresource;
mod table;
mod validate;
mod version;
mod virtual_;
mod watch;
mod write;

pub use self::{
    access::{Deny, User},
    body::{ApiBody, error as error_response},
    logs::PodLogs,
    served::table as served_table,
    server::{ApiOptions, ApiServer, RequestCounts},
    status::{ApiError, Cause},
    version::KubeVersion,
    virtual_::VirtualObjects,
};
