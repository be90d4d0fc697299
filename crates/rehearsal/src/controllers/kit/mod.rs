//! What all simulated controllers stand on.

mod cache;
mod events;
mod hands_off;
pub(crate) mod identity;
mod kinds;
mod live;
mod object;
mod run;
mod select;
mod timers;

pub(crate) use cache::{Cache, RETRY};
pub(crate) use events::Recorder;
pub(crate) use hands_off::HandsOff;
pub(crate) use kinds::*;
pub(crate) use live::Live;
pub(crate) use object::{Read, condition, is_true, owner_reference, with_condition};
pub(crate) use run::{Context, Controller, run};
pub(crate) use select::{selector_matches, selects_node, untolerated};
pub(crate) use timers::Timers;
