//! Files for existing readers of an artifacts directory: what the predecessor's playbooks left behind.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::record::{Record, StepRecord, StepState};
use super::summary::RunResult;

/// `_ansible.log.json`: one entry per step, and last the statistics, of which readers take `failures`.
pub(super) fn log_json(record: &Record, belongs: &dyn Fn(&StepRecord) -> bool, whole: bool) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut stats = Stats::default();
    for step in record.steps.iter().filter(|step| belongs(step)) {
        stats.count(step);
        entries.extend(entry(step));
    }
    // A run that did not pass must not look passed because no single step failed.
    if whole && stats.failures == 0 && !matches!(record.result(), RunResult::Passed | RunResult::Skipped) {
        stats.failures = 1;
    }
    entries.push(json!({
        "log_level": "info",
        "scope": "playbook",
        "stats": {"localhost": {
            "changed": stats.changed,
            "failures": stats.failures,
            "ignored": stats.ignored,
            "ok": stats.ok,
            "rescued": 0,
            "skipped": stats.skipped,
            "unreachable": 0,
        }},
        "status": "finished",
    }));
    let mut bytes = serde_json::to_vec_pretty(&Value::Array(entries)).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[derive(Default)]
struct Stats {
    ok: usize,
    changed: usize,
    failures: usize,
    ignored: usize,
    skipped: usize,
}

impl Stats {
    fn count(&mut self, step: &StepRecord) {
        match step.state {
            StepState::Changed => {
                self.ok += 1;
                self.changed += 1;
            }
            StepState::AlreadySo => self.ok += 1,
            StepState::Skipped | StepState::NotRun | StepState::Waiting => self.skipped += 1,
            // Finalizers never change the result; the readers call that ignored.
            _ if step.is_finalizer() => {
                self.ok += 1;
                self.ignored += 1;
            }
            StepState::Failed | StepState::Stopped | StepState::Running => self.failures += 1,
        }
    }
}

/// A step as a task of a playbook.
fn entry(step: &StepRecord) -> Option<Value> {
    let ok = match step.state {
        StepState::Changed | StepState::AlreadySo => true,
        StepState::Failed | StepState::Stopped => false,
        StepState::Skipped | StepState::NotRun => {
            return Some(json!({
                "host": "localhost",
                "hostname": "localhost",
                "item": step.planned.id,
                "log_level": "info",
                "message": "skipped",
                "reason": step.what,
                "scope": "task",
                "status": "SKIPPED",
            }));
        }
        StepState::Waiting | StepState::Running => return None,
    };
    let mut message = json!({
        "changed": step.state == StepState::Changed,
        "end_s": step.end_s,
        "failed": !ok,
        "msg": step.what,
        "start_s": step.start_s,
        "step": step.planned.id,
        "title": step.planned.title,
    });
    if let Some(why) = &step.why {
        message["next"] = json!(why.next);
        message["evidence"] = json!(why.evidence);
    }
    let mut task = json!({
        "host": "localhost",
        "hostname": "localhost",
        "log_level": if ok { "info" } else { "error" },
        "message": message,
        "scope": "task",
        "status": if ok { "OK" } else { "FAILED" },
    });
    if !ok {
        task["ignore_errors"] = json!(step.is_finalizer());
    }
    Some(task)
}

/// `_ansible.log`: what happened, line by line.
pub(super) fn log_text(record: &Record, belongs: &dyn Fn(&StepRecord) -> bool, whole: bool) -> String {
    let mut text = String::new();
    for line in &record.log {
        let wanted = match &line.step {
            Some(step) => record.step(step).is_some_and(belongs),
            None => whole,
        };
        if wanted {
            let step = line.step.as_deref().unwrap_or("run");
            let _ = writeln!(text, "{:.3} {step}: {}", line.at, line.text);
        }
    }
    text
}
