//! What happens in a run, as written to `events.jsonl` and shown on the terminal.
//!
//! The record of a run (summary, JUnit, report) is a fold over these, so a report can be made again from the file.

use serde::{Deserialize, Serialize};

use crate::why::{Exit, ObjectRef, Why};

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// When, by the run's clock.
    pub at: jiff::Timestamp,
    /// Seconds since the run started, by the run's clock.
    pub t: f64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What a step is for; decides what `--plan` does with it and how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Reads and decides; also runs for `--plan`.
    Ask,
    /// Changes the cluster.
    Change,
    /// Watches until something holds.
    Wait,
    /// Runs after everything else, whatever happened; never changes the result.
    Finalizer,
}

/// A step as it was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// `nfd.wait-csv`.
    pub id: String,
    /// A title a person understands.
    pub title: String,
    /// What it is for.
    pub role: Role,
    /// The ids of the steps it needs.
    pub needs: Vec<String>,
    /// The name a wait is known by (`machines`, `csv`), for `--deadline` and the display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// Seconds it may take.
    pub deadline_s: f64,
    /// Set when it makes one more step per such thing while it runs: `GPU node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The step that made it, for steps added on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it does to the cluster, in words.
    pub effects: Vec<String>,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Ended {
    /// It did what it is for and the cluster is different now.
    Changed {
        /// In words: `created Subscription nfd`.
        what: String,
    },
    /// Nothing had to be done.
    AlreadySo {
        /// In words: `2 nodes are labelled`.
        what: String,
    },
    /// Not done, on purpose.
    Skipped {
        /// Why not.
        reason: String,
    },
    /// Failed.
    Failed {
        /// Why.
        why: Why,
    },
    /// Never started, because something it needs failed or the run was stopped.
    NotRun {
        /// Which.
        reason: String,
    },
    /// Was running when the run was stopped.
    Stopped,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins. Everything that identifies it.
    RunStarted {
        /// The verb or flow: `gpu_operator deploy_from_operatorhub`.
        name: String,
        /// The exact command to repeat it, secrets left out, one argument each.
        command: Vec<String>,
        /// This program's version.
        version: String,
        /// The run directory this run resumes, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumes: Option<String>,
        /// `rehearsal`, with scenario, faults and seed, when the cluster is simulated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rehearsal: Option<String>,
    },
    /// The cluster that is talked to.
    Cluster {
        /// URL of the API server.
        server: String,
        /// What the server says of itself.
        version: String,
        /// Where the configuration came from.
        source: String,
    },
    /// The steps, in the order they were planned.
    Planned {
        /// All of them.
        steps: Vec<PlannedStep>,
    },
    /// A step was added on the way.
    Added {
        /// It.
        step: PlannedStep,
    },
    /// A step's needs are met and it runs.
    Started {
        /// Its id.
        step: String,
        /// 1, or more when it is tried again.
        attempt: u32,
    },
    /// A step waits, and says why. Sent when the reason changes.
    Pending {
        /// Its id.
        step: String,
        /// Why.
        why: Why,
    },
    /// Something worth a line: what was chosen and from what, a passing trouble.
    Note {
        /// The step it belongs to; `None` for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// One line.
        text: String,
    },
    /// A warning, kept as a file for readers of the artifacts.
    Warning {
        /// The step it belongs to; `None` for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// Stable name, used as file name.
        name: String,
        /// One line.
        text: String,
    },
    /// A step ended.
    Ended {
        /// Its id.
        step: String,
        /// How.
        #[serde(flatten)]
        ended: Ended,
    },
    /// Something of the cluster was made or changed by this run.
    Made {
        /// The step that did it.
        step: String,
        /// The object, with its uid.
        object: ObjectRef,
    },
    /// A version that was asked for or found: operator, commit, image digest.
    Version {
        /// `gpu-operator`, `csv`, `operator image`, …
        what: String,
        /// What was asked for, if anything was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<String>,
        /// What was found, if anything was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<String>,
    },
    /// A signal, or the run's own deadline, asks the run to stop.
    Interrupted {
        /// `SIGINT`, `SIGTERM`, `run deadline`.
        by: String,
    },
    /// What is still on the cluster after a failure or an undo.
    Leftover {
        /// The object.
        object: ObjectRef,
    },
    /// API requests made, by verb, and watch events received. Sent once, at the end.
    Traffic {
        /// Requests by verb.
        requests: std::collections::BTreeMap<String, u64>,
        /// Watch events.
        watch_events: u64,
    },
    /// The least time the scenario's own causes allow. Rehearsal only.
    Floor {
        /// Seconds.
        seconds: f64,
    },
    /// The run ended.
    RunEnded {
        /// The exit code's meaning.
        exit: Exit,
        /// The failure that decided it, when not done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
    },
}

/// Somebody who wants to know: the run directory, the terminal.
pub trait Reporter: Send + Sync {
    /// Takes one event. Must not block for long and must not fail the run.
    fn event(&self, event: &Stamped);
}
