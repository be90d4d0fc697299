//! Causes that belong to the run as a whole.

use std::time::Duration;

use toolbox_engine::plan::show_duration;
use toolbox_engine::{Cause, Exit, FailureVerdict};

/// Why a run ended that no step ended.
#[derive(Debug)]
pub(super) enum RunCause {
    /// Its own deadline came.
    Deadline {
        limit: Duration,
        /// What was waited for then.
        waited: Option<String>,
    },
    /// A bug of ours outside of the steps.
    Bug(String),
}

impl Cause for RunCause {
    fn code(&self) -> &'static str {
        match self {
            RunCause::Deadline { .. } => "run-deadline",
            RunCause::Bug(_) => "panic",
        }
    }
    fn text(&self) -> String {
        match self {
            RunCause::Deadline { limit, waited } => {
                let limit = show_duration(*limit);
                match waited {
                    Some(waited) => format!("the run's deadline of {limit} came while it waited: {waited}"),
                    None => format!("the run's deadline of {limit} came"),
                }
            }
            RunCause::Bug(message) => format!("stopped by a bug of this program: {message}"),
        }
    }
    fn next(&self) -> String {
        match self {
            RunCause::Deadline { .. } => {
                "see the steps that were stopped, or give it more time with --run-deadline".to_owned()
            }
            RunCause::Bug(_) => "report it, with the run directory".to_owned(),
        }
    }
    fn verdict(&self) -> FailureVerdict {
        match self {
            RunCause::Deadline { .. } => FailureVerdict::Infrastructure,
            RunCause::Bug(_) => FailureVerdict::Tool,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            RunCause::Deadline { .. } => Exit::TimedOut,
            RunCause::Bug(_) => Exit::Bug,
        }
    }
}
