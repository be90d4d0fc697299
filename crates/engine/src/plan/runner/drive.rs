//! One step's life: announced, held to its deadline, asked for a diagnosis when it fails, its end recorded.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

use crate::event::{Ended, Event};
use crate::plan::{Step, StepCx, StepSpec, show_duration};
use crate::why::{Cause, Exit, FailureVerdict, ObjectRef, Why};

/// How long a diagnosis may take once a step has failed.
const DIAGNOSIS_LIMIT: Duration = Duration::from_secs(30);

/// Causes that come from the runner itself.
#[derive(Clone, Debug)]
pub(super) enum RunCause {
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
            RunCause::Panicked(_) | RunCause::SameId(_) => "report it, with the run directory".to_owned(),
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

/// Drops a step's diagnosis when the step is over, however it ends: it usually holds the step's own context, and the two
/// would keep each other, and the run directory with its lock, for ever.
struct Forget<'a>(&'a StepCx);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        drop(self.0.take_diagnosis());
    }
}

/// Runs one step's code: announces it, holds it to its deadline, asks for a diagnosis when it fails, records its end.
pub(in crate::plan) async fn drive<T>(
    cx: &StepCx,
    spec: &StepSpec,
    future: impl Future<Output = Result<Step<T>, Why>>,
) -> Result<Step<T>, Why> {
    if !spec.is_hidden() {
        cx.shared.send(Event::Started { step: spec.id().to_owned(), attempt: 1 });
    }
    let _forget = Forget(cx);
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
            Ok(Step::Skipped(_, reason)) => Ended::Skipped { reason: reason.clone() },
            Err(why) => Ended::Failed { why: why.clone() },
        };
        cx.shared.send(Event::Ended { step: spec.id().to_owned(), ended });
    }
    result
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without a message".to_owned())
}
