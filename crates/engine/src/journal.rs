//! What a run must remember to be resumed or taken back: its decisions, and what it made and changed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Reporter;
use crate::why::ObjectRef;

/// What stands in a name for the part that the server chooses.
pub const GENERATED: &str = "<generated>";

/// Whether an object asked for by the first name may have got the second one: the same, or one that the server chose.
pub fn may_be_named(asked: &str, name: &str) -> bool {
    asked.strip_suffix(GENERATED).map_or(asked == name, |start| name.starts_with(start))
}

/// One line of `journal.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum Entry {
    /// Something that was chosen and that a resumed run must choose again: a suffix, a machine set, a version.
    Decided {
        /// `cluster.base-machineset`.
        key: String,
        /// What was chosen.
        value: Value,
    },
    /// About to create this object; its name ends with [`GENERATED`] when the server is to choose. Without a matching `Made`, the answer was lost.
    Making {
        /// The step.
        step: String,
        /// The object; no uid yet.
        object: ObjectRef,
    },
    /// Created this object.
    Made {
        /// The step.
        step: String,
        /// The object, with its uid.
        object: ObjectRef,
    },
    /// Changed an object that was there before.
    Changed {
        /// The step.
        step: String,
        /// The object, with its uid.
        object: ObjectRef,
        /// The merge patch that takes the change back.
        undo: Value,
    },
    /// Deleted an object, so it is no leftover any more.
    Deleted {
        /// The object, with its uid.
        object: ObjectRef,
    },
}

/// Where a run keeps what outlives it: events, decisions, files. Implemented by the run directory.
pub trait Records: Reporter {
    /// Appends to the journal. Called before the effect for `Making`, right after it for the others.
    fn journal(&self, entry: &Entry);
    /// A decision of the run that this one resumes, if it made it.
    fn recall(&self, key: &str) -> Option<Value>;
    /// Writes a whole file below the run directory, secrets out. `path` is relative, with `/`.
    fn file(&self, path: &str, content: &[u8]);
    /// The same for a file that one step leaves: in a CI flow it belongs to that verb's own directory.
    fn step_file(&self, step: &str, path: &str, content: &[u8]) {
        let _ = step;
        self.file(path, content);
    }
}

/// Keeps nothing: for `--plan` and for tests that look at events only.
#[derive(Debug, Default)]
pub struct NoRecords;

impl Reporter for NoRecords {
    fn event(&self, _: &crate::event::Stamped) {}
}

impl Records for NoRecords {
    fn journal(&self, _: &Entry) {}
    fn recall(&self, _: &str) -> Option<Value> {
        None
    }
    fn file(&self, _: &str, _: &[u8]) {}
}
