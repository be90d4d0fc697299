//! Runs a plan: every step the moment its needs are done, in one task, so that the same seed gives the same order.

mod drive;
mod options;
mod preview;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

pub(in crate::plan) use drive::drive;
pub use options::{Interrupt, Outcome, Preview, RunOptions, StepResult};
pub use preview::preview;

use self::drive::RunCause;
use super::context::Shared;
use super::needs::{StepIndex, Values};
use super::{AnyValue, Guard, Plan, Step, StepCx};
use crate::event::{Ended, Event, Role};
use crate::why::{Exit, ObjectRef, Why};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    /// Finished well; its value may still be absent when it was skipped by a guard.
    Met,
    Skipped,
    NotMet,
}

enum Readiness {
    Ready,
    NotYet,
    Skip(String),
    Never(String),
}

struct Runner {
    plan: Plan,
    shared: Arc<Shared>,
    interrupt: Interrupt,
    hold_at: Option<String>,
    phases: Vec<Phase>,
    /// The steps that run now, by their place in the plan.
    running: BTreeMap<usize, StepCx>,
    values: Values,
    results: Vec<StepResult>,
    first_failure: Option<Why>,
}

/// Runs a plan to its end. Sends every event but `RunStarted` and `RunEnded`, which frame it and belong to the caller.
pub async fn run(plan: Plan, options: RunOptions) -> Outcome {
    let (mut runner, limits) = Runner::new(plan, options, false);
    runner.shared.send(Event::Planned { steps: runner.plan.planned() });
    if let Some(why) = runner.same_id() {
        return Outcome { exit: why.exit, why: Some(why), steps: Vec::new(), report: None };
    }
    runner.main_steps(&limits).await;
    if let Some((by, _)) = runner.interrupt.asked() {
        runner.shared.send(Event::Interrupted { by });
    }
    runner.finalizers(&limits).await;
    runner.outcome()
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
            running: BTreeMap::new(),
            values: Values((0..count).map(|_| None).collect()),
            results: Vec::new(),
            first_failure: None,
        };
        (runner, Limits { run_deadline: options.run_deadline, fail_fast: options.fail_fast, grace: options.grace })
    }

    fn same_id(&self) -> Option<Why> {
        let mut seen = std::collections::BTreeSet::new();
        let twice = self.plan.steps.iter().map(|step| step.spec.id()).find(|id| !seen.insert(*id))?;
        Some(Why::new(ObjectRef::thing("plan", self.plan.name()), &RunCause::SameId(twice.to_owned())))
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
                    self.out_of_time(limits.run_deadline.unwrap_or_default());
                    break;
                }
            }
        }
        drop(running);
        self.close(if stop.is_cancelled() { "the run was stopped" } else { "an earlier step failed" });
    }

    /// The run's own deadline has come: the failure is what the first step in the plan that still runs waits for.
    fn out_of_time(&mut self, limit: Duration) {
        let running = self.running.values().find_map(StepCx::last_pending);
        let why = running.unwrap_or_else(|| {
            let steps: Vec<&str> = self.running.values().map(StepCx::id).collect();
            let what = format!("steps still run: {}", steps.join(", "));
            Why::waiting(ObjectRef::thing("run", self.plan.name()), "run-deadline", what)
        });
        let mut why = why.timed_out(limit);
        why.next = format!("give the run more time with --run-deadline, or {}", why.next);
        if self.first_failure.is_none() {
            self.first_failure = Some(why);
        }
        self.interrupt.stop("run deadline", Exit::TimedOut);
    }

    /// The first step in plan order that can be started; steps that cannot run any more are closed on the way.
    fn next_ready(&mut self) -> Option<StepIndex> {
        loop {
            let mut progressed = false;
            for at in 0..self.plan.steps.len() {
                if self.phases[at] != Phase::Waiting || self.plan.steps[at].spec.role() == Role::Finalizer {
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
        if not_yet { Readiness::NotYet } else { Readiness::Ready }
    }

    fn needs_failed(&self, need: StepIndex) -> String {
        format!("needs {}, which did not succeed", self.plan.steps[need.0].spec.id())
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
            self.end(at, Phase::Skipped, Ended::Skipped { reason: "what it needs was skipped".to_owned() });
            return None;
        };
        self.phases[at] = Phase::Running;
        self.running.insert(at, cx.clone());
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
                if self.first_failure.is_none() && self.plan.steps[at].spec.role() != Role::Finalizer {
                    self.first_failure = Some(why.clone());
                }
                (Phase::NotMet, Ended::Failed { why })
            }
        };
        let failed = phase == Phase::NotMet;
        self.running.remove(&at);
        self.phases[at] = phase;
        self.result(at, ended);
        failed
    }

    /// Closes a step that never ran, or was running when the run stopped.
    fn end(&mut self, at: usize, phase: Phase, ended: Ended) {
        self.phases[at] = phase;
        if !self.plan.steps[at].spec.is_hidden() {
            let step = self.plan.steps[at].spec.id().to_owned();
            self.shared.send(Event::Ended { step, ended: ended.clone() });
        }
        self.result(at, ended);
    }

    fn result(&mut self, at: usize, ended: Ended) {
        let spec = &self.plan.steps[at].spec;
        if !spec.is_hidden() {
            self.results.push(StepResult { id: spec.id().to_owned(), ended });
        }
    }

    fn close(&mut self, reason: &str) {
        for at in 0..self.plan.steps.len() {
            if self.plan.steps[at].spec.role() == Role::Finalizer {
                continue;
            }
            match self.phases[at] {
                Phase::Running => self.end(at, Phase::NotMet, Ended::Stopped),
                Phase::Waiting => self.end(at, Phase::NotMet, Ended::NotRun { reason: reason.to_owned() }),
                Phase::Met | Phase::Skipped | Phase::NotMet => {}
            }
        }
    }

    async fn finalizers(&mut self, limits: &Limits) {
        let hurry = self.interrupt.hurry.clone();
        // The grace time is what a signal leaves; the run's own deadline leaves finalizers theirs.
        let stopped = self.interrupt.by_signal();
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
                interrupt.signalled.cancelled().await;
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
            // What failed before the run's own deadline came is what the run ends with.
            (None | Some((_, Exit::TimedOut)), Some(why)) => (why.exit, Some(why)),
            (Some((_, exit)), why) => (exit, why),
            (None, None) => {
                let clean_up = self.results.iter().find_map(|result| match &result.ended {
                    Ended::Failed { why } if why.exit == Exit::CleanUp => Some(why.clone()),
                    _ => None,
                });
                (clean_up.as_ref().map_or(Exit::Done, |why| why.exit), clean_up)
            }
        };
        let report =
            self.plan.output.as_ref().and_then(|(index, render)| self.values.0[index.0].as_ref().and_then(render));
        Outcome { exit, why, steps: self.results, report }
    }
}
