//! The rehearsal: a simulated cluster in memory and in virtual time.
//!
//! [`ApiServer`] speaks the Kubernetes API over a versioned store. Everything reads one clock, takes its chances from
//! one seed and orders what it lists, so that the same seed gives the same run.
//!
//! This crate must not read the machine's clock, the environment or the network (except where it is served on purpose).

pub mod api;
pub mod apifault;
mod controllers;
pub mod scenario;
pub mod serve;
pub mod store;
mod types;
pub mod world;

pub use api::{ApiOptions, ApiServer, KubeVersion, served_table};
pub use apifault::{ApiFaults, Fault, FaultRule};
pub use scenario::Scenario;
pub use world::{Floor, FloorRequest, Witness, World};
