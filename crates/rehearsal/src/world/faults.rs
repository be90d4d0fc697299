//! The scenario's faults of the API itself, each at its moment. They meet whoever uses the cluster; the restart and the
//! loss of history meet the simulated controllers as well.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::USER;
use crate::api::ApiServer;
use crate::apifault::{Fault, FaultRule};
use crate::controllers::Context;
use crate::scenario::{ApiFault, ApiFaultKind, Scenario};

/// How far the cluster's clock is ahead of its clients'.
pub(super) fn skew(scenario: &Scenario) -> SignedDuration {
    let skews = scenario.api_faults.iter().filter(|fault| fault.kind == ApiFaultKind::ClockSkew);
    skews.filter_map(|fault| SignedDuration::try_from_secs_f64(fault.seconds?).ok()).sum()
}

/// Starts the clocks of all faults of the API.
pub(super) fn start(api: &ApiServer, context: &Context) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    api.faults().clients_are_late_by(skew(&context.scenario));
    for fault in context.scenario.api_faults.clone() {
        if fault.at <= 0.0 {
            strike(api, &fault);
            continue;
        }
        let (api, clock) = (api.clone(), context.clock.clone());
        tasks.spawn(async move {
            clock.sleep(Duration::from_secs_f64(fault.at)).await;
            strike(&api, &fault);
        });
    }
    tasks
}

/// Makes a fault of the API happen now.
pub(super) fn strike(api: &ApiServer, fault: &ApiFault) {
    let faults = api.faults();
    let down = Duration::from_secs_f64(fault.lasts.unwrap_or_default());
    let what = match fault.kind {
        ApiFaultKind::Restart if !fault.chooses() => return faults.restart(down),
        ApiFaultKind::Restart => Fault::Restart { down },
        ApiFaultKind::ExpiredWatch => {
            api.compact();
            return faults.expire_watches("");
        }
        ApiFaultKind::Gone => {
            api.compact();
            faults.add(rule(fault, Fault::Expired).verb("watch"));
            faults.add(rule(fault, Fault::Expired).verb("list").query("continue="));
            return faults.expire_watches("");
        }
        ApiFaultKind::ExpiredToken => return faults.expire_tokens(fault.renewable),
        ApiFaultKind::RotatedCertificate => return faults.rotate_certificates(fault.renewable),
        ApiFaultKind::ShortPages => return faults.limit_pages(fault.objects),
        ApiFaultKind::ClockSkew => return,
        ApiFaultKind::HalfEvent => {
            faults.halve_events(&fault.path);
            Fault::HalfEvent
        }
        ApiFaultKind::Throttled => Fault::TooManyRequests { retry_after: fault.retry_after.unwrap_or(1) },
        ApiFaultKind::ServerError => Fault::Status(fault.code.unwrap_or(500)),
        ApiFaultKind::Refused => Fault::ConnectionRefused,
        ApiFaultKind::Reset => Fault::ConnectionReset,
        ApiFaultKind::Unanswered => Fault::Unanswered,
        ApiFaultKind::Stalled => Fault::Stalled,
        ApiFaultKind::Slow => Fault::Slow(Duration::from_secs_f64(fault.seconds.unwrap_or_default())),
        ApiFaultKind::Unauthorized => Fault::Unauthorized,
        ApiFaultKind::Conflict => Fault::Conflict,
    };
    let rule = fault.verbs.iter().fold(rule(fault, what), |rule, verb| rule.verb(verb));
    faults.add(rule);
}

/// The entry's choice of requests, its verbs excepted.
fn rule(fault: &ApiFault, what: Fault) -> FaultRule {
    // How long a server is away is no limit of the time in which it may restart.
    let lasts = fault.lasts.filter(|_| fault.kind != ApiFaultKind::Restart);
    let rule = FaultRule::new(what)
        .path(&fault.path)
        .user(&fault.user)
        .skip(fault.skip)
        .times(fault.times.unwrap_or(u64::MAX))
        .every(fault.every.unwrap_or(1))
        .rate(fault.rate.unwrap_or(1.0));
    let rule = if fault.user.is_empty() { rule.sparing(USER) } else { rule };
    match lasts {
        Some(lasts) => rule.lasting(Duration::from_secs_f64(lasts)),
        None => rule,
    }
}
