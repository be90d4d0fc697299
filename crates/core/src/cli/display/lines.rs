//! The lines that events become.

use std::collections::BTreeMap;
use std::time::Duration;

use toolbox_engine::Exit;
use toolbox_engine::event::{Ended, Event, PlannedStep, Stamped};
use toolbox_engine::plan::show_duration;

use super::Paint;

/// What has to be remembered to tell what an event means.
pub(super) struct Lines {
    paint: Paint,
    steps: BTreeMap<String, Known>,
    /// Whether the run only asks a question, so that no is an answer and no failure.
    pub(super) probe: bool,
}

struct Known {
    title: String,
    started: Option<f64>,
    /// The reason that was shown last.
    waits: String,
}

/// How a line begins: what kind of news it is.
#[derive(Clone, Copy)]
enum Word {
    Waits,
    Changed,
    Fine,
    Skipped,
    Failed,
    No,
    Stopped,
    Note,
    Warning,
}

impl Word {
    fn text(self) -> &'static str {
        match self {
            Word::Waits => "waits",
            Word::Changed => "changed",
            Word::Fine => "ok",
            Word::Skipped => "skipped",
            Word::Failed => "FAILED",
            Word::No => "no",
            Word::Stopped => "stopped",
            Word::Note => "note",
            Word::Warning => "warning",
        }
    }
}

/// Seconds as people read them.
pub(crate) fn show(seconds: f64) -> String {
    show_duration(Duration::from_secs_f64(seconds.max(0.0)))
}

impl Lines {
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint, steps: BTreeMap::new(), probe: false }
    }

    /// A step's title.
    pub(super) fn title(&self, step: &str) -> String {
        self.steps.get(step).map_or_else(|| step.to_owned(), |known| known.title.clone())
    }

    /// The lines of one event; most have one or none.
    pub(super) fn of(&mut self, event: &Stamped) -> Vec<String> {
        let t = event.t;
        match &event.event {
            Event::Planned { steps } => {
                for step in steps {
                    self.learn(step);
                }
                Vec::new()
            }
            Event::Added { step } => {
                self.learn(step);
                Vec::new()
            }
            Event::Started { step, .. } => {
                if let Some(known) = self.steps.get_mut(step) {
                    known.started = Some(t);
                }
                Vec::new()
            }
            // The first look takes a moment and is no news.
            Event::Pending { why, .. } if why.code == "listing" => Vec::new(),
            Event::Pending { step, why } => {
                let text = why.to_string();
                if let Some(known) = self.steps.get_mut(step) {
                    // A reason may change in its evidence only, which is for the record.
                    if known.waits == text {
                        return Vec::new();
                    }
                    known.waits.clone_from(&text);
                }
                let since = self.since(step, t);
                let text = if since < 1.0 { text } else { format!("{text} ({})", show(since)) };
                vec![self.line(t, Word::Waits, Some(step), &text)]
            }
            Event::Note { step, text } => vec![self.line(t, Word::Note, step.as_deref(), text)],
            Event::Warning { step, text, .. } => {
                vec![self.line(t, Word::Warning, step.as_deref(), text)]
            }
            Event::Ended { step, ended } => self.ended(t, step, ended).into_iter().collect(),
            Event::Interrupted { by } => vec![self.line(
                t,
                Word::Stopped,
                None,
                &format!("{by}: no further step starts, captures run; once more to give them up"),
            )],
            Event::RunStarted { .. }
            | Event::Cluster { .. }
            | Event::Made { .. }
            | Event::Version { .. }
            | Event::Leftover { .. }
            | Event::Traffic { .. }
            | Event::Floor { .. }
            | Event::RunEnded { .. } => Vec::new(),
        }
    }

    fn ended(&self, t: f64, step: &str, ended: &Ended) -> Option<String> {
        let took = self.since(step, t);
        let timed = |text: &str| {
            if took < 0.05 { text.to_owned() } else { format!("{text} ({})", show(took)) }
        };
        Some(match ended {
            Ended::Changed { what } => self.line(t, Word::Changed, Some(step), &timed(what)),
            Ended::AlreadySo { what } => self.line(t, Word::Fine, Some(step), &timed(what)),
            Ended::Skipped { reason } => self.line(t, Word::Skipped, Some(step), reason),
            Ended::Failed { why } if self.probe && why.exit == Exit::Failed => {
                self.line(t, Word::No, Some(step), &timed(&why.to_string()))
            }
            Ended::Failed { why } => self.line(t, Word::Failed, Some(step), &timed(&why.to_string())),
            Ended::Stopped => {
                let text = timed("was running when the run was stopped");
                self.line(t, Word::Stopped, Some(step), &text)
            }
            // The summary counts them; a line for each would bury the failure.
            Ended::NotRun { .. } => return None,
        })
    }

    /// A line that says again what is waited for.
    pub(super) fn still(&self, t: f64, step: &str, since: f64, text: &str) -> String {
        let text = format!("still, after {}: {text}", show(t - since));
        self.line(t, Word::Waits, Some(step), &text)
    }

    /// A live line for what runs now.
    pub(super) fn live(&self, t: f64, step: &str, since: f64, text: &str) -> String {
        format!("{:>7}  {}: {text}", show(t - since), self.paint.strong(step))
    }

    fn line(&self, t: f64, word: Word, step: Option<&str>, text: &str) -> String {
        let padded = format!("{:<7}", word.text());
        let word = match word {
            Word::Waits => self.paint.busy(&padded),
            Word::Changed => self.paint.good(&padded),
            Word::Fine | Word::No | Word::Skipped | Word::Note => self.paint.faint(&padded),
            Word::Failed => self.paint.bad(&padded),
            Word::Stopped | Word::Warning => self.paint.odd(&padded),
        };
        let step = step.map(|step| format!("{}: ", self.paint.strong(step))).unwrap_or_default();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let mut whole = format!("{:>7}  {word}  {step}{first}", show(t));
        for more in lines {
            whole = format!("{whole}\n{:18}| {more}", "");
        }
        whole
    }

    fn since(&self, step: &str, t: f64) -> f64 {
        let started = self.steps.get(step).and_then(|known| known.started);
        started.map_or(0.0, |started| t - started)
    }

    fn learn(&mut self, step: &PlannedStep) {
        let known = Known { title: step.title.clone(), started: None, waits: String::new() };
        self.steps.insert(step.id.clone(), known);
    }
}
