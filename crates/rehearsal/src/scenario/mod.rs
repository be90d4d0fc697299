//! Scenarios: what a simulated cluster is like, how long its causes take and what goes wrong in it.

mod api_fault;
mod check;
mod dist;
mod error;
mod expect;
mod fault;
mod load;
mod model;
mod planned;
mod recorded;
mod timings;
mod yaml;

pub use api_fault::{ApiFault, ApiFaultKind};
pub use check::Needs;
pub use dist::{Dice, Dist, Spread};
pub use error::ScenarioError;
pub use expect::{Bounds, Ending, Expect};
pub use fault::{Fault, Target, list as faults};
pub use model::{
    Bundle, Catalog, FixedNode, Image, InstanceType, MachineSet, OwnedCrd, Package, Platform, Quirks, Scenario,
};
pub use planned::PlannedFault;
pub use recorded::{Change, Recorded, Recording};
pub use timings::Timings;

/// The newest version of scenario files.
pub const SCHEMA: u32 = 1;

/// The JSON schema of scenario files.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Scenario);
    schema.insert("title".to_owned(), "Scenario of a rehearsal".into());
    schema.to_value()
}
