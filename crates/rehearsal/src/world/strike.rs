//! Faults that strike later: at their moment, or when something happens in the run that the world serves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use super::faults;
use crate::api::ApiServer;
use crate::controllers::{Context, Live};
use crate::scenario::{PlannedFault, Scenario};

/// Tells a world what happens in the run that it serves. Clones tell the same world.
#[derive(Clone)]
pub struct Witness(Arc<Waiting>);

struct Waiting {
    api: ApiServer,
    live: Live,
    faults: Mutex<Vec<PlannedFault>>,
}

impl Witness {
    pub(super) fn new(api: &ApiServer, context: &Context) -> Self {
        let faults = context.scenario.faults.iter().filter(|fault| fault.when.is_some()).cloned().collect();
        Self(Arc::new(Waiting { api: api.clone(), live: context.live.clone(), faults: Mutex::new(faults) }))
    }

    /// A step starts.
    pub fn step_started(&self, id: &str) {
        self.strike(|when| when == id);
    }

    /// A wait says why it waits.
    pub fn waits_because(&self, reason: &str) {
        self.strike(|when| reason.contains(when));
    }

    /// The faults whose moment has not come.
    pub fn not_struck(&self) -> Vec<PlannedFault> {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn strike(&self, is_now: impl Fn(&str) -> bool) {
        let now: Vec<PlannedFault> = {
            let mut waiting = self.0.faults.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.extract_if(.., |fault| fault.when.as_deref().is_some_and(&is_now)).collect()
        };
        for fault in now {
            strike(&self.0.api, &self.0.live, &fault);
        }
    }
}

/// Starts the clocks of the faults that have a moment.
pub(super) fn start(api: &ApiServer, context: &Context, tasks: &mut JoinSet<()>) {
    for fault in context.scenario.faults.iter().filter(|fault| fault.at.is_some()).cloned() {
        let (api, live, clock) = (api.clone(), context.live.clone(), context.clock.clone());
        tasks.spawn(async move {
            clock.sleep(Duration::from_secs_f64(fault.at.unwrap_or_default())).await;
            strike(&api, &live, &fault);
        });
    }
}

/// What happens from now on happens in a scenario with this fault. A fault of the API is there at once: its own moment
/// is meant for runs that have it from the start.
fn strike(api: &ApiServer, live: &Live, fault: &PlannedFault) {
    let mut of_the_api = Vec::new();
    live.change(|scenario: &mut Scenario| {
        let before = scenario.api_faults.len();
        fault.apply(scenario);
        of_the_api = scenario.api_faults.split_off(before);
    });
    for fault in &of_the_api {
        faults::strike(api, fault);
    }
}
