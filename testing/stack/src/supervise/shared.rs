//! What every part of the supervisor knows.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::parts::Parts;
use crate::build::Built;
use crate::control::{Fault, Phase, Status};
use crate::state::Dir;

/// The faults that are set at the moment.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<Vec<Fault>>>);

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&self) -> Vec<Fault> {
        self.lock().clone()
    }

    pub(crate) fn set(&self, fault: Fault) {
        let mut faults = self.lock();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    pub(crate) fn clear(&self, fault: &Fault) {
        self.lock().retain(|other| other != fault);
    }
}

/// How far the start is, and how long each piece of it took.
type Progress = (Phase, Vec<(String, f64)>);

/// Handed to every part of the supervisor.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) dir: Dir,
    pub(crate) built: Built,
    pub(crate) parts: Parts,
    pub(crate) faults: Faults,
    progress: Arc<Mutex<Progress>>,
}

impl Shared {
    pub(super) fn new(dir: Dir, built: Built) -> Self {
        Self {
            parts: Parts::new(dir.logs(), dir.join("roots")),
            dir,
            built,
            faults: Faults::default(),
            progress: Arc::new(Mutex::new((Phase::Starting("the supervisor".into()), Vec::new()))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        self.lock().0 = phase;
    }

    pub(super) fn status(&self) -> Status {
        let (phase, timings) = self.lock().clone();
        Status { phase, timings, parts: self.parts.status(), faults: self.faults.all() }
    }

    /// One named piece of the start, measured.
    pub(super) async fn step<T>(&self, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let started = Instant::now();
        self.set_phase(Phase::Starting(what.to_owned()));
        let result = work.await?;
        self.lock().1.push((what.to_owned(), started.elapsed().as_secs_f64()));
        Ok(result)
    }
}

/// A line in the supervisor's own log.
pub(crate) fn say(text: &str) {
    // Nobody is left to tell when this fails.
    let _ = writeln!(std::io::stderr(), "{} {text}", jiff::Timestamp::now().strftime("%H:%M:%S.%3f"));
}

/// Looks again and again until `look` finds something; gives up with the name of what is missing and the last error.
pub(crate) async fn until<T>(what: &str, patience: Duration, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        let last = match look().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => String::from("not there yet"),
            Err(error) => format!("{error:#}"),
        };
        if started.elapsed() > patience {
            bail!("waited {} s for {what}: {last}", patience.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
