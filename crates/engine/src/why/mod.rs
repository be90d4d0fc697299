//! Why something waits or fails: an object, a cause in plain words, evidence and the next action.
//!
//! Each area defines its causes as an enum and implements [`Cause`]; the text, the next action, whose fault it is and
//! the exit code all come from the variant, never from parsing a message.

mod exit;
mod object;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use exit::{Exit, FailureVerdict};
pub use object::ObjectRef;

/// A typed cause. Implemented by one enum per area (machines, OLM, pods, …).
pub trait Cause {
    /// Stable kebab-case name, the same from run to run: `image-pull-failure`.
    fn code(&self) -> &'static str;
    /// The cause in plain words, without the object's name, no final period.
    fn text(&self) -> String;
    /// What the reader should do next, an imperative sentence without final period.
    fn next(&self) -> String;
    /// Whose fault it is.
    fn verdict(&self) -> FailureVerdict;
    /// The exit code a run ends with when this cause ends it.
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// One piece of evidence: a log tail, a condition, an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Evidence {
    /// Where it comes from: `event`, `log of pod x`, `condition Ready`.
    pub label: String,
    /// What it says; may have several lines.
    pub text: String,
}

/// Why a step is pending or has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// The object that holds things up.
    pub object: ObjectRef,
    /// Stable kebab-case name of the cause.
    pub code: Cow<'static, str>,
    /// The cause in plain words.
    pub cause: String,
    /// What to do next. Empty while pending and nothing needs doing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// Whose fault it is.
    pub verdict: FailureVerdict,
    /// The exit code this cause ends a run with.
    pub exit: Exit,
    /// What supports the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

impl Why {
    /// A typed cause about an object.
    pub fn new(object: ObjectRef, cause: &impl Cause) -> Self {
        Self {
            object,
            code: Cow::Borrowed(cause.code()),
            cause: cause.text(),
            next: cause.next(),
            verdict: cause.verdict(),
            exit: cause.exit(),
            evidence: Vec::new(),
        }
    }

    /// Something is on its way and nothing is wrong yet. `code` is stable; `text` may carry numbers.
    pub fn waiting(object: ObjectRef, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            object,
            code: Cow::Borrowed(code),
            cause: text.into(),
            next: String::new(),
            verdict: FailureVerdict::Infrastructure,
            exit: Exit::TimedOut,
            evidence: Vec::new(),
        }
    }

    /// Says what to do should this pending reason outlive its deadline, and whose fault that would be.
    #[must_use]
    pub fn or_else(mut self, verdict: FailureVerdict, next: impl Into<String>) -> Self {
        self.verdict = verdict;
        self.next = next.into();
        self
    }

    /// Adds a piece of evidence.
    #[must_use]
    pub fn with(mut self, label: impl Into<String>, text: impl Into<String>) -> Self {
        self.evidence.push(Evidence { label: label.into(), text: text.into() });
        self
    }

    /// What this pending reason becomes when `waited` has run out: the same object and cause, exit code 5.
    #[must_use]
    pub fn timed_out(mut self, waited: std::time::Duration) -> Self {
        self.cause = format!("{} (gave up after {})", self.cause, crate::plan::show_duration(waited));
        self.exit = Exit::TimedOut;
        if self.next.is_empty() {
            self.next = format!("see what holds it up: tbx why {}", self.object.as_argument());
        }
        self
    }
}

/// `<kind>/<namespace>/<name>: <cause>`.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.cause)
    }
}
