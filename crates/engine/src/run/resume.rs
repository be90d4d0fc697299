//! Reads a journal back: what a run decided, made, changed and deleted.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::record::same_life;
use super::trouble::RunDirCause;
use crate::journal::{Entry, may_be_named};
use crate::secret::MASK;
use crate::why::{ObjectRef, Why};

/// An object that a run made, and the step that did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The step.
    pub step: String,
    /// The object. Without a uid the answer to the request was lost: it may or may not be there.
    pub object: ObjectRef,
}

/// An object that was there before and that a run changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The step.
    pub step: String,
    /// The object, with its uid.
    pub object: ObjectRef,
    /// The merge patch that takes the change back.
    pub undo: Value,
}

impl Change {
    /// Whether the patch can be used. One that held a secret was masked when it was written.
    pub fn can_be_undone(&self) -> bool {
        fn masked(value: &Value) -> bool {
            match value {
                Value::String(text) => text.contains(MASK),
                Value::Array(items) => items.iter().any(masked),
                Value::Object(map) => map.values().any(masked),
                _ => false,
            }
        }
        !masked(&self.undo)
    }
}

/// What a run's journal says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// What was decided, by key; the last word counts.
    pub decisions: BTreeMap<String, Value>,
    /// What was made, in that order.
    pub made: Vec<Made>,
    /// What was to be made, without an answer.
    pub lost: Vec<Made>,
    /// What was changed, in that order.
    pub changed: Vec<Change>,
    /// What was deleted.
    pub deleted: Vec<ObjectRef>,
    /// The numbers of the lines that cannot be read, counted from one; not a torn last one.
    pub damaged: Vec<usize>,
    entries: Vec<Entry>,
}

impl Journal {
    /// Reads the journal of a run directory. A torn last line, as a crash leaves it, is passed over.
    pub fn load(run_dir: &Path) -> Result<Self, Why> {
        let path = run_dir.join("journal.jsonl");
        let content = std::fs::read(&path).map_err(|error| {
            Why::new(
                ObjectRef::thing("directory", run_dir.display().to_string()),
                &RunDirCause::NoJournal(error.to_string()),
            )
        })?;
        let mut journal = Self::default();
        for entry in entries(&content) {
            journal.take(&entry);
        }
        journal.damaged = damaged(&content);
        Ok(journal)
    }

    pub(super) fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Decided { key, value } => {
                self.decisions.insert(key.clone(), value.clone());
            }
            Entry::Making { step, object } => self.lost.push(Made { step: step.clone(), object: object.clone() }),
            Entry::Made { step, object } => {
                if let Some(at) = self.lost.iter().position(|lost| lost.step == *step && answers(&lost.object, object))
                {
                    self.lost.remove(at);
                }
                self.made.push(Made { step: step.clone(), object: object.clone() });
            }
            Entry::Changed { step, object, undo } => {
                self.changed.push(Change { step: step.clone(), object: object.clone(), undo: undo.clone() });
            }
            Entry::Deleted { object } => self.deleted.push(object.clone()),
        }
        self.entries.push(entry.clone());
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What was made and not deleted since, in the order it was made.
    pub fn leftovers(&self) -> Vec<ObjectRef> {
        let mut left: Vec<ObjectRef> = Vec::new();
        for made in &self.made {
            let gone = self.deleted.iter().any(|deleted| same_life(deleted, &made.object));
            if !gone && !left.contains(&made.object) {
                left.push(made.object.clone());
            }
        }
        left
    }
}

/// Whether `made` is what became of `asked`; with a generated name only its beginning was known.
fn answers(asked: &ObjectRef, made: &ObjectRef) -> bool {
    let named = ObjectRef { name: made.name.clone(), uid: None, ..asked.clone() };
    may_be_named(&asked.name, &made.name) && same_life(&named, made)
}

/// The numbers of the whole lines that cannot be read.
fn damaged(content: &[u8]) -> Vec<usize> {
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = content[..whole].split(|byte| *byte == b'\n').enumerate();
    let bad = lines.filter(|(_, line)| !line.trim_ascii().is_empty() && serde_json::from_slice::<Entry>(line).is_err());
    bad.map(|(at, _)| at + 1).collect()
}

/// Every line that can be read.
pub(super) fn entries(content: &[u8]) -> Vec<Entry> {
    content.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_of_a_journal_is_counted_and_a_torn_last_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let line = |name: &str| {
            format!(
                "{}\n",
                serde_json::to_string(&Entry::Deleted { object: ObjectRef::new("v1", "Pod", None, name) }).unwrap()
            )
        };
        let whole = format!("{}{}", line("a"), line("b"));
        let load = |content: &str| {
            std::fs::write(parent.path().join("journal.jsonl"), content).unwrap();
            let journal = Journal::load(parent.path()).unwrap();
            (journal.damaged, journal.deleted.len())
        };
        assert_eq!(load(&whole), (vec![], 2));
        assert_eq!(load(&format!("{whole}{{\"entry\":\"ma")), (vec![], 2));
        assert_eq!(load(&format!("{}{{\"entry\":\"ma\n\n{}", line("a"), line("b"))), (vec![2], 2));
    }
}
