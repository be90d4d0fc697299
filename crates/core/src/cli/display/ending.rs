//! The last words of a run: what came of it, where everything is, what to do next.

use std::path::{Path, PathBuf};

use toolbox_engine::run::{Record, StepRecord, StepState};
use toolbox_engine::{Exit, FailureVerdict, Why};

use super::Paint;
use super::lines::show;

/// Leftovers that are listed one by one; the rest is counted.
const LISTED: usize = 12;

/// Seconds that nobody cares about.
const SHORT: f64 = 0.05;

/// Everything that the last words are made of.
pub(crate) struct Ending<'a> {
    /// The run, from its events.
    pub(crate) record: &'a Record,
    /// How it ended.
    pub(crate) exit: Exit,
    /// The failure that decided it.
    pub(crate) why: Option<&'a Why>,
    /// Whether it only asked a question.
    pub(crate) probe: bool,
    /// Where its files are.
    pub(crate) run_dir: Option<&'a Path>,
    /// Its report, when there is one.
    pub(crate) report: Option<PathBuf>,
    /// A file that could not be written.
    pub(crate) trouble: Option<&'a Why>,
}

/// `error:`, `next:` and the evidence of a failure.
pub(crate) fn failure_lines(why: &Why, word: &str, paint: Paint) -> Vec<String> {
    let mut lines = vec![format!("{} {}", paint.bad(&format!("{word}:")), one_line(&why.to_string()))];
    if !why.next.is_empty() {
        lines.push(format!("{} {}", paint.strong("next:"), one_line(&why.next)));
    }
    for evidence in &why.evidence {
        let mut texts = evidence.text.trim_end().lines();
        match (texts.next(), texts.clone().next()) {
            (Some(only), None) => lines.push(format!("  {}: {only}", evidence.label)),
            (first, _) => {
                lines.push(format!("  {}:", evidence.label));
                lines.extend(first.into_iter().chain(texts).map(|line| format!("  | {line}")));
            }
        }
    }
    lines
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

fn whose(verdict: FailureVerdict) -> &'static str {
    match verdict {
        FailureVerdict::Product => "the product under test",
        FailureVerdict::Infrastructure => "infrastructure",
        FailureVerdict::Capacity => "capacity",
        FailureVerdict::Configuration => "configuration",
        FailureVerdict::KnownFlake => "a known flake",
        FailureVerdict::Tool => "this program",
    }
}

impl Ending<'_> {
    /// Whether the answer is no rather than a failure.
    fn is_no(&self) -> bool {
        self.probe && self.exit == Exit::Failed
    }

    pub(crate) fn lines(&self, paint: Paint) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(why) = self.why {
            let word = if self.is_no() { "no" } else { "error" };
            lines.extend(failure_lines(why, word, paint));
        }
        lines.extend(self.others(paint));
        lines.extend(self.stopped(paint));
        lines.push(self.result(paint));
        let summary = self.record.summary();
        // What a failed run waited for is in its reasons; where its time went is of no use.
        if self.exit == Exit::Done && summary.critical_path_s >= SHORT {
            let took = |id: &String| self.record.step(id).and_then(StepRecord::duration_s).unwrap_or_default();
            let long = (summary.critical_path_s / 100.0).max(SHORT);
            let steps = summary.critical_path.iter().filter(|id| took(id) >= long);
            let steps: Vec<String> = steps.map(|id| format!("{id} {}", show(took(id)))).collect();
            lines.push(format!("critical path: {}", steps.join(" > ")));
        }
        for version in &self.record.versions {
            if let (Some(asked), Some(found)) = (&version.asked, &version.found)
                && asked != found
            {
                let line = format!("{}: asked for {asked}, found {found}", version.what);
                lines.push(paint.odd(&line));
            }
        }
        for warning in &self.record.warnings {
            lines.push(format!("{} {}", paint.odd("warning:"), warning.text));
        }
        lines.extend(self.leftovers(paint));
        if let Some(trouble) = self.trouble {
            lines.push(format!("{} {trouble}", paint.odd("warning:")));
        }
        lines.extend(self.files());
        if let Some(rehearsal) = &self.record.rehearsal {
            lines.push(paint.faint(&format!("this was a rehearsal ({rehearsal}); no real cluster was touched")));
        }
        lines
    }

    /// Where everything is.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(run_dir) = self.run_dir {
            lines.push(format!("run directory: {}", run_dir.display()));
        }
        if let Some(report) = &self.report {
            lines.push(format!("report: {}", report.display()));
        }
        lines
    }

    /// What was waited for when a signal came.
    fn stopped(&self, paint: Paint) -> Vec<String> {
        if !matches!(self.exit, Exit::Interrupted | Exit::Terminated) {
            return Vec::new();
        }
        let stopped = self.record.steps.iter().filter(|step| step.state == StepState::Stopped);
        let waited = stopped.filter_map(|step| Some((&step.planned.id, step.why.as_ref()?)));
        waited.map(|(id, why)| format!("{} {id}: {why}", paint.odd("stopped while waiting:"))).collect()
    }

    /// Failures besides the one that decided the result.
    fn others(&self, paint: Paint) -> Vec<String> {
        let decided = self.why;
        self.record
            .failures()
            .into_iter()
            .filter(|step| step.why.as_ref() != decided)
            .map(|step| format!("{} {}: {}", paint.odd("also failed:"), step.planned.id, one_line(&step.what)))
            .collect()
    }

    fn result(&self, paint: Paint) -> String {
        let count = |state: StepState| self.record.steps.iter().filter(|step| step.state == state).count();
        let counted: Vec<String> = [
            (StepState::Changed, "changed"),
            (StepState::AlreadySo, "already so"),
            (StepState::Skipped, "skipped"),
            (StepState::Failed, "failed"),
            (StepState::Stopped, "stopped"),
            (StepState::NotRun, "not run"),
        ]
        .into_iter()
        .filter_map(|(state, word)| {
            let count = count(state);
            (count > 0).then(|| format!("{count} {word}"))
        })
        .collect();
        let word = match self.exit {
            Exit::Done => paint.good("passed"),
            Exit::Failed if self.probe => "answered no".to_owned(),
            Exit::Interrupted | Exit::Terminated => paint.odd("interrupted"),
            Exit::TimedOut => paint.bad("timed out"),
            _ => paint.bad("failed"),
        };
        let fault = match self.why {
            Some(why) if self.exit != Exit::Done && !self.is_no() => {
                format!(", exit code {}, {}", self.exit.code(), whose(why.verdict))
            }
            _ if self.exit != Exit::Done => format!(", exit code {}", self.exit.code()),
            _ => String::new(),
        };
        let steps = if counted.is_empty() { String::new() } else { format!(" ({})", counted.join(", ")) };
        let floor = self
            .record
            .floor_s
            .filter(|_| self.exit == Exit::Done)
            .map(|floor| format!(", at least {} by the scenario's own causes", show(floor)))
            .unwrap_or_default();
        format!("{word}: {} in {}{steps}{fault}{floor}", self.record.name, show(self.record.last_s))
    }

    fn leftovers(&self, paint: Paint) -> Vec<String> {
        let left = self.record.leftovers();
        if left.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![paint.odd("left on the cluster:")];
        lines.extend(left.iter().take(LISTED).map(|object| format!("  {object}")));
        if left.len() > LISTED {
            lines.push(format!("  and {} more, see summary.json", left.len() - LISTED));
        }
        // A simulated cluster is gone by then.
        if let (Some(run_dir), None) = (self.run_dir, &self.record.rehearsal) {
            lines.push(format!("  take it back: tbx cleanup {}", run_dir.display()));
        }
        lines
    }

    /// The failure in one line, for a CI that shows such lines.
    pub(super) fn annotation(&self) -> Option<String> {
        let why = self.why.filter(|_| self.exit != Exit::Done && !self.is_no())?;
        Some(if why.next.is_empty() { why.to_string() } else { format!("{why}\nnext: {}", why.next) })
    }
}
