//! `report`: renders a run again, or puts two side by side.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use toolbox_engine::run::{Record, is_running, render_again, render_comparison};
use toolbox_engine::{Exit, Report, Why};

use super::display::{Ending, Paint, show};
use super::run::record;
use crate::config::plain;

/// The report of one run.
pub(crate) fn one(directory: &Path, paint: Paint) -> Result<Report, Why> {
    let record = record(directory)?;
    let running = is_running(directory);
    // A run that goes on writes its report itself.
    let report = if running { None } else { Some(render_again(directory)?) };
    let ending = Ending {
        record: &record,
        exit: record.exit.unwrap_or(Exit::Bug),
        why: record.why.as_ref(),
        probe: false,
        run_dir: Some(directory),
        report,
        trouble: None,
    };
    let mut lines = steps(&record);
    if record.exit.is_none() {
        let state = if running { "still running" } else { "was killed" };
        lines.push(format!("{state}: its last sign of life is at {}", show(record.last_s)));
        lines.extend(ending.files());
    } else {
        lines.extend(ending.lines(paint));
    }
    Ok(Report { text: lines.join("\n"), json: json!(record.summary()) })
}

fn steps(record: &Record) -> Vec<String> {
    let width = record.steps.iter().map(|step| step.planned.id.len()).max().unwrap_or(0);
    let line = |step: &toolbox_engine::run::StepRecord| {
        let time = |at: Option<f64>| at.map(show).unwrap_or_default();
        format!(
            "{:>7} {:>7}  {:width$}  {}: {}",
            time(step.start_s),
            time(step.duration_s()),
            step.planned.id,
            state(step),
            step.what
        )
    };
    let head = format!("{:>7} {:>7}  step", "start", "took");
    std::iter::once(head).chain(record.steps.iter().map(line)).collect()
}

fn state(step: &toolbox_engine::run::StepRecord) -> String {
    serde_json::to_value(step.state).ok().and_then(|state| state.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Two runs side by side: what took longer, what ended differently.
pub(crate) fn two(left: &Path, right: &Path) -> Result<Report, Why> {
    let (a, b) = (record(left)?, record(right)?);
    let mut ids: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    for step in a.steps.iter().chain(&b.steps) {
        if seen.insert(step.planned.id.as_str()) {
            ids.push(&step.planned.id);
        }
    }
    let width = ids.iter().map(|id| id.len()).max().unwrap_or(4);
    let mut lines = vec![
        format!("A: {} ({})", left.display(), a.name),
        format!("B: {} ({})", right.display(), b.name),
        format!("{:width$}  {:>9}  {:>9}  {:>9}  ended", "step", "A", "B", "B-A"),
    ];
    let mut rows = Vec::new();
    for id in ids {
        let (x, y) = (a.step(id), b.step(id));
        let took = |step: Option<&toolbox_engine::run::StepRecord>| step?.duration_s();
        let (ta, tb) = (took(x), took(y));
        let shown = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), show);
        let difference = match (ta, tb) {
            (Some(ta), Some(tb)) if (tb - ta).abs() >= 0.05 => {
                format!("{}{}", if tb > ta { "+" } else { "-" }, show((tb - ta).abs()))
            }
            _ => String::new(),
        };
        let states = (x.map_or_else(|| "absent".to_owned(), state), y.map_or_else(|| "absent".to_owned(), state));
        let ended = if states.0 == states.1 { states.0.clone() } else { format!("{} / {}", states.0, states.1) };
        lines.push(format!("{id:width$}  {:>9}  {:>9}  {difference:>9}  {ended}", shown(ta), shown(tb)));
        rows.push(json!({"id": id, "a_s": ta, "b_s": tb, "a_state": states.0, "b_state": states.1}));
    }
    lines.push(format!("{:width$}  {:>9}  {:>9}", "whole run", show(a.last_s), show(b.last_s)));
    for (name, run) in [("A", &a), ("B", &b)] {
        if let Some(why) = &run.why {
            lines.push(format!("{name} failed: {why}"));
        }
    }
    let versions = |run: &Record| json!(run.versions);
    if versions(&a) != versions(&b) {
        for version in &b.versions {
            let before = a.versions.iter().find(|known| known.what == version.what);
            if before != Some(version) {
                let found = |version: Option<&toolbox_engine::run::VersionSeen>| {
                    version.and_then(|version| version.found.clone()).unwrap_or_else(|| "-".to_owned())
                };
                lines.push(format!("{}: A {}, B {}", version.what, found(before), found(Some(version))));
            }
        }
    }
    let page = left.join("comparison.html");
    match std::fs::write(&page, render_comparison(&a, &b)) {
        Ok(()) => lines.push(format!("side by side: {}", page.display())),
        Err(error) => lines.push(format!("{} cannot be written: {}", page.display(), plain(&error))),
    }
    Ok(Report { text: lines.join("\n"), json: json!({"a": a.summary(), "b": b.summary(), "steps": rows}) })
}
