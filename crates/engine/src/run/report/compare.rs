//! Two runs side by side: what took longer, what ended otherwise, what was found otherwise.

use serde::Serialize;

use super::view::{Head, state_class, state_word};
use crate::run::record::{Record, StepRecord};
use crate::run::text::{readable, show_seconds};

#[derive(Debug, Serialize)]
pub(super) struct CompareView {
    left: Head,
    right: Head,
    steps: Vec<Pair>,
    versions: Vec<Row>,
    requests: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Pair {
    id: String,
    title: String,
    finalizer: bool,
    differs: bool,
    left: Option<Side>,
    right: Option<Side>,
    change: String,
    /// `worse`, `better` or `soft`.
    weight: &'static str,
}

#[derive(Debug, Serialize)]
struct Side {
    state: &'static str,
    word: &'static str,
    time: String,
    /// Where its bar begins and how long it is, in percent; nothing when it never started.
    bar: Option<(String, String)>,
    what: String,
    critical: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    what: String,
    left: String,
    right: String,
    differs: bool,
}

impl CompareView {
    pub(super) fn new(left: &Record, right: &Record) -> Self {
        let end_s = left.last_s.max(right.last_s).max(0.001);
        let (left_path, right_path) = (left.summary().critical_path, right.summary().critical_path);
        let pair = |id: &str| {
            let (a, b) = (left.step(id), right.step(id));
            let step = a.or(b)?;
            let times = (a.and_then(StepRecord::duration_s), b.and_then(StepRecord::duration_s));
            let change = match times {
                (Some(a), Some(b)) => b - a,
                _ => 0.0,
            };
            // Less than a second, or than five in a hundred, is the same.
            let weighs = change.abs() >= 1.0 && change.abs() >= times.0.unwrap_or(0.0) * 0.05;
            Some(Pair {
                id: readable(id),
                title: readable(&step.planned.title),
                finalizer: step.is_finalizer(),
                differs: a.map(|a| a.state) != b.map(|b| b.state),
                left: a.map(|step| Side::new(step, end_s, &left_path)),
                right: b.map(|step| Side::new(step, end_s, &right_path)),
                change: match times {
                    (Some(_), Some(_)) if weighs => {
                        format!("{}{}", if change > 0.0 { "+" } else { "−" }, show_seconds(change.abs()))
                    }
                    (Some(_), Some(_)) => "same".to_owned(),
                    _ => String::new(),
                },
                weight: if !weighs {
                    "soft"
                } else if change > 0.0 {
                    "worse"
                } else {
                    "better"
                },
            })
        };
        Self {
            left: Head::new(left),
            right: Head::new(right),
            steps: ids(left, right).into_iter().filter_map(pair).collect(),
            versions: versions(left, right),
            requests: requests(left, right),
        }
    }
}

impl Side {
    fn new(step: &StepRecord, end_s: f64, path: &[String]) -> Self {
        let percent = |seconds: f64| format!("{:.2}", (seconds / end_s * 100.0).clamp(0.0, 100.0));
        Self {
            state: state_class(step.state),
            word: state_word(step.state),
            time: step.duration_s().map_or_else(String::new, show_seconds),
            bar: step.start_s.map(|start| (percent(start), percent(step.duration_s().unwrap_or(0.0)))),
            what: readable(&step.what),
            critical: path.contains(&step.planned.id),
        }
    }
}

/// The left run's steps in their order, each followed by those that only the right one has there.
fn ids<'a>(left: &'a Record, right: &'a Record) -> Vec<&'a str> {
    let mut ids: Vec<&str> = left.steps.iter().map(|step| step.planned.id.as_str()).collect();
    let mut before = 0;
    for step in &right.steps {
        let id = step.planned.id.as_str();
        if let Some(at) = ids.iter().position(|known| *known == id) {
            before = at + 1;
        } else {
            ids.insert(before, id);
            before += 1;
        }
    }
    ids
}

fn versions(left: &Record, right: &Record) -> Vec<Row> {
    let find = |record: &Record, what: &str| {
        let seen = record.versions.iter().find(|seen| seen.what == what);
        readable(seen.and_then(|seen| seen.found.as_deref().or(seen.asked.as_deref())).unwrap_or("–"))
    };
    let mut names: Vec<String> = Vec::new();
    for seen in left.versions.iter().chain(&right.versions) {
        if !names.contains(&seen.what) {
            names.push(seen.what.clone());
        }
    }
    names.iter().map(|name| Row::new(name, find(left, name), find(right, name))).collect()
}

fn requests(left: &Record, right: &Record) -> Vec<Row> {
    let verbs: std::collections::BTreeSet<&String> = left.requests.keys().chain(right.requests.keys()).collect();
    let count = |record: &Record, verb: &String| record.requests.get(verb).copied().unwrap_or(0).to_string();
    let mut rows: Vec<Row> = verbs.iter().map(|verb| Row::new(verb, count(left, verb), count(right, verb))).collect();
    rows.push(Row::new("watch events", left.watch_events.to_string(), right.watch_events.to_string()));
    rows
}

impl Row {
    fn new(what: &str, left: String, right: String) -> Self {
        Self { what: readable(what), differs: left != right, left, right }
    }
}
