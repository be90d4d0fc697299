//! The recent changes of one table, for watches that resume and lists that continue.

use std::{collections::VecDeque, sync::Arc};

use serde_json::Value;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It did not exist before.
    Added,
    /// It existed and exists.
    Modified,
    /// It is gone; the object is its last state under the revision of its removal.
    Deleted,
}

/// One change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision that the change made.
    pub revision: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// The object after the change.
    pub object: Arc<Value>,
    /// The object before the change.
    pub previous: Option<Arc<Value>>,
}

/// A bounded list of changes, oldest first.
#[derive(Debug)]
pub struct History {
    changes: VecDeque<Change>,
    capacity: usize,
    compacted: u64,
}

impl History {
    /// An empty history that holds `capacity` changes and knows nothing from before `since`.
    pub fn new(capacity: usize, since: u64) -> Self {
        Self { changes: VecDeque::new(), capacity, compacted: since }
    }

    /// The newest revision that can no longer be told: resuming from before it is refused.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Appends a change, forgetting the oldest when full.
    pub fn push(&mut self, change: Change) {
        self.changes.push_back(change);
        while self.changes.len() > self.capacity {
            if let Some(old) = self.changes.pop_front() {
                self.compacted = old.revision;
            }
        }
    }

    /// Forgets everything up to and including `revision`.
    pub fn compact(&mut self, revision: u64) {
        while self.changes.front().is_some_and(|change| change.revision <= revision) {
            self.changes.pop_front();
        }
        self.compacted = self.compacted.max(revision);
    }

    /// The changes after `revision`, oldest first.
    pub fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Change> {
        let start = self.changes.partition_point(|change| change.revision <= revision);
        self.changes.range(start..)
    }
}
