//! `junit_<name>.xml`: one suite per verb or flow, one case per step, for every reader of JUnit files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::record::{Record, StepRecord, StepState};
use super::summary::RunResult;
use super::text::{clip, readable, shell_words, show_seconds};
use crate::why::{Exit, Why};

/// Readers load the whole file into a page; a log tail is enough there, the log itself is in the directory.
const LONGEST_TEXT: usize = 32 * 1024;
const LONGEST_LINE: usize = 1000;

impl Record {
    /// The JUnit file. `suite` is the name of the verb or flow, stable from run to run.
    pub fn junit(&self, suite: &str) -> String {
        let mut cases = TestSuite::new(one_line(suite));
        let time = Duration::from_secs_f64(self.last_s.max(0.0));
        cases.set_time(time);
        if let Some(started) = self.started {
            cases.extra.insert("timestamp".into(), format!("{started:.3}").replace('Z', "+00:00").into());
        }
        for (name, value) in self.properties() {
            cases.add_property(Property::new(one_line(&name), clip(&readable(&value), LONGEST_LINE)));
        }
        let mut names = BTreeMap::new();
        for step in &self.steps {
            cases.add_test_case(self.case(suite, step, &mut names));
        }
        if let Some(status) = self.run_status() {
            let mut case = TestCase::new("run", status);
            case.set_classname(one_line(suite));
            case.set_time(time);
            cases.add_test_case(case);
        }
        let mut report = Report::new(one_line(suite));
        report.set_time(time);
        report.add_test_suite(cases);
        report.to_string().unwrap_or_default()
    }

    fn properties(&self) -> Vec<(String, String)> {
        let mut all =
            vec![("command".to_owned(), shell_words(&self.command)), ("tbx version".to_owned(), self.version.clone())];
        if let Some(cluster) = &self.cluster {
            all.push(("cluster version".to_owned(), cluster.version.clone()));
        }
        if let Some(rehearsal) = &self.rehearsal {
            all.push(("rehearsal".to_owned(), rehearsal.clone()));
        }
        for seen in &self.versions {
            if let Some(asked) = &seen.asked {
                all.push((format!("{} asked for", seen.what), asked.clone()));
            }
            if let Some(found) = &seen.found {
                all.push((format!("{} found", seen.what), found.clone()));
            }
        }
        all
    }

    fn case(&self, suite: &str, step: &StepRecord, names: &mut BTreeMap<String, usize>) -> TestCase {
        let mut case = TestCase::new(one_line(&case_name(step, names)), status(step));
        case.set_classname(one_line(suite));
        case.set_time(Duration::from_secs_f64(match (step.start_s, step.end_s) {
            (Some(start), Some(end)) => (end - start).max(0.0),
            (Some(start), None) => (self.last_s - start).max(0.0),
            _ => 0.0,
        }));
        if step.planned.parent.is_some() {
            case.add_property(Property::new("step", one_line(&step.planned.id)));
        }
        let mut out = String::new();
        for line in self.log.iter().filter(|line| line.step.as_deref() == Some(&step.planned.id)) {
            let _ = writeln!(out, "{:>10}  {}", show_seconds(line.t), line.text);
        }
        if !out.is_empty() {
            case.set_system_out(clip(&readable(&out), LONGEST_TEXT));
        }
        case
    }

    /// A case for the run itself when it did not pass and no step says so: a suite without a failure reads as a pass.
    fn run_status(&self) -> Option<TestCaseStatus> {
        let said = self.steps.iter().any(|step| {
            let bad = matches!(step.state, StepState::Failed | StepState::Stopped | StepState::Running);
            bad && !step.is_finalizer()
        });
        if said {
            return None;
        }
        match (self.result(), &self.why) {
            (RunResult::Passed | RunResult::Skipped, _) => None,
            (_, Some(why)) => Some(failed(why)),
            (RunResult::Running, None) => {
                Some(error("unfinished", "the run had not ended when this file was written", ""))
            }
            (_, None) => {
                let by = self.interrupted.as_deref().unwrap_or("a signal");
                Some(error("interrupted", &format!("the run was stopped by {by}"), ""))
            }
        }
    }
}

fn status(step: &StepRecord) -> TestCaseStatus {
    match step.state {
        StepState::Changed | StepState::AlreadySo => TestCaseStatus::success(),
        StepState::Failed => match &step.why {
            Some(why) => failed(why),
            None => error("failed", &step.what, ""),
        },
        StepState::Skipped | StepState::NotRun => skipped(&step.what),
        StepState::Waiting => skipped("had not started when this file was written"),
        StepState::Running => error("unfinished", "was running when this file was written", &waited_for(step)),
        StepState::Stopped if step.is_finalizer() => skipped(&step.what),
        StepState::Stopped => error("stopped", &step.what, &waited_for(step)),
    }
}

fn waited_for(step: &StepRecord) -> String {
    step.why.as_ref().map_or_else(String::new, |why| format!("it waited for: {why}"))
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(one_line(reason));
    status
}

fn error(kind: &str, message: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type(kind);
    status.set_message(one_line(message));
    if !text.is_empty() {
        status.set_description(clip(&readable(text), LONGEST_TEXT));
    }
    status
}

/// A failure is about what is tested or its cluster; an error is a request that could not be carried out.
fn failed(why: &Why) -> TestCaseStatus {
    let kind = match why.exit {
        Exit::Usage | Exit::Configuration | Exit::Access | Exit::Bug => NonSuccessKind::Error,
        _ => NonSuccessKind::Failure,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(readable(&why.code));
    status.set_message(one_line(&why.to_string()));
    let mut text = format!("{why}\n");
    if !why.next.is_empty() {
        let _ = writeln!(text, "next: {}", why.next);
    }
    for evidence in &why.evidence {
        let _ = write!(text, "\n{}:\n{}\n", evidence.label, clip(&evidence.text, LONGEST_TEXT / 2));
    }
    status.set_description(clip(&readable(&text), LONGEST_TEXT));
    status
}

fn one_line(text: &str) -> String {
    clip(readable(text).lines().next().unwrap_or_default(), LONGEST_LINE).replace('\n', " ")
}

/// The step's id and title without what differs from run to run: a step per node is numbered, and words that are only
/// numbers or versions are left out of the title.
fn case_name(step: &StepRecord, names: &mut BTreeMap<String, usize>) -> String {
    let id = match (&step.planned.parent, step.planned.id.find('[')) {
        (Some(_), Some(bracket)) => &step.planned.id[..bracket],
        _ => &step.planned.id,
    };
    let title = match &step.planned.parent {
        // The thing's own name stands in brackets at the end.
        Some(_) => step.planned.title.rsplit_once(" (").map_or(step.planned.title.as_str(), |(title, _)| title),
        None => &step.planned.title,
    };
    let number = |word: &str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let title: Vec<&str> = title.split_whitespace().filter(|word| !number(word)).collect();
    let name = format!("{id}: {}", title.join(" "));
    let seen = names.entry(format!("{name}{}", step.planned.parent.is_some())).or_insert(0);
    *seen += 1;
    match (&step.planned.parent, *seen) {
        (None, 1) => name,
        (_, seen) => format!("{id}[{seen}]: {}", title.join(" ")),
    }
}
