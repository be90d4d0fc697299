//! What can go wrong with a run directory.

use std::path::PathBuf;

use crate::why::{Cause, Exit, FailureVerdict};

#[derive(Clone, Debug)]
pub(super) enum RunDirCause {
    CannotWrite { path: PathBuf, error: String },
    InUse { by: String },
    NoJournal(String),
    NoEvents(String),
}

impl Cause for RunDirCause {
    fn code(&self) -> &'static str {
        match self {
            RunDirCause::CannotWrite { .. } => "artifact-dir-not-writable",
            RunDirCause::InUse { .. } => "artifact-dir-in-use",
            RunDirCause::NoJournal(_) | RunDirCause::NoEvents(_) => "no-run-directory",
        }
    }

    fn text(&self) -> String {
        match self {
            RunDirCause::CannotWrite { path, error } => {
                format!("cannot be used for the run's files: {}: {error}", path.display())
            }
            RunDirCause::InUse { by } => format!("another run is writing here: {by}"),
            RunDirCause::NoEvents(error) => format!("is not the directory of a run: events.jsonl: {error}"),
            RunDirCause::NoJournal(error) => {
                format!("is not the directory of a run: journal.jsonl: {error}")
            }
        }
    }

    fn next(&self) -> String {
        match self {
            RunDirCause::CannotWrite { .. } => {
                "make the directory writable, or choose another one with --artifact-dir".to_owned()
            }
            RunDirCause::InUse { .. } => {
                "wait for that run to end, or choose another directory with --artifact-dir".to_owned()
            }
            RunDirCause::NoJournal(_) | RunDirCause::NoEvents(_) => {
                "give the directory that the run named at its end, the one with journal.jsonl and events.jsonl"
                    .to_owned()
            }
        }
    }

    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }

    fn exit(&self) -> Exit {
        Exit::Configuration
    }
}
