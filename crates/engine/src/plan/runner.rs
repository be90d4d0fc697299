//! Runs a plan: every step the moment its needs are done, in one task, so that the same seed gives the same order.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::context::Shared;
use super::needs::{StepIndex, Values};
use super::{AnyValue, Guard, Plan, Report, Step, StepCx, StepSpec, show_duration};
use crate::clock::Clock;
use crate::event::{Ended, Event, PlannedStep, Reporter, Role};
use crate::journal::{NoRecords, Records};
use crate::why::{Cause, Exit, FailureVerdict, ObjectRef, Why};

/// How long a diagnosis may take once a step has failed.
const DIAGNOSIS_LIMIT: Duration = Duration::from_secs(30);

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
    stop: CancellationToken,
    hurry: CancellationToken,
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
        self.stop.cancel();
    }

    /// Also gives up the finalizers.
    pub fn hurry(&self) {
        self.hurry.cancel();
    }

    fn asked(&self) -> Option<(String, Exit)> {
        if self.stop.is_cancelled() {
            self.by
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        } else {
            None
        }
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

/// Causes that come from the runner itself.
#[derive(Clone, Debug)]
enum RunCause {
    Panicked(String),
    StillRunning(Duration),
    SameId(String),
}

impl Cause for RunCause {
    fn code(&self) -> &'static str {
        match self {
            RunCause::Panicked(_) => "panic",
            RunCause::StillRunning(_) => "still-running",
            RunCause::SameId(_) => "same-step-id",
        }
    }
    fn text(&self) -> String {
        match self {
            RunCause::Panicked(message) => format!("stopped by a bug of this program: {message}"),
            RunCause::StillRunning(limit) => {
                format!("was still running after {}", show_duration(*limit))
            }
            RunCause::SameId(id) => format!("two steps are called `{id}`"),
        }
    }
    fn next(&self) -> String {
        match self {
            RunCause::StillRunning(_) => {
                "give it more time with --deadline STEP=DURATION, or see the log with -v".to_owned()
            }
            RunCause::Panicked(_) | RunCause::SameId(_) => {
                "report it, with the run directory".to_owned()
            }
        }
    }
    fn verdict(&self) -> FailureVerdict {
        match self {
            RunCause::StillRunning(_) => FailureVerdict::Infrastructure,
            RunCause::Panicked(_) | RunCause::SameId(_) => FailureVerdict::Tool,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            RunCause::StillRunning(_) => Exit::TimedOut,
            RunCause::Panicked(_) | RunCause::SameId(_) => Exit::Bug,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    /// Finished well; its value may still be absent when it was skipped by a guard.
    Met,
    Skipped,
    NotMet,
}

/// Runs one step's code: announces it, holds it to its deadline, asks for a diagnosis when it fails, records its end.
pub(super) async fn drive<T>(
    cx: &StepCx,
    spec: &StepSpec,
    future: impl Future<Output = Result<Step<T>, Why>>,
) -> Result<Step<T>, Why> {
    if !spec.is_hidden() {
        cx.shared.send(Event::Started {
            step: spec.id().to_owned(),
            attempt: 1,
        });
    }
    let limit = spec.time_limit();
    let guarded = AssertUnwindSafe(future).catch_unwind();
    let result = tokio::select! {
        biased;
        done = guarded => done.unwrap_or_else(|panic| {
            Err(Why::new(ObjectRef::thing("step", spec.id()), &RunCause::Panicked(panic_text(&*panic))))
        }),
        () = cx.shared.clock.sleep(limit) => Err(match cx.last_pending() {
            Some(why) => why.timed_out(limit),
            None => Why::new(ObjectRef::thing("step", spec.id()), &RunCause::StillRunning(limit)),
        }),
    };
    let result = match result {
        Err(mut why) => {
            if let Some(diagnosis) = cx.take_diagnosis() {
                let found = AssertUnwindSafe(diagnosis()).catch_unwind();
                tokio::select! {
                    biased;
                    found = found => why.evidence.extend(found.unwrap_or_default()),
                    () = cx.shared.clock.sleep(DIAGNOSIS_LIMIT) => {}
                }
            }
            Err(why)
        }
        done => done,
    };
    if !spec.is_hidden() {
        let ended = match &result {
            Ok(Step::Changed(_, what)) => Ended::Changed { what: what.clone() },
            Ok(Step::AlreadySo(_, what)) => Ended::AlreadySo { what: what.clone() },
            Ok(Step::Skipped(_, reason)) => Ended::Skipped {
                reason: reason.clone(),
            },
            Err(why) => Ended::Failed { why: why.clone() },
        };
        cx.shared.send(Event::Ended {
            step: spec.id().to_owned(),
            ended,
        });
    }
    result
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

struct Runner {
    plan: Plan,
    shared: Arc<Shared>,
    interrupt: Interrupt,
    hold_at: Option<String>,
    phases: Vec<Phase>,
    values: Values,
    results: Vec<StepResult>,
    first_failure: Option<Why>,
}

/// Runs a plan to its end. Sends every event but `RunStarted` and `RunEnded`, which frame it and belong to the caller.
pub async fn run(plan: Plan, options: RunOptions) -> Outcome {
    let (mut runner, limits) = Runner::new(plan, options, false);
    runner.shared.send(Event::Planned {
        steps: runner.plan.planned(),
    });
    if let Some(why) = runner.same_id() {
        return Outcome {
            exit: why.exit,
            why: Some(why),
            steps: Vec::new(),
            report: None,
        };
    }
    runner.main_steps(&limits).await;
    if let Some((by, _)) = runner.interrupt.asked() {
        runner.shared.send(Event::Interrupted { by });
    }
    runner.finalizers(&limits).await;
    runner.outcome()
}

/// Says what a plan would do on this cluster: runs what only asks, and the changes as dry runs.
pub async fn preview(plan: Plan, options: RunOptions) -> Vec<Preview> {
    let (mut runner, _) = Runner::new(plan, options, true);
    runner.preview_steps().await
}

struct Limits {
    run_deadline: Option<Duration>,
    fail_fast: bool,
    grace: Duration,
}

impl Runner {
    fn new(mut plan: Plan, options: RunOptions, dry: bool) -> (Self, Limits) {
        for step in &mut plan.steps {
            step.spec.override_deadline(&options.deadlines);
        }
        let shared = Shared {
            clock: options.clock,
            records: options.records,
            reporters: options.reporters,
            dry,
            deadlines: options.deadlines,
        };
        let count = plan.steps.len();
        let runner = Self {
            plan,
            shared: Arc::new(shared),
            interrupt: options.interrupt,
            hold_at: options.hold_at,
            phases: vec![Phase::Waiting; count],
            values: Values((0..count).map(|_| None).collect()),
            results: Vec::new(),
            first_failure: None,
        };
        (
            runner,
            Limits {
                run_deadline: options.run_deadline,
                fail_fast: options.fail_fast,
                grace: options.grace,
            },
        )
    }

    fn same_id(&self) -> Option<Why> {
        let mut seen = std::collections::BTreeSet::new();
        let twice = self
            .plan
            .steps
            .iter()
            .map(|step| step.spec.id())
            .find(|id| !seen.insert(*id))?;
        Some(Why::new(
            ObjectRef::thing("plan", self.plan.name()),
            &RunCause::SameId(twice.to_owned()),
        ))
    }

    async fn main_steps(&mut self, limits: &Limits) {
        let stop = self.interrupt.stop.clone();
        let clock = self.shared.clock.clone();
        let deadline = async {
            match limits.run_deadline {
                Some(limit) => clock.sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(deadline);
        let mut running = FuturesUnordered::new();
        loop {
            while let Some(index) = self.next_ready() {
                if let Some(future) = self.start(index, &stop) {
                    running.push(future.map(move |result| (index, result)));
                }
            }
            if running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some((index, result)) = running.next() => {
                    let failed = self.finish(index, result);
                    if failed && limits.fail_fast {
                        break;
                    }
                }
                () = &mut deadline => {
                    self.interrupt.stop("run deadline", Exit::TimedOut);
                    break;
                }
            }
        }
        drop(running);
        self.close(if stop.is_cancelled() {
            "the run was stopped"
        } else {
            "an earlier step failed"
        });
    }

    /// The first step in plan order that can be started; steps that cannot run any more are closed on the way.
    fn next_ready(&mut self) -> Option<StepIndex> {
        loop {
            let mut progressed = false;
            for at in 0..self.plan.steps.len() {
                if self.phases[at] != Phase::Waiting
                    || self.plan.steps[at].spec.role() == Role::Finalizer
                {
                    continue;
                }
                match self.readiness(at) {
                    Readiness::Ready => return Some(StepIndex(at)),
                    Readiness::NotYet => {}
                    Readiness::Skip(reason) => {
                        self.end(at, Phase::Skipped, Ended::Skipped { reason });
                        progressed = true;
                    }
                    Readiness::Never(reason) => {
                        self.end(at, Phase::NotMet, Ended::NotRun { reason });
                        progressed = true;
                    }
                }
            }
            if !progressed {
                return None;
            }
        }
    }

    fn readiness(&self, at: usize) -> Readiness {
        let step = &self.plan.steps[at];
        for guard in &step.guards {
            match self.phases[guard.0] {
                Phase::Waiting | Phase::Running => return Readiness::NotYet,
                Phase::NotMet => return Readiness::Never(self.needs_failed(*guard)),
                Phase::Skipped => return Readiness::Skip("not needed".to_owned()),
                Phase::Met => {}
            }
            if let Some(Guard::NotNeeded(reason)) = self.values.get::<Guard>(*guard).as_deref() {
                return Readiness::Skip(reason.clone());
            }
        }
        let mut not_yet = false;
        for need in &step.needs {
            match self.phases[need.0] {
                Phase::Waiting | Phase::Running => not_yet = true,
                Phase::NotMet => return Readiness::Never(self.needs_failed(*need)),
                Phase::Met | Phase::Skipped => {}
            }
        }
        if not_yet {
            Readiness::NotYet
        } else {
            Readiness::Ready
        }
    }

    fn needs_failed(&self, need: StepIndex) -> String {
        format!(
            "needs {}, which did not succeed",
            self.plan.steps[need.0].spec.id()
        )
    }

    fn start(
        &mut self,
        index: StepIndex,
        stop: &CancellationToken,
    ) -> Option<impl Future<Output = Result<Step<AnyValue>, Why>> + use<>> {
        let at = index.0;
        let spec = self.plan.steps[at].spec.clone();
        let cx = StepCx::new(self.shared.clone(), spec.id(), stop.clone());
        let body = self.plan.steps[at].body.take()?;
        let Some(future) = body(cx.clone(), &self.values) else {
            self.end(
                at,
                Phase::Skipped,
                Ended::Skipped {
                    reason: "what it needs was skipped".to_owned(),
                },
            );
            return None;
        };
        self.phases[at] = Phase::Running;
        let held = self.hold_at.as_deref() == Some(spec.id());
        Some(async move {
            if held {
                cx.note("held here until the run is asked to stop");
                std::future::pending::<()>().await;
            }
            drive(&cx, &spec, future).await
        })
    }

    /// Takes a finished step's result; true when it failed.
    fn finish(&mut self, index: StepIndex, result: Result<Step<AnyValue>, Why>) -> bool {
        let at = index.0;
        let (phase, ended) = match result {
            Ok(Step::Changed(value, what)) => {
                self.values.0[at] = Some(value);
                (Phase::Met, Ended::Changed { what })
            }
            Ok(Step::AlreadySo(value, what)) => {
                self.values.0[at] = Some(value);
                (Phase::Met, Ended::AlreadySo { what })
            }
            Ok(Step::Skipped(value, reason)) => {
                self.values.0[at] = Some(value);
                (Phase::Met, Ended::Skipped { reason })
            }
            Err(why) => {
                if self.first_failure.is_none()
                    && self.plan.steps[at].spec.role() != Role::Finalizer
                {
                    self.first_failure = Some(why.clone());
                }
                (Phase::NotMet, Ended::Failed { why })
            }
        };
        let failed = phase == Phase::NotMet;
        self.phases[at] = phase;
        self.result(at, ended);
        failed
    }

    /// Closes a step that never ran, or was running when the run stopped.
    fn end(&mut self, at: usize, phase: Phase, ended: Ended) {
        self.phases[at] = phase;
        if !self.plan.steps[at].spec.is_hidden() {
            let step = self.plan.steps[at].spec.id().to_owned();
            self.shared.send(Event::Ended {
                step,
                ended: ended.clone(),
            });
        }
        self.result(at, ended);
    }

    fn result(&mut self, at: usize, ended: Ended) {
        let spec = &self.plan.steps[at].spec;
        if !spec.is_hidden() {
            self.results.push(StepResult {
                id: spec.id().to_owned(),
                ended,
            });
        }
    }

    fn close(&mut self, reason: &str) {
        for at in 0..self.plan.steps.len() {
            if self.plan.steps[at].spec.role() == Role::Finalizer {
                continue;
            }
            match self.phases[at] {
                Phase::Running => self.end(at, Phase::NotMet, Ended::Stopped),
                Phase::Waiting => self.end(
                    at,
                    Phase::NotMet,
                    Ended::NotRun {
                        reason: reason.to_owned(),
                    },
                ),
                Phase::Met | Phase::Skipped | Phase::NotMet => {}
            }
        }
    }

    async fn finalizers(&mut self, limits: &Limits) {
        let hurry = self.interrupt.hurry.clone();
        let stopped = self.interrupt.asked().is_some();
        let mut running = FuturesUnordered::new();
        for at in 0..self.plan.steps.len() {
            if self.plan.steps[at].spec.role() == Role::Finalizer
                && let Some(future) = self.start(StepIndex(at), &hurry)
            {
                running.push(future.map(move |result| (StepIndex(at), result)));
            }
        }
        let clock = self.shared.clock.clone();
        let interrupt = self.interrupt.clone();
        let out_of_time = async {
            if !stopped {
                // A signal that comes while finalizers run starts the grace time then.
                interrupt.stop.cancelled().await;
            }
            clock.sleep(limits.grace).await;
        };
        tokio::pin!(out_of_time);
        loop {
            tokio::select! {
                biased;
                () = hurry.cancelled() => break,
                done = running.next() => match done {
                    Some((index, result)) => { self.finish(index, result); }
                    None => break,
                },
                () = &mut out_of_time => break,
            }
        }
        drop(running);
        for at in 0..self.plan.steps.len() {
            if self.phases[at] == Phase::Running {
                self.end(at, Phase::NotMet, Ended::Stopped);
            }
        }
    }

    fn outcome(self) -> Outcome {
        let (exit, why) = match (self.interrupt.asked(), self.first_failure) {
            (Some((_, exit)), why) => (exit, why),
            (None, Some(why)) => (why.exit, Some(why)),
            (None, None) => {
                let clean_up = self.results.iter().find_map(|result| match &result.ended {
                    Ended::Failed { why } if why.exit == Exit::CleanUp => Some(why.clone()),
                    _ => None,
                });
                (
                    clean_up.as_ref().map_or(Exit::Done, |why| why.exit),
                    clean_up,
                )
            }
        };
        let report = self
            .plan
            .output
            .as_ref()
            .and_then(|(index, render)| self.values.0[index.0].as_ref().and_then(render));
        Outcome {
            exit,
            why,
            steps: self.results,
            report,
        }
    }

    async fn preview_steps(&mut self) -> Vec<Preview> {
        let planned: BTreeMap<String, PlannedStep> = self
            .plan
            .planned()
            .into_iter()
            .map(|step| (step.id.clone(), step))
            .collect();
        let never = CancellationToken::new();
        let mut previews = Vec::new();
        for at in 0..self.plan.steps.len() {
            let spec = self.plan.steps[at].spec.clone();
            let step = planned.get(spec.id()).cloned();
            let mut preview = step.map(|step| Preview {
                step,
                would: Vec::new(),
                note: String::new(),
                why: None,
            });
            let unknown = self.unknown_need(at);
            match (spec.role(), self.readiness(at)) {
                (_, Readiness::Skip(reason)) => {
                    self.phases[at] = Phase::Skipped;
                    note(&mut preview, format!("skipped: {reason}"));
                }
                (Role::Ask | Role::Change, Readiness::Ready) if unknown.is_none() => {
                    let cx = StepCx::new(self.shared.clone(), spec.id(), never.clone());
                    let body = self.plan.steps[at].body.take();
                    let Some(future) = body.and_then(|body| body(cx.clone(), &self.values)) else {
                        self.phases[at] = Phase::Skipped;
                        continue;
                    };
                    let limited = tokio::time::timeout(spec.time_limit(), future).await;
                    let result = limited.unwrap_or_else(|_| {
                        let cause = RunCause::StillRunning(spec.time_limit());
                        Err(Why::new(ObjectRef::thing("step", spec.id()), &cause))
                    });
                    let would = cx.take_would();
                    match result {
                        Ok(
                            Step::Changed(value, what)
                            | Step::AlreadySo(value, what)
                            | Step::Skipped(value, what),
                        ) => {
                            self.values.0[at] = Some(value);
                            self.phases[at] = Phase::Met;
                            note(&mut preview, what);
                        }
                        Err(why) => {
                            self.phases[at] = Phase::NotMet;
                            note(&mut preview, format!("would fail: {why}"));
                            if let Some(preview) = &mut preview {
                                preview.why = Some(why);
                            }
                        }
                    }
                    if let Some(preview) = &mut preview {
                        preview.would = would;
                    }
                }
                (Role::Wait, _) => {
                    self.phases[at] = Phase::Met;
                    note(&mut preview, "waits".to_owned());
                }
                (Role::Finalizer, _) => note(
                    &mut preview,
                    "runs at the end, whatever happened".to_owned(),
                ),
                (_, Readiness::Never(reason)) => {
                    self.phases[at] = Phase::NotMet;
                    note(&mut preview, format!("would not run: {reason}"));
                }
                (_, _) => {
                    self.phases[at] = Phase::Met;
                    let from = unknown.unwrap_or_else(|| "what comes before it".to_owned());
                    note(&mut preview, format!("decided from {from}"));
                }
            }
            previews.extend(preview);
        }
        previews
    }

    /// The need whose value is not known without running the plan.
    fn unknown_need(&self, at: usize) -> Option<String> {
        let step = &self.plan.steps[at];
        step.needs
            .iter()
            .find(|need| self.phases[need.0] == Phase::Met && self.values.0[need.0].is_none())
            .map(|need| self.plan.steps[need.0].spec.id().to_owned())
    }
}

fn note(preview: &mut Option<Preview>, text: String) {
    if let Some(preview) = preview {
        preview.note = text;
    }
}

enum Readiness {
    Ready,
    NotYet,
    Skip(String),
    Never(String),
}
