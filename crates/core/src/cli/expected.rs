//! Whether a rehearsal ended as its scenario says.

use toolbox_engine::run::RunResult;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Redactor, Why};
use toolbox_rehearsal::scenario::{Ending, Expect};

use super::run::{Finished, record};

/// The run ended, and not as it should.
struct Unexpected(String);

impl Cause for Unexpected {
    fn code(&self) -> &'static str {
        "not-as-expected"
    }
    fn text(&self) -> String {
        format!("not as expected: {}", self.0)
    }
    fn next(&self) -> String {
        "look at the run above, or correct `expect` in the scenario".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Product
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// One line, or why not. Nothing where nothing is expected, for a run that somebody stopped, and for a mere plan.
pub(crate) fn judge(
    scenario: &str,
    expect: &Expect,
    finished: &Finished,
    redactor: &Redactor,
) -> Option<Result<String, Why>> {
    let stopped = matches!(finished.exit, Exit::Interrupted | Exit::Terminated);
    let only_planned = finished.run_dir.is_none() && finished.exit == Exit::Done;
    if stopped || only_planned || !expect.is_about_something() {
        return None;
    }
    let ending = ending(finished);
    Some(match expect.mismatch(&ending) {
        None => Ok(format!(
            "as expected by {scenario}: {}, exit code {}, {} s",
            word(ending.result),
            ending.exit_code,
            ending.makespan
        )),
        Some(line) => {
            Err(Why::new(ObjectRef::thing("scenario", scenario), &Unexpected(redactor.text(&line).into_owned())))
        }
    })
}

fn word(result: RunResult) -> &'static str {
    match result {
        RunResult::Running => "running",
        RunResult::Passed => "passed",
        RunResult::Failed => "failed",
        RunResult::Skipped => "skipped",
        RunResult::Interrupted => "interrupted",
        RunResult::Error => "error",
    }
}

fn ending(finished: &Finished) -> Ending {
    let summary = finished.run_dir.as_deref().and_then(|directory| record(directory).ok()).map(|run| run.summary());
    let first = match (&finished.why, &finished.answer) {
        (Some(why), _) => format!("error: {why}"),
        (None, Some(answer)) => answer.text.clone(),
        (None, None) => String::new(),
    };
    Ending {
        result: summary.as_ref().map_or(RunResult::Error, |summary| summary.result),
        exit_code: finished.exit.code(),
        verdict: summary
            .as_ref()
            .map_or_else(|| finished.why.as_ref().map(|why| why.verdict), |summary| summary.verdict),
        first_line: first.lines().next().unwrap_or_default().to_owned(),
        makespan: summary.map_or(0.0, |summary| summary.makespan_s),
    }
}
