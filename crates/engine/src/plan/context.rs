//! What a running step can do besides its own work: wait with a reason, decide for good, leave files, add steps.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::watch;
use futures::future::{join_all, select_all};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::runner::drive;
use super::{Step, StepSpec};
use crate::clock::Clock;
use crate::event::{Event, Reporter, Stamped};
use crate::journal::{Entry, Records};
use crate::verdict::Verdict;
use crate::why::{Evidence, ObjectRef, Why};

type Diagnosis = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = Vec<Evidence>> + Send>> + Send>;

/// What all steps of a run share.
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) records: Arc<dyn Records>,
    pub(super) reporters: Vec<Arc<dyn Reporter>>,
    pub(super) dry: bool,
    pub(super) deadlines: std::collections::BTreeMap<String, Duration>,
}

impl Shared {
    pub(super) fn send(&self, event: Event) {
        let stamped = Stamped { at: self.clock.now(), t: millis(self.clock.elapsed()), event };
        self.records.event(&stamped);
        for reporter in &self.reporters {
            reporter.event(&stamped);
        }
    }
}

/// Seconds, to the millisecond, so that files stay readable.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Handed to every step.
#[derive(Clone)]
pub struct StepCx {
    pub(super) shared: Arc<Shared>,
    step: Arc<StepState>,
}

struct StepState {
    id: String,
    stop: CancellationToken,
    pending: Mutex<Option<Why>>,
    diagnosis: Mutex<Option<Diagnosis>>,
    would: Mutex<Vec<String>>,
}

impl fmt::Debug for StepCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCx").field("step", &self.step.id).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StepCx {
    pub(super) fn new(shared: Arc<Shared>, id: &str, stop: CancellationToken) -> Self {
        let step = StepState {
            id: id.to_owned(),
            stop,
            pending: Mutex::default(),
            diagnosis: Mutex::default(),
            would: Mutex::default(),
        };
        Self { shared, step: Arc::new(step) }
    }

    /// The step's id.
    pub fn id(&self) -> &str {
        &self.step.id
    }

    /// The run's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Whether this is `--plan`: changes must be dry runs, reported with [`StepCx::would`].
    pub fn dry(&self) -> bool {
        self.shared.dry
    }

    /// Cancelled when the run is asked to stop; for work that has to be ended by hand.
    pub fn stop(&self) -> &CancellationToken {
        &self.step.stop
    }

    /// Says in one line what was chosen and from what, or that something passing went wrong.
    pub fn note(&self, text: impl Into<String>) {
        self.shared.send(Event::Note { step: Some(self.step.id.clone()), text: text.into() });
    }

    /// Warns; the text is kept as a file for readers of the artifacts. `name` is stable and short.
    pub fn warn(&self, name: &str, text: impl Into<String>) {
        self.shared.send(Event::Warning { step: Some(self.step.id.clone()), name: name.to_owned(), text: text.into() });
    }

    /// Records a version that was asked for or found.
    pub fn version(&self, what: &str, asked: Option<&str>, found: Option<&str>) {
        self.shared.send(Event::Version {
            what: what.to_owned(),
            asked: asked.map(str::to_owned),
            found: found.map(str::to_owned),
        });
    }

    /// Says why the step waits. Repeating the same reason is free.
    pub fn pending(&self, why: Why) {
        let mut last = lock(&self.step.pending);
        if last.as_ref() != Some(&why) {
            self.shared.send(Event::Pending { step: self.step.id.clone(), why: why.clone() });
            *last = Some(why);
        }
    }

    /// The reason the step last gave for waiting.
    pub(super) fn last_pending(&self) -> Option<Why> {
        lock(&self.step.pending).clone()
    }

    /// What to look at when the step fails or reaches its deadline: it is run once, with its own time limit, and what
    /// it finds becomes evidence.
    pub fn diagnose_with<F, R>(&self, diagnosis: F)
    where
        F: FnOnce() -> R + Send + 'static,
        R: Future<Output = Vec<Evidence>> + Send + 'static,
    {
        *lock(&self.step.diagnosis) = Some(Box::new(move || Box::pin(diagnosis())));
    }

    pub(super) fn take_diagnosis(&self) -> Option<Diagnosis> {
        lock(&self.step.diagnosis).take()
    }

    /// In a dry run: what would be done.
    pub fn would(&self, what: impl Into<String>) {
        lock(&self.step.would).push(what.into());
    }

    pub(super) fn take_would(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.step.would))
    }

    /// Watches until `condition` is done or failed; evaluated now and after every change. The deadline is the step's.
    pub async fn wait<T>(&self, mut changes: Changes, mut condition: impl FnMut() -> Verdict<T>) -> Result<T, Why> {
        loop {
            changes.mark_seen();
            match condition() {
                Verdict::Done(value) => return Ok(value),
                Verdict::Failed(why) => return Err(why),
                Verdict::Pending(why) => self.pending(why),
            }
            changes.next(&self.shared.clock).await;
        }
    }

    /// Chooses something once for this run and every run that resumes it.
    pub fn decide<T: Serialize + DeserializeOwned>(&self, key: &str, choose: impl FnOnce() -> T) -> T {
        if let Some(value) = self.shared.records.recall(key).and_then(|value| serde_json::from_value(value).ok()) {
            return value;
        }
        let chosen = choose();
        if let Ok(value) = serde_json::to_value(&chosen) {
            self.shared.records.journal(&Entry::Decided { key: key.to_owned(), value });
        }
        chosen
    }

    /// What an earlier part of this run, or the run it resumes, chose.
    pub fn decided<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.shared.records.recall(key).and_then(|value| serde_json::from_value(value).ok())
    }

    /// About to create an object: written down first, so that a lost answer is not a lost object.
    pub fn making(&self, object: &ObjectRef) {
        self.shared.records.journal(&Entry::Making { step: self.step.id.clone(), object: object.clone() });
    }

    /// Created an object. The reference must carry its uid.
    pub fn made(&self, object: &ObjectRef) {
        self.shared.records.journal(&Entry::Made { step: self.step.id.clone(), object: object.clone() });
        self.shared.send(Event::Made { step: self.step.id.clone(), object: object.clone() });
    }

    /// Changed an object that was there before; `undo` is the merge patch that takes it back.
    pub fn changed(&self, object: &ObjectRef, undo: serde_json::Value) {
        self.shared.records.journal(&Entry::Changed { step: self.step.id.clone(), object: object.clone(), undo });
    }

    /// Deleted an object.
    pub fn deleted(&self, object: &ObjectRef) {
        self.shared.records.journal(&Entry::Deleted { object: object.clone() });
    }

    /// Says that an object is still on the cluster.
    pub fn leftover(&self, object: &ObjectRef) {
        self.shared.send(Event::Leftover { object: object.clone() });
    }

    /// Writes a file below the run directory (secrets are taken out): `manifests/nfd-subscription.yaml`.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        if !self.shared.dry {
            self.shared.records.step_file(&self.step.id, path, content.as_ref());
        }
    }

    /// Runs one more step per item, all at the same time, and returns each result in the items' order. The steps are
    /// recorded as `<this step>[<key>]`.
    pub async fn each<I, T, F, R>(&self, items: Vec<(String, I)>, describe: StepSpec, run: F) -> Vec<Result<T, Why>>
    where
        T: Send + 'static,
        F: Fn(StepCx, I) -> R,
        R: Future<Output = Result<Step<T>, Why>> + Send,
    {
        let children = items.into_iter().map(|(key, item)| {
            let id = format!("{}[{key}]", self.step.id);
            let spec = describe.renamed(&id, &key, &self.shared.deadlines);
            let planned = spec.planned(vec![], Some(&self.step.id));
            self.shared.send(Event::Added { step: planned });
            let cx = StepCx::new(self.shared.clone(), &id, self.step.stop.clone());
            let future = run(cx.clone(), item);
            async move {
                match drive(&cx, &spec, future).await {
                    Ok(Step::Changed(value, _) | Step::AlreadySo(value, _) | Step::Skipped(value, _)) => Ok(value),
                    Err(why) => Err(why),
                }
            }
        });
        join_all(children.collect::<Vec<_>>()).await
    }
}

/// What a wait listens to: shared watches, and for conditions with a time in them, a time to look again.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    receivers: Vec<watch::Receiver<u64>>,
    look_again: Option<Duration>,
}

impl Changes {
    /// Listens to a counter that grows with every change.
    pub fn of(receiver: watch::Receiver<u64>) -> Self {
        Self { receivers: vec![receiver], look_again: None }
    }

    /// Listens to both.
    #[must_use]
    pub fn and(mut self, other: Changes) -> Self {
        self.receivers.extend(other.receivers);
        self.look_again = match (self.look_again, other.look_again) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self
    }

    /// Also evaluates the condition after this time without a change, for conditions that have a time in them
    /// ("tolerated for five minutes"). It looks at what is already known and asks nobody.
    #[must_use]
    pub fn or_after(mut self, pause: Duration) -> Self {
        self.look_again = Some(pause);
        self
    }

    fn mark_seen(&mut self) {
        for receiver in &mut self.receivers {
            receiver.borrow_and_update();
        }
    }

    /// Waits for the next change. Waits of steps do so themselves; this is for those who only watch.
    pub async fn next(&mut self, clock: &Clock) {
        // A closed sender (its watch has ended for good) must not turn the wait into a busy loop.
        let changed = self.receivers.iter_mut().map(|receiver| {
            Box::pin(async move {
                if receiver.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        });
        let changed: Vec<_> = changed.collect();
        let any = async { if changed.is_empty() { std::future::pending().await } else { select_all(changed).await.0 } };
        let timer = async {
            match self.look_again {
                Some(pause) => clock.sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { biased; () = any => {}, () = timer => {} }
    }
}
