//! Scenarios: what a simulated cluster is like, how long its causes take and what goes wrong in it.

mod dist;
mod fault;
mod load;
mod model;
mod timings;

pub use dist::{Dice, Dist, Spread};
pub use fault::{Fault, list as faults};
pub use load::ScenarioError;
pub use model::{
    ApiFault, Bundle, Catalog, FixedNode, Image, InstanceType, MachineSet, OwnedCrd, Package, Platform, Quirks,
    Scenario,
};
pub use timings::Timings;
