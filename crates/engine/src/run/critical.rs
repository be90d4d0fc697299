//! The critical path: the chain of steps that decided how long the run took.

use super::record::{Record, StepRecord, round};

/// Ids of the steps on it, first to last, and the sum of their times. Steps added on the way count within the step
/// that added them; finalizers do not count.
pub(super) fn path(record: &Record) -> (Vec<String>, f64) {
    let counts = |step: &&StepRecord| !step.is_finalizer() && step.planned.parent.is_none();
    let last = record.steps.iter().filter(counts).filter(|step| step.start_s.is_some() && step.end_s.is_some());
    let mut path = Vec::new();
    let mut seconds = 0.0;
    let mut at = latest(last);
    // Needs point backwards, so this ends; the bound is for files that say otherwise.
    for _ in 0..=record.steps.len() {
        let Some(step) = at else { break };
        // A step that was skipped took no time, but what it waited for did.
        if let Some(duration) = step.duration_s() {
            seconds += duration;
            path.push(step.planned.id.clone());
        }
        at = latest(step.planned.needs.iter().filter_map(|need| record.step(need)));
    }
    path.reverse();
    (path, round(seconds))
}

/// The one that ended last, the first of them in case of a tie.
fn latest<'a>(steps: impl Iterator<Item = &'a StepRecord>) -> Option<&'a StepRecord> {
    let mut latest: Option<&StepRecord> = None;
    for step in steps {
        if latest.is_none_or(|latest| step.end_s > latest.end_s) {
            latest = Some(step);
        }
    }
    latest
}
