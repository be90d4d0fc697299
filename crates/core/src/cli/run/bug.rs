//! A bug of ours outside of the steps.

use toolbox_engine::{Cause, Exit, FailureVerdict};

/// What the panic said.
#[derive(Debug)]
pub(super) struct Bug(pub(super) String);

impl Cause for Bug {
    fn code(&self) -> &'static str {
        "panic"
    }
    fn text(&self) -> String {
        format!("stopped by a bug of this program: {}", self.0)
    }
    fn next(&self) -> String {
        "report it, with the run directory".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Tool
    }
    fn exit(&self) -> Exit {
        Exit::Bug
    }
}
