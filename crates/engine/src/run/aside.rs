//! Makes room in an artifact directory that an earlier run has used.

use std::path::Path;

use super::dir::cannot_write;
use super::files::{Lines, is_torn};
use super::trouble::RunDirCause;
use super::{Record, number};
use crate::why::{ObjectRef, Why};

/// Moves the files of an earlier flow, with its markers, into `NNN__earlier__run`; a later run must not look failed
/// because an earlier one was.
pub(super) fn move_earlier(root: &Path) -> Result<(), Why> {
    let events = root.join("events.jsonl");
    if !events.exists() {
        return Ok(());
    }
    let lines = Lines::create(&events).map_err(|error| cannot_write(root, &error))?;
    if !lines.lock() {
        return Err(in_use(root));
    }
    let entries = std::fs::read_dir(root).map_err(|error| cannot_write(root, &error))?;
    let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    names.sort();
    // What a killed run was writing is whole in no version, and nobody is writing it any more.
    for torn in names.iter().filter(|name| is_torn(&name.to_string_lossy())) {
        std::fs::remove_file(root.join(torn)).map_err(|error| cannot_write(root, &error))?;
    }
    let moved = number::create(root, "earlier__run").and_then(|aside| {
        names
            .iter()
            .filter(|name| belongs(&name.to_string_lossy()))
            .try_for_each(|name| std::fs::rename(root.join(name), aside.join(name)))
    });
    moved.map_err(|error| cannot_write(root, &error))
}

/// Numbered directories belong to the artifact directory, as does whatever we do not know.
fn belongs(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "summary.json",
        "events.jsonl",
        "journal.jsonl",
        "command.txt",
        "report.html",
        "FAILURE",
        "FLAKE",
        "EXPECTED_FAIL",
        "_WARNING",
        "manifests",
        "objects",
        "logs",
        "files",
    ];
    NAMES.contains(&name)
        || name.starts_with("_ansible.")
        || name.starts_with("junit_")
        || name.ends_with("-summary.html")
}

/// Names the run that holds the directory.
pub(super) fn in_use(path: &Path) -> Why {
    let by = match Record::from_events_file(&path.join("events.jsonl")) {
        Ok(record) if !record.name.is_empty() => match record.started {
            Some(started) => format!("{}, started {started}", record.name),
            None => record.name,
        },
        _ => "it has not said what it is yet".to_owned(),
    };
    Why::new(ObjectRef::thing("artifact-dir", path.display().to_string()), &RunDirCause::InUse { by })
}
