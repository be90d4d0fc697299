//! `summary.json`: what a run was, did and found, for programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::critical;
use super::record::{ClusterSeen, Record, StepRecord, StepState, VersionSeen, round};
use super::text::shell_words;
use crate::why::{Exit, FailureVerdict, ObjectRef, Why};

/// Which version of this file it is.
pub const SCHEMA: &str = "tbx-summary/1";

/// How a run stands or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunResult {
    /// Not ended yet, or killed before it could say so.
    Running,
    /// Everything asked for holds.
    Passed,
    /// What is tested, or what it stands on, failed or took too long.
    Failed,
    /// Nothing had to be done, on purpose.
    Skipped,
    /// Stopped by a signal.
    Interrupted,
    /// Could not be done: wrong usage or configuration, no access, or a bug of this program.
    Error,
}

/// The content of `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Which version of this file it is.
    pub schema: String,
    /// The command that repeats the run, quoted for a shell.
    pub command: String,
    /// The program's version.
    pub version: String,
    /// How it stands or ended.
    pub result: RunResult,
    /// The process's exit code; null while it runs.
    pub exit_code: Option<u8>,
    /// Whose fault it is, when not passed.
    pub verdict: Option<FailureVerdict>,
    /// The failure that decided the result.
    pub why: Option<Why>,
    /// When it started.
    #[schemars(with = "Option<String>")]
    pub started: Option<jiff::Timestamp>,
    /// When it ended; null while it runs.
    #[schemars(with = "Option<String>")]
    pub finished: Option<jiff::Timestamp>,
    /// Seconds it took; while it runs, until its last sign of life.
    pub makespan_s: f64,
    /// Seconds on the critical path.
    pub critical_path_s: f64,
    /// The steps that decided how long it took, first to last.
    pub critical_path: Vec<String>,
    /// Rehearsal only: the least time the scenario's own causes allow.
    pub floor_s: Option<f64>,
    /// Every step.
    pub steps: Vec<StepSummary>,
    /// API requests by verb.
    pub requests: BTreeMap<String, u64>,
    /// Watch events received.
    pub watch_events: u64,
    /// The cluster that was talked to.
    pub cluster: Option<ClusterSeen>,
    /// Versions asked for and found.
    pub versions: Vec<VersionSeen>,
    /// What is still on the cluster because of this run, when it did not pass.
    pub leftovers: Vec<ObjectRef>,
    /// The run directory that this run resumes.
    pub resumes: Option<String>,
    /// Scenario, faults and seed, when the cluster is simulated.
    pub rehearsal: Option<String>,
}

/// One step in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSummary {
    /// Its id.
    pub id: String,
    /// A title a person understands.
    pub title: String,
    /// The ids of the steps it needs.
    pub needs: Vec<String>,
    /// How far it is.
    pub state: StepState,
    /// When it started, in seconds since the run did.
    pub start_s: Option<f64>,
    /// When it ended.
    pub end_s: Option<f64>,
    /// Seconds it may take.
    pub deadline_s: f64,
    /// How often it was started.
    pub attempts: u32,
    /// How it ended, in words.
    pub what: String,
    /// Why it failed; while it runs, why it waits.
    pub why: Option<Why>,
}

impl Record {
    /// The content of `summary.json`.
    pub fn summary(&self) -> Summary {
        let (critical_path, critical_path_s) = critical::path(self);
        let result = self.result();
        Summary {
            schema: SCHEMA.to_owned(),
            command: shell_words(&self.command),
            version: self.version.clone(),
            result,
            exit_code: self.exit.map(Exit::code),
            verdict: self.why.as_ref().filter(|_| result != RunResult::Passed).map(|why| why.verdict),
            why: self.why.clone(),
            started: self.started,
            finished: self.finished,
            makespan_s: round(self.last_s),
            critical_path_s,
            critical_path,
            floor_s: self.floor_s,
            steps: self.steps.iter().map(StepRecord::summary).collect(),
            requests: self.requests.clone(),
            watch_events: self.watch_events,
            cluster: self.cluster.clone(),
            versions: self.versions.clone(),
            leftovers: self.leftovers(),
            resumes: self.resumes.clone(),
            rehearsal: self.rehearsal.clone(),
        }
    }

    /// How it stands or ended.
    pub fn result(&self) -> RunResult {
        match self.exit {
            // From the signal on it is true, whatever becomes of the process.
            None if self.interrupted.as_deref().is_some_and(|by| by.starts_with("SIG")) => RunResult::Interrupted,
            None => RunResult::Running,
            Some(Exit::Done) if self.nothing_done() => RunResult::Skipped,
            Some(Exit::Done) => RunResult::Passed,
            Some(Exit::Failed | Exit::TimedOut | Exit::CleanUp) => RunResult::Failed,
            Some(Exit::Interrupted | Exit::Terminated) => RunResult::Interrupted,
            Some(Exit::Usage | Exit::Configuration | Exit::Access | Exit::Bug) => RunResult::Error,
        }
    }

    fn nothing_done(&self) -> bool {
        let mut steps = self.steps.iter().filter(|step| !step.is_finalizer()).peekable();
        steps.peek().is_some() && steps.all(|step| step.state == StepState::Skipped)
    }
}

impl StepRecord {
    fn summary(&self) -> StepSummary {
        StepSummary {
            id: self.planned.id.clone(),
            title: self.planned.title.clone(),
            needs: self.planned.needs.clone(),
            state: self.state,
            start_s: self.start_s,
            end_s: self.end_s,
            deadline_s: self.planned.deadline_s,
            attempts: self.attempts,
            what: self.what.clone(),
            why: self.why.clone(),
        }
    }
}

/// The JSON schema of `summary.json`.
pub fn summary_schema() -> serde_json::Value {
    schemars::schema_for!(Summary).to_value()
}
