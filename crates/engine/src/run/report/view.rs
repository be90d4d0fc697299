//! What the report shows, as plain texts: the template only arranges it.

use serde::Serialize;

use super::timeline::{Bar, Scale, Tick};
use crate::run::record::{LogLine, Reason, Record, StepRecord, StepState};
use crate::run::summary::RunResult;
use crate::run::text::{clip, readable, shell_words, show_seconds};
use crate::why::Why;

/// A browser copes with more, but nobody reads more in a report; the files are next to it.
const LONGEST_TEXT: usize = 64 * 1024;
const MOST_LOG_LINES: usize = 3000;

#[derive(Debug, Serialize)]
pub(super) struct ReportView {
    head: Head,
    ticks: Vec<Tick>,
    steps: Vec<Row>,
    finalizers: Vec<Row>,
    waits: Vec<Wait>,
    failures: Vec<Failure>,
    warnings: Vec<(String, String)>,
    leftovers: Vec<(String, String)>,
    versions: Vec<Version>,
    requests: Vec<(String, u64)>,
    watch_events: u64,
    log: Vec<Line>,
    log_left_out: usize,
}

/// Who, what, how: the same for the report and for each side of a comparison.
#[derive(Debug, Serialize)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) result: &'static str,
    pub(super) word: &'static str,
    pub(super) verdict: Option<String>,
    pub(super) failure: Option<Failure>,
    pub(super) command: String,
    pub(super) facts: Vec<(&'static str, String)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    id: String,
    title: String,
    child: bool,
    critical: bool,
    state: String,
    word: &'static str,
    time: String,
    what: String,
    needs: String,
    deadline: String,
    bar: Option<Bar>,
}

#[derive(Debug, Serialize)]
struct Wait {
    id: String,
    name: Option<String>,
    title: String,
    total: String,
    reasons: Vec<WaitReason>,
}

#[derive(Debug, Serialize)]
struct WaitReason {
    from: String,
    time: String,
    object: String,
    cause: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Failure {
    step: String,
    title: String,
    finalizer: bool,
    object: String,
    cause: String,
    next: String,
    code: String,
    evidence: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Version {
    what: String,
    asked: String,
    found: String,
}

#[derive(Debug, Serialize)]
struct Line {
    t: String,
    step: String,
    text: String,
}

impl ReportView {
    pub(super) fn new(record: &Record) -> Self {
        let scale = Scale::of(record.last_s);
        let critical = record.summary().critical_path;
        let rows = |finalizer: bool| -> Vec<Row> {
            let mine = record.steps.iter().filter(|step| step.is_finalizer() == finalizer);
            mine.map(|step| Row::new(record, step, &scale, &critical)).collect()
        };
        let failures = record.failures();
        let skip = record.log.len().saturating_sub(MOST_LOG_LINES);
        Self {
            head: Head::new(record),
            ticks: scale.ticks(),
            steps: rows(false),
            finalizers: rows(true),
            waits: waits(record),
            failures: failures
                .into_iter()
                .filter_map(|step| Some(Failure::new(Some(step), step.why.as_ref()?)))
                .collect(),
            warnings: record
                .warnings
                .iter()
                .map(|warning| (readable(&warning.name), readable(&warning.text)))
                .collect(),
            leftovers: record
                .leftovers()
                .iter()
                .map(|object| (readable(&object.to_string()), readable(object.uid.as_deref().unwrap_or_default())))
                .collect(),
            versions: versions(record),
            requests: record.requests.iter().map(|(verb, count)| (readable(verb), *count)).collect(),
            watch_events: record.watch_events,
            log: record.log[skip..].iter().map(Line::new).collect(),
            log_left_out: skip,
        }
    }
}

impl Head {
    pub(super) fn new(record: &Record) -> Self {
        let summary = record.summary();
        let (result, word) = match summary.result {
            RunResult::Running => ("running", "not ended"),
            RunResult::Passed => ("passed", "passed"),
            RunResult::Failed => ("failed", "failed"),
            RunResult::Skipped => ("skipped", "nothing to do"),
            RunResult::Interrupted => ("interrupted", "interrupted"),
            RunResult::Error => ("error", "could not be done"),
        };
        Self {
            name: readable(&record.name),
            result,
            word,
            verdict: summary.verdict.and_then(|verdict| {
                let text = serde_json::to_value(verdict).ok()?;
                Some(text.as_str()?.replace('-', " "))
            }),
            failure: (summary.result != RunResult::Passed)
                .then_some(record.why.as_ref())
                .flatten()
                .map(|why| Failure::new(None, why)),
            command: readable(&shell_words(&record.command)),
            facts: facts(record, summary.critical_path_s, summary.exit_code),
        }
    }
}

fn facts(record: &Record, critical_path_s: f64, exit_code: Option<u8>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &'static str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name, readable(&value)));
        }
    };
    fact("started", record.started.map(|started| format!("{started:.0}")));
    fact("took", Some(show_seconds(record.last_s)));
    fact("critical path", (critical_path_s > 0.0).then(|| show_seconds(critical_path_s)));
    fact("least possible", record.floor_s.map(show_seconds));
    fact("exit code", exit_code.map(|code| code.to_string()));
    fact("stopped by", record.interrupted.clone());
    if let Some(cluster) = &record.cluster {
        fact("cluster", Some(format!("{} ({})", cluster.server, cluster.version)));
        fact("configuration", Some(cluster.source.clone()));
    }
    fact("rehearsal", record.rehearsal.clone());
    fact("resumes", record.resumes.clone());
    fact("tbx", Some(record.version.clone()));
    facts
}

impl Row {
    fn new(record: &Record, step: &StepRecord, scale: &Scale, critical: &[String]) -> Self {
        Self {
            id: readable(&step.planned.id),
            title: readable(&step.planned.title),
            child: step.planned.parent.is_some(),
            critical: critical.contains(&step.planned.id),
            state: state_class(step.state).to_owned(),
            word: state_word(step.state),
            time: match (step.duration_s(), step.start_s) {
                (Some(duration), _) => show_seconds(duration),
                (None, Some(start)) => format!("{} so far", show_seconds(record.last_s - start)),
                _ => String::new(),
            },
            what: clip(
                &readable(&match (&step.why, step.state) {
                    (Some(why), StepState::Running) => format!("waits: {why}"),
                    _ => step.what.clone(),
                }),
                500,
            ),
            needs: readable(&step.planned.needs.join(", ")),
            deadline: show_seconds(step.planned.deadline_s),
            bar: scale.bar(record, step),
        }
    }
}

pub(super) fn state_class(state: StepState) -> &'static str {
    match state {
        StepState::Waiting => "waiting",
        StepState::Running => "running",
        StepState::Changed => "changed",
        StepState::AlreadySo => "already-so",
        StepState::Skipped => "skipped",
        StepState::Failed => "failed",
        StepState::NotRun => "not-run",
        StepState::Stopped => "stopped",
    }
}

pub(super) fn state_word(state: StepState) -> &'static str {
    match state {
        StepState::Waiting => "waiting",
        StepState::Running => "running",
        StepState::Changed => "done",
        StepState::AlreadySo => "already so",
        StepState::Skipped => "skipped",
        StepState::Failed => "failed",
        StepState::NotRun => "not run",
        StepState::Stopped => "stopped",
    }
}

fn waits(record: &Record) -> Vec<Wait> {
    let one = |step: &StepRecord| {
        let end = step.end_s.unwrap_or(record.last_s);
        let reason = |(reason, until): (&Reason, f64)| WaitReason {
            from: show_seconds(reason.t),
            time: show_seconds((until - reason.t).max(0.0)),
            object: readable(&reason.why.object.to_string()),
            cause: clip(&readable(&reason.why.cause), 2000),
        };
        let reasons = step.reasons_until(end).map(reason).collect();
        Wait {
            id: readable(&step.planned.id),
            name: step.planned.wait.as_deref().map(readable),
            title: readable(&step.planned.title),
            total: show_seconds(end - step.start_s.unwrap_or(end)),
            reasons,
        }
    };
    record.steps.iter().map(one).filter(|wait| !wait.reasons.is_empty()).collect()
}

fn versions(record: &Record) -> Vec<Version> {
    let text = |text: &Option<String>| readable(text.as_deref().unwrap_or("–"));
    record
        .versions
        .iter()
        .map(|seen| Version { what: readable(&seen.what), asked: text(&seen.asked), found: text(&seen.found) })
        .collect()
}

impl Failure {
    fn new(step: Option<&StepRecord>, why: &Why) -> Self {
        let evidence = why.evidence.iter();
        Self {
            step: step.map_or_else(String::new, |step| readable(&step.planned.id)),
            title: step.map_or_else(String::new, |step| readable(&step.planned.title)),
            finalizer: step.is_some_and(StepRecord::is_finalizer),
            object: readable(&why.object.to_string()),
            cause: clip(&readable(&why.cause), LONGEST_TEXT),
            next: readable(&why.next),
            code: readable(&why.code),
            evidence: evidence
                .map(|evidence| (readable(&evidence.label), clip(&readable(&evidence.text), LONGEST_TEXT)))
                .collect(),
        }
    }
}

impl Line {
    fn new(line: &LogLine) -> Self {
        Self {
            t: show_seconds(line.t),
            step: readable(line.step.as_deref().unwrap_or_default()),
            text: clip(&readable(&line.text), 2000),
        }
    }
}
