//! The scenario's faults of the API itself, each at its moment. They meet whoever uses the cluster; the restart and the
//! loss of history meet the simulated controllers as well.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::api::{ApiServer, User};
use crate::apifault::{Fault, FaultRule};
use crate::controllers::Context;
use crate::scenario::ApiFault;

/// Starts the clocks of all faults of the API.
pub(super) fn start(api: &ApiServer, context: &Context) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for fault in context.scenario.api_faults.clone() {
        let at = match fault {
            ApiFault::Restart { at, .. } | ApiFault::ExpiredWatch { at } | ApiFault::Throttled { at, .. } => at,
        };
        if at <= 0.0 {
            strike(api, &fault);
            continue;
        }
        let (api, clock) = (api.clone(), context.clock.clone());
        tasks.spawn(async move {
            clock.sleep(Duration::from_secs_f64(at)).await;
            strike(&api, &fault);
        });
    }
    tasks
}

/// Makes a fault of the API happen now.
pub(super) fn strike(api: &ApiServer, fault: &ApiFault) {
    match *fault {
        ApiFault::Restart { lasts, .. } => api.faults().restart(Duration::from_secs_f64(lasts)),
        ApiFault::ExpiredWatch { .. } => {
            api.compact();
            api.faults().expire_watches("");
        }
        ApiFault::Throttled { lasts, retry_after, .. } => {
            let admin = User::admin();
            let rule = FaultRule::new(Fault::TooManyRequests { retry_after }).user(&admin.name);
            api.faults().add(rule.lasting(Duration::from_secs_f64(lasts)));
        }
    }
}
