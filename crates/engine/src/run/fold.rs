//! What each event adds to the record.

use super::record::{ClusterSeen, LISTING, LogLine, Reason, Record, StepState, VersionSeen, Warning, close, same_life};
use crate::event::{Ended, Event, Stamped};
use crate::why::{Exit, ObjectRef};

pub(super) fn event(record: &mut Record, stamped: &Stamped) {
    let t = stamped.t;
    match &stamped.event {
        Event::RunStarted { name, command, version, resumes, rehearsal } => {
            record.name.clone_from(name);
            record.command.clone_from(command);
            record.version.clone_from(version);
            record.resumes.clone_from(resumes);
            record.rehearsal.clone_from(rehearsal);
            record.started = Some(stamped.at);
            log(record, stamped, None, format!("started {name}"));
        }
        Event::Cluster { server, version, source } => {
            log(record, stamped, None, format!("cluster {server} ({version}), from {source}"));
            record.cluster =
                Some(ClusterSeen { server: server.clone(), version: version.clone(), source: source.clone() });
        }
        Event::Planned { steps } => steps.iter().for_each(|step| record.add(step.clone())),
        Event::Added { step } => record.add(step.clone()),
        Event::Started { step: id, attempt } => {
            if let Some(step) = record.step_mut(id) {
                step.state = StepState::Running;
                step.attempts = (*attempt).max(step.attempts + 1);
                step.start_s = step.start_s.or(Some(t));
                step.end_s = None;
                let title = step.planned.title.clone();
                log(record, stamped, Some(id), format!("started: {title}"));
            }
        }
        Event::Pending { step: id, why } => {
            if let Some(step) = record.step_mut(id) {
                step.reasons.push(Reason { t, why: why.clone() });
                step.why = Some(why.clone());
            }
            if why.code != LISTING {
                log(record, stamped, Some(id), format!("waits: {why}"));
            }
        }
        Event::Note { step, text } => log(record, stamped, step.as_deref(), text.clone()),
        Event::Warning { step, name, text } => {
            log(record, stamped, step.as_deref(), format!("warning: {name}: {text}"));
            record.warnings.push(Warning { name: name.clone(), text: text.clone() });
        }
        Event::Ended { step: id, ended } => ended_step(record, stamped, id, ended),
        Event::Made { step, object } => {
            record.made.retain(|made| !same_life(made, object));
            record.made.push(object.clone());
            log(record, stamped, Some(step), format!("made {object}"));
        }
        Event::Version { what, asked, found } => version(record, what, asked.as_ref(), found.as_ref()),
        Event::Interrupted { by } => {
            record.interrupted = Some(by.clone());
            log(record, stamped, None, format!("interrupted by {by}"));
        }
        Event::Leftover { object } => leftover(record, object),
        Event::Traffic { requests, watch_events } => {
            record.requests.clone_from(requests);
            record.watch_events = *watch_events;
        }
        Event::Floor { seconds } => record.floor_s = Some(*seconds),
        Event::RunEnded { exit, why } => {
            record.exit = Some(*exit);
            record.why.clone_from(why);
            record.finished = Some(stamped.at);
            stop_running(record, t, None);
            let text = match why {
                Some(why) if *exit != Exit::Done => {
                    format!("ended with exit code {}: {why}", exit.code())
                }
                _ => format!("ended with exit code {}", exit.code()),
            };
            log(record, stamped, None, text);
        }
    }
}

fn ended_step(record: &mut Record, stamped: &Stamped, id: &str, ended: &Ended) {
    if let Some(step) = record.step_mut(id) {
        close(step, stamped.t, ended);
        let (state, what) = (step.state, step.what.clone());
        let word = match state {
            StepState::Changed => "changed",
            StepState::AlreadySo => "already so",
            StepState::Skipped => "skipped",
            StepState::Failed => "failed",
            StepState::NotRun => "not run",
            _ => "stopped",
        };
        log(record, stamped, Some(id), format!("{word}: {what}"));
    }
    // A step that ends takes the ones it added along; they had no time to say so.
    stop_running(record, stamped.t, Some(id));
}

/// Closes what still runs: the children of one step, or everything.
fn stop_running(record: &mut Record, t: f64, parent: Option<&str>) {
    for step in &mut record.steps {
        let concerned = parent.is_none() || step.planned.parent.as_deref() == parent;
        if concerned && step.state == StepState::Running {
            close(step, t, &Ended::Stopped);
        }
    }
}

fn version(record: &mut Record, what: &str, asked: Option<&String>, found: Option<&String>) {
    if let Some(seen) = record.versions.iter_mut().find(|seen| seen.what == what) {
        seen.asked = asked.cloned().or(seen.asked.take());
        seen.found = found.cloned().or(seen.found.take());
    } else {
        record.versions.push(VersionSeen { what: what.to_owned(), asked: asked.cloned(), found: found.cloned() });
    }
}

fn leftover(record: &mut Record, object: &ObjectRef) {
    if !record.named_leftovers.iter().any(|left| same_life(left, object)) {
        record.named_leftovers.push(object.clone());
    }
}

fn log(record: &mut Record, stamped: &Stamped, step: Option<&str>, text: String) {
    record.log.push(LogLine { at: stamped.at, t: stamped.t, step: step.map(str::to_owned), text });
}
