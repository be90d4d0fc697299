//! The run directory: everything that explains a run, safe to publish.
//!
//! [`RunDir`] takes events, journal entries and files, and keeps `events.jsonl`, `journal.jsonl`, `summary.json`,
//! `junit_<name>.xml`, the report and the files of older readers true at every moment, secrets out. A [`Record`] is the
//! fold over the events; everything that is rendered is made from it, so it can be made again from the file.
//!
//! All input and output here is plain and synchronous: the files are small, and a paused runtime must not wait for
//! them. Times come from the events alone, so the same events give the same bytes.

mod again;
mod aside;
mod clean;
mod critical;
mod dir;
mod files;
mod fold;
mod junit;
mod legacy;
mod name;
mod number;
mod parts;
mod record;
mod report;
mod resume;
mod summary;
mod text;
mod trouble;

pub use again::{is_running, render_again};
pub use dir::{RunDir, RunDirOptions};
pub use name::VerbName;
pub use parts::PartDir;
pub use record::{ClusterSeen, LogLine, Reason, Record, StepRecord, StepState, VersionSeen, Warning};
pub use report::render_comparison;
pub use resume::{Change, Journal, Made};
pub use summary::{RunResult, SCHEMA, StepSummary, Summary, summary_schema};
pub(crate) use text::readable;
pub use text::shell_words;

#[cfg(test)]
mod junit_tests;
#[cfg(test)]
mod legacy_tests;
#[cfg(test)]
mod secret_tests;
#[cfg(test)]
mod tests;
