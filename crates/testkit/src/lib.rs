//! What tests share: a simulated cluster under the paused clock, a plan run on it, and everything that the run said.
//!
//! Only ever a dev-dependency.

mod rehearsed;
mod watching;

pub use rehearsed::{Ran, Rehearsed};
pub use toolbox_rehearsal::scenario::{MachineSet, Platform};
pub use toolbox_rehearsal::{Fault, FaultRule, Scenario};
