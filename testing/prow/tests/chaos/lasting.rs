//! What no patience helps against ends the job with its own cause, and never passes.

use toolbox_core::engine::Exit;
use toolbox_rehearsal::scenario::{ApiFault, ApiFaultKind as Kind};

use crate::dice::Dice;
use crate::support::{REQUESTS_AT_MOST, job};

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_named_also_among_other_faults() {
    let undisturbed = job(&[]).await;
    let away = |kind| ApiFault::new(kind).at(200.0);
    let cases = [
        (away(Kind::ExpiredToken), "not-authenticated"),
        (away(Kind::RotatedCertificate), "certificate-not-trusted"),
        (ApiFault { seconds: Some(3.0 * 86_400.0), ..ApiFault::new(Kind::ClockSkew) }, "certificate-out-of-date"),
        (ApiFault { seconds: Some(-3.0 * 86_400.0), ..ApiFault::new(Kind::ClockSkew) }, "certificate-out-of-date"),
        (ApiFault::new(Kind::Refused), "api-unreachable"),
        (ApiFault { retry_after: Some(7), ..ApiFault::new(Kind::Throttled) }, "api-throttled"),
        (ApiFault::new(Kind::Stalled), "api-unreachable"),
        (ApiFault::new(Kind::Conflict), "conflict"),
    ];
    let mut wrong = Vec::new();
    for (fault, code) in cases {
        for seed in 0..3 {
            // Alone first, then with what passes.
            let mut faults = if seed == 0 { Vec::new() } else { Dice::new(2000 + seed).faults() };
            faults
                .retain(|other| !matches!(other.kind, Kind::ClockSkew | Kind::ExpiredToken | Kind::RotatedCertificate));
            faults.push(fault.clone());
            let ended = job(&faults).await;
            let outcome = &ended.ran.outcome;
            let said = outcome.why.as_ref().map(|why| (why.code.to_string(), why.next.is_empty()));
            let ratio = ended.requests as f64 / undisturbed.requests as f64;
            if outcome.exit == Exit::Done || said != Some((code.to_owned(), false)) || ratio > REQUESTS_AT_MOST {
                wrong.push(format!("{code}, {seed}: {:?} {said:?} {:?}, {ratio:.1}", outcome.exit, outcome.why));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
