//! Progress on stderr: live lines on a terminal, one line per change in a pipe, groups where the CI has them.

mod ending;
mod lines;
mod paint;
mod screen;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use toolbox_engine::event::{Event, Reporter, Stamped};
use toolbox_engine::{Redactor, Why};

pub(crate) use ending::{Ending, failure_lines};
pub(crate) use lines::show;
pub(crate) use paint::Paint;
pub(crate) use screen::{Heard, Screen, Surface};

use lines::Lines;

/// Shows a run while it goes on.
pub(crate) struct Display {
    state: Mutex<State>,
    redactor: Redactor,
}

struct State {
    lines: Lines,
    screen: Screen,
    /// What runs now, with what is said about it.
    running: BTreeMap<String, Running>,
    /// When something was last said, in seconds of the run.
    spoke: f64,
}

struct Running {
    since: f64,
    text: String,
}

/// After so long without a change a pipe gets a line that says what is still waited for: some CIs kill silent jobs.
const SILENCE_S: f64 = 300.0;

impl Display {
    /// Shows on `screen`; secrets that `redactor` knows are masked.
    pub(crate) fn new(screen: Screen, redactor: Redactor) -> Self {
        let state = State { lines: Lines::new(screen.paint()), screen, running: BTreeMap::new(), spoke: 0.0 };
        Self { state: Mutex::new(state), redactor }
    }

    /// From now on a failed step is an answer: the run only asks a question.
    pub(crate) fn asks(&self) {
        self.lock().lines.probe = true;
    }

    /// One line that belongs to no step.
    pub(crate) fn say(&self, line: &str) {
        let line = self.redactor.text(line);
        self.lock().screen.line(&line);
    }

    /// A failure before there was a run.
    pub(crate) fn fail(&self, why: &Why) {
        let mut state = self.lock();
        let paint = state.screen.paint();
        for line in failure_lines(why, "error", paint) {
            let line = self.redactor.text(&line);
            state.screen.line(&line);
        }
    }

    /// Looks at the time: moves the live lines on, or breaks a long silence. `t` is seconds of the run.
    pub(crate) fn tick(&self, t: f64) {
        let mut state = self.lock();
        if state.screen.is_live() {
            state.draw(t);
        } else if t - state.spoke >= SILENCE_S {
            let waiting: Vec<String> = state
                .running
                .iter()
                .map(|(id, running)| state.lines.still(t, id, running.since, &running.text))
                .collect();
            for line in waiting {
                state.screen.line(&line);
            }
            state.spoke = t;
        }
    }

    /// Says how it ended.
    pub(crate) fn end(&self, ending: &Ending<'_>) {
        let mut state = self.lock();
        state.running.clear();
        state.screen.clear_live();
        state.screen.end_group();
        let paint = state.screen.paint();
        for line in ending.lines(paint) {
            let line = self.redactor.text(&line);
            state.screen.line(&line);
        }
        if let Some(annotation) = ending.annotation() {
            let annotation = self.redactor.text(&annotation);
            state.screen.annotate(&annotation);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter for Display {
    fn event(&self, event: &Stamped) {
        let mut state = self.lock();
        match &event.event {
            Event::Planned { .. } => state.screen.group("Progress"),
            Event::Started { step, .. } => {
                let running = Running { since: event.t, text: state.lines.title(step) };
                state.running.insert(step.clone(), running);
            }
            Event::Pending { step, why } => {
                let text = self.redactor.text(&why.to_string()).into_owned();
                if let Some(running) = state.running.get_mut(step) {
                    running.text = text;
                }
            }
            Event::Ended { step, .. } => {
                state.running.remove(step);
            }
            _ => {}
        }
        let lines = state.lines.of(event);
        // On a terminal what is waited for is in the live lines, and in the record.
        let shown = !(state.screen.is_live() && matches!(event.event, Event::Pending { .. }));
        for line in lines.into_iter().filter(|_| shown) {
            let line = self.redactor.text(&line);
            state.screen.line(&line);
            state.spoke = event.t;
        }
        if state.screen.is_live() {
            state.draw(event.t);
        }
    }
}

impl State {
    fn draw(&mut self, t: f64) {
        let live: Vec<String> =
            self.running.iter().map(|(id, running)| self.lines.live(t, id, running.since, &running.text)).collect();
        self.screen.live(&live);
    }
}

#[cfg(test)]
mod tests;
