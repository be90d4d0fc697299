//! How a run is done, how it is asked to stop, and how it ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::event::{Ended, PlannedStep, Reporter};
use crate::journal::{NoRecords, Records};
use crate::plan::Report;
use crate::why::{Exit, Why};

/// How a run is done.
pub struct RunOptions {
    /// Time.
    pub clock: Clock,
    /// Where events, decisions and files are kept.
    pub records: Arc<dyn Records>,
    /// Who else is told: the terminal, the CI.
    pub reporters: Vec<Arc<dyn Reporter>>,
    /// Deadlines by step id or wait name, over the plan's own.
    pub deadlines: BTreeMap<String, Duration>,
    /// The run's own deadline.
    pub run_deadline: Option<Duration>,
    /// Stop at the first failure instead of letting independent branches go on.
    pub fail_fast: bool,
    /// How long finalizers may take once the run was asked to stop.
    pub grace: Duration,
    /// Hold before this step until the run is asked to stop: for trying out interruptions.
    pub hold_at: Option<String>,
    /// How the run is asked to stop.
    pub interrupt: Interrupt,
}

impl RunOptions {
    /// Nothing kept, nobody told, no limits but the plan's own.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            records: Arc::new(NoRecords),
            reporters: Vec::new(),
            deadlines: BTreeMap::new(),
            run_deadline: None,
            fail_fast: false,
            grace: Duration::from_secs(15),
            hold_at: None,
            interrupt: Interrupt::default(),
        }
    }
}

/// Asks a run to stop: gently once, then for good.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    pub(super) stop: CancellationToken,
    pub(super) signalled: CancellationToken,
    pub(super) hurry: CancellationToken,
    by: Arc<Mutex<Option<(String, Exit)>>>,
}

impl Interrupt {
    /// Stops starting steps, ends running ones, runs finalizers within the grace time. `by` is shown; `exit` is how the
    /// run ends.
    pub fn stop(&self, by: &str, exit: Exit) {
        let mut first = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = Some((by.to_owned(), exit));
        }
        if exit != Exit::TimedOut {
            self.signalled.cancel();
        }
        self.stop.cancel();
    }

    /// Whether a signal asked, and not the run's own deadline.
    pub(super) fn by_signal(&self) -> bool {
        self.signalled.is_cancelled()
    }

    /// Also gives up the finalizers.
    pub fn hurry(&self) {
        self.hurry.cancel();
    }

    pub(super) fn asked(&self) -> Option<(String, Exit)> {
        if self.stop.is_cancelled() { self.by.lock().unwrap_or_else(PoisonError::into_inner).clone() } else { None }
    }
}

/// How one step ended.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// Its id.
    pub id: String,
    /// How.
    pub ended: Ended,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code's meaning.
    pub exit: Exit,
    /// The failure that decided it.
    pub why: Option<Why>,
    /// Every step, finalizers last.
    pub steps: Vec<StepResult>,
    /// What the verb answers, when it got that far.
    pub report: Option<Report>,
}

/// What a plan would do on this cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The step.
    pub step: PlannedStep,
    /// What it would do, in words; empty when nothing.
    pub would: Vec<String>,
    /// What it found, why it would fail, or what it will be decided from.
    pub note: String,
    /// The failure it would end with, known beforehand.
    pub why: Option<Why>,
}
