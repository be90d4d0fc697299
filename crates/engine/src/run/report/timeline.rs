//! Where the bars of the timeline stand.

use serde::Serialize;

use crate::event::Role;
use crate::run::record::{Record, StepRecord, StepState};
use crate::run::text::{readable, show_seconds};

/// A mark on the time axis.
#[derive(Debug, Serialize)]
pub(super) struct Tick {
    at: String,
    label: String,
}

/// A stretch of a bar in which one reason held.
#[derive(Debug, Serialize)]
pub(super) struct Segment {
    left: String,
    width: String,
    reason: String,
}

/// A step's bar, in percent of the whole width.
#[derive(Debug, Serialize)]
pub(super) struct Bar {
    left: String,
    width: String,
    /// Whether the label has to stand left of the bar, for want of room.
    label_left: bool,
    deadline: Option<String>,
    segments: Vec<Segment>,
}

/// The axis that all bars share.
pub(super) struct Scale {
    end_s: f64,
}

impl Scale {
    pub(super) fn of(end_s: f64) -> Self {
        Self { end_s: end_s.max(0.001) }
    }

    fn percent(&self, seconds: f64) -> String {
        format!("{:.3}", (seconds / self.end_s * 100.0).clamp(0.0, 100.0))
    }

    /// Four to nine marks at round times.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        const STEPS: [f64; 20] = [
            0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
            7200.0, 14400.0, 43200.0,
        ];
        let step = STEPS.into_iter().find(|step| self.end_s / step <= 8.0).unwrap_or(self.end_s / 4.0);
        let count = (self.end_s / step).floor() as usize;
        (0..=count)
            .map(|at| Tick {
                at: self.percent(at as f64 * step),
                label: if at == 0 { "0".to_owned() } else { tick_label(at as f64 * step) },
            })
            .collect()
    }

    pub(super) fn bar(&self, record: &Record, step: &StepRecord) -> Option<Bar> {
        let start = step.start_s?;
        let end = step.end_s.unwrap_or(record.last_s).max(start);
        let deadline = start + step.planned.deadline_s;
        let mut segments: Vec<Segment> = Vec::new();
        for (reason, until) in step.reasons_until(end) {
            segments.push(Segment {
                left: within(reason.t, start, end),
                width: within(start + (until - reason.t).max(0.0), start, end),
                reason: readable(&format!("{} for {}", reason.why, show_seconds((until - reason.t).max(0.0)))),
            });
        }
        Some(Bar {
            left: self.percent(start),
            width: self.percent(end - start),
            label_left: end / self.end_s > 0.8,
            deadline: shows_deadline(step, deadline, end)
                .then_some(deadline)
                .filter(|deadline| *deadline <= self.end_s)
                .map(|deadline| self.percent(deadline)),
            segments,
        })
    }
}

/// Only where it tells something: for what was waited for, and where it was reached.
fn shows_deadline(step: &StepRecord, deadline: f64, end: f64) -> bool {
    let reached = deadline >= end - 1.0 && deadline <= end + 1.0;
    reached || (step.planned.role == Role::Wait && step.state != StepState::Failed)
}

fn within(t: f64, start: f64, end: f64) -> String {
    let length = (end - start).max(0.001);
    format!("{:.2}", ((t - start) / length * 100.0).clamp(0.0, 100.0))
}

fn tick_label(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.0} s")
    } else if seconds < 3600.0 {
        let (minutes, rest) = ((seconds / 60.0).floor(), seconds % 60.0);
        if rest == 0.0 { format!("{minutes:.0} min") } else { format!("{minutes:.0}:{rest:02.0} min") }
    } else {
        let (hours, rest) = ((seconds / 3600.0).floor(), seconds % 3600.0 / 60.0);
        if rest == 0.0 { format!("{hours:.0} h") } else { format!("{hours:.0}:{rest:02.0} h") }
    }
}
