//! Everything that is known about a run: a fold over its events, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Ended, Event, PlannedStep, Role, Stamped};
use crate::journal::Entry;
use crate::why::{Exit, ObjectRef, Why};

/// The code of the reason that objects are being looked for.
pub(super) const LISTING: &str = "listing";
/// Less than this is no time that anybody waited.
const NOTICED_S: f64 = 1.0;

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Its needs are not met yet.
    #[default]
    Waiting,
    /// It runs.
    Running,
    /// Done, and the cluster is different now.
    Changed,
    /// Done; nothing had to be changed.
    AlreadySo,
    /// Not done, on purpose.
    Skipped,
    /// Failed.
    Failed,
    /// Never started.
    NotRun,
    /// Was running when the run was stopped.
    Stopped,
}

/// A reason for waiting, and when it began to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Seconds since the run started.
    pub t: f64,
    /// The reason.
    pub why: Why,
}

/// One step of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// As it was planned.
    pub planned: PlannedStep,
    /// How far it is.
    pub state: StepState,
    /// When it started, in seconds since the run did.
    pub start_s: Option<f64>,
    /// When it ended.
    pub end_s: Option<f64>,
    /// How often it was started.
    pub attempts: u32,
    /// Its reasons for waiting, one after the other.
    pub reasons: Vec<Reason>,
    /// How it ended, in words.
    pub what: String,
    /// Why it failed; while it runs, why it waits.
    pub why: Option<Why>,
}

impl StepRecord {
    fn new(planned: PlannedStep) -> Self {
        Self {
            planned,
            state: StepState::Waiting,
            start_s: None,
            end_s: None,
            attempts: 0,
            reasons: Vec::new(),
            what: String::new(),
            why: None,
        }
    }

    /// Whether it runs after everything else and never changes the result.
    pub fn is_finalizer(&self) -> bool {
        self.planned.role == Role::Finalizer
    }

    /// Its reasons for waiting and until when each held; `end` is when the last one ended. The first list of a watch is
    /// left out, unless it does not come.
    pub(super) fn reasons_until(&self, end: f64) -> impl Iterator<Item = (&Reason, f64)> {
        self.reasons.iter().enumerate().filter_map(move |(at, reason)| {
            let until = self.reasons.get(at + 1).map_or(end, |next| next.t);
            let noticed = reason.why.code != LISTING || until - reason.t >= NOTICED_S;
            noticed.then_some((reason, until))
        })
    }

    /// Seconds from start to end.
    pub fn duration_s(&self) -> Option<f64> {
        Some(round((self.end_s? - self.start_s?).max(0.0)))
    }
}

/// A line of the log: a note, a warning, a step's start or end.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// When.
    pub at: Timestamp,
    /// Seconds since the run started.
    pub t: f64,
    /// The step it belongs to.
    pub step: Option<String>,
    /// What happened.
    pub text: String,
}

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable name.
    pub name: String,
    /// One line.
    pub text: String,
}

/// The cluster that was talked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClusterSeen {
    /// URL of the API server.
    pub server: String,
    /// What the server says of itself.
    pub version: String,
    /// Where the configuration came from.
    pub source: String,
}

/// A version that was asked for or found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VersionSeen {
    /// `gpu-operator`, `csv`, `operator image`, …
    pub what: String,
    /// What was asked for, if anything was.
    pub asked: Option<String>,
    /// What was found, if anything was.
    pub found: Option<String>,
}

/// A run, as far as its events tell.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The verb or flow.
    pub name: String,
    /// The command to repeat it, one argument each.
    pub command: Vec<String>,
    /// The program's version.
    pub version: String,
    /// The run directory that this run resumes.
    pub resumes: Option<String>,
    /// Scenario, faults and seed, when the cluster is simulated.
    pub rehearsal: Option<String>,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// Seconds from the start to the last event.
    pub last_s: f64,
    /// The cluster.
    pub cluster: Option<ClusterSeen>,
    /// Every step: in plan order, those added on the way after the one that added them.
    pub steps: Vec<StepRecord>,
    /// What happened, line by line.
    pub log: Vec<LogLine>,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// Versions asked for and found.
    pub versions: Vec<VersionSeen>,
    /// Objects made and not deleted again, those of the run that this one resumes too.
    pub made: Vec<ObjectRef>,
    /// Objects that a step named as left over.
    pub named_leftovers: Vec<ObjectRef>,
    /// What asked the run to stop.
    pub interrupted: Option<String>,
    /// API requests by verb.
    pub requests: BTreeMap<String, u64>,
    /// Watch events received.
    pub watch_events: u64,
    /// The least time the scenario's causes allow.
    pub floor_s: Option<f64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The failure that decided it.
    pub why: Option<Why>,
    /// Lines of the events file that could not be read; the last one is torn when the machine went down.
    pub unreadable: usize,
}

impl Record {
    /// Reads a run directory: its events, and from its journal what was deleted, and what the run it resumes had made.
    pub fn from_run_dir(directory: &Path) -> std::io::Result<Self> {
        let mut record = Self::from_events_file(&directory.join("events.jsonl"))?;
        if record.started.is_none() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the start of a run is not in it"));
        }
        if let Ok(journal) = std::fs::read(directory.join("journal.jsonl")) {
            for entry in super::resume::entries(&journal) {
                record.journal(&entry);
            }
        }
        Ok(record)
    }

    /// Reads `events.jsonl`. A line that cannot be read is counted and passed over.
    pub fn from_events_file(path: &Path) -> std::io::Result<Self> {
        let content = std::fs::read(path)?;
        let mut record = Self::default();
        for line in content.split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Stamped>(line) {
                Ok(event) => record.event(&event),
                Err(_) => record.unreadable += 1,
            }
        }
        Ok(record)
    }

    /// Takes one event.
    pub fn event(&mut self, stamped: &Stamped) {
        self.last_s = self.last_s.max(stamped.t);
        super::fold::event(self, stamped);
    }

    /// Takes one entry of the journal: deletions are no events, nor is what an earlier part of the run made.
    pub fn journal(&mut self, entry: &Entry) {
        match entry {
            Entry::Deleted { object } => {
                self.made.retain(|made| !same_life(made, object));
                self.named_leftovers.retain(|left| !same_life(left, object));
            }
            Entry::Made { object, .. } if !self.made.iter().any(|made| same_life(made, object)) => {
                self.made.push(object.clone());
            }
            Entry::Made { .. } | Entry::Decided { .. } | Entry::Making { .. } | Entry::Changed { .. } => {}
        }
    }

    /// A step by its id.
    pub fn step(&self, id: &str) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.planned.id == id)
    }

    pub(super) fn step_mut(&mut self, id: &str) -> Option<&mut StepRecord> {
        self.steps.iter_mut().find(|step| step.planned.id == id)
    }

    /// Adds a step after its parent and the parent's earlier children, or at the end.
    pub(super) fn add(&mut self, planned: PlannedStep) {
        let after = planned.parent.as_ref().and_then(|parent| {
            let family = |step: &StepRecord| {
                step.planned.id == *parent
                    || step.planned.parent.as_ref() == Some(parent)
                    || step.planned.id.starts_with(&format!("{parent}["))
            };
            self.steps.iter().rposition(family)
        });
        let at = after.map_or(self.steps.len(), |at| at + 1);
        self.steps.insert(at, StepRecord::new(planned));
    }

    /// What is still on the cluster because of this run. After a run that passed only what a step named: the rest is
    /// what was asked for.
    pub fn leftovers(&self) -> Vec<ObjectRef> {
        let mut all = self.named_leftovers.clone();
        if self.exit != Some(Exit::Done) {
            for made in &self.made {
                if !all.iter().any(|left| same_life(left, made)) {
                    all.push(made.clone());
                }
            }
        }
        all
    }

    /// Steps that failed, those that decide the result first.
    pub fn failures(&self) -> Vec<&StepRecord> {
        let failed = |finalizer: bool| {
            self.steps.iter().filter(move |step| step.state == StepState::Failed && step.is_finalizer() == finalizer)
        };
        failed(false).chain(failed(true)).collect()
    }
}

/// Whether both name the same object, and the same life of it where both say so.
pub(super) fn same_life(a: &ObjectRef, b: &ObjectRef) -> bool {
    let uid = match (&a.uid, &b.uid) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    uid && a.kind == b.kind && a.namespace == b.namespace && a.name == b.name && group(a) == group(b)
}

fn group(object: &ObjectRef) -> &str {
    object.api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// How a step's end looks in the record.
pub(super) fn close(step: &mut StepRecord, t: f64, ended: &Ended) {
    step.end_s = Some(t);
    (step.state, step.what) = match ended {
        Ended::Changed { what } => (StepState::Changed, what.clone()),
        Ended::AlreadySo { what } => (StepState::AlreadySo, what.clone()),
        Ended::Skipped { reason } => (StepState::Skipped, reason.clone()),
        Ended::Failed { why } => (StepState::Failed, why.to_string()),
        Ended::NotRun { reason } => (StepState::NotRun, reason.clone()),
        Ended::Stopped => (StepState::Stopped, "was running when the run was stopped".to_owned()),
    };
    step.why = match ended {
        Ended::Failed { why } => Some(why.clone()),
        // What it was waiting for is worth knowing.
        Ended::Stopped => step.why.take(),
        _ => None,
    };
}

/// Seconds, to the millisecond.
pub(super) fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Whether an event says something about the run as a whole that the summary must show at once.
pub(super) fn is_weighty(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted { .. }
            | Event::Cluster { .. }
            | Event::Planned { .. }
            | Event::Started { .. }
            | Event::Ended { .. }
            | Event::Interrupted { .. }
            | Event::RunEnded { .. }
    )
}
