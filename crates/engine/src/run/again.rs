//! Looks at run directories from outside: is the run still going on, and what did it look like.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::dir::cannot_write;
use super::files::{is_torn, write_whole};
use super::trouble::RunDirCause;
use super::{Record, VerbName};
use crate::why::{ObjectRef, Why};

/// Whether the process that writes this run directory is alive: it holds a lock on the events for as long as it lives,
/// however it ends.
pub fn is_running(run_dir: &Path) -> bool {
    File::open(run_dir.join("events.jsonl"))
        .is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Writes summary, report and JUnit file of a run again, from its events: after a kill, or with a newer program. Removes
/// half-written files that the kill has left.
/// Returns the report's path.
pub fn render_again(run_dir: &Path) -> Result<PathBuf, Why> {
    let record = Record::from_run_dir(run_dir).map_err(|error| {
        let directory = ObjectRef::thing("directory", run_dir.display().to_string());
        Why::new(directory, &RunDirCause::NoEvents(error.to_string()))
    })?;
    let report = find(run_dir, "", "-summary.html").unwrap_or_else(|| run_dir.join("report.html"));
    let junit = find(run_dir, "junit_", ".xml").unwrap_or_else(|| {
        let (group, command) = record.name.split_once(' ').unwrap_or(("tbx", &record.name));
        run_dir.join(format!("junit_{}.xml", VerbName::new(group, command).word()))
    });
    sweep(run_dir);
    let summary = serde_json::to_string_pretty(&record.summary()).unwrap_or_default() + "\n";
    let written = write_whole(&run_dir.join("summary.json"), summary.as_bytes())
        .and_then(|()| write_whole(&junit, record.junit(&record.name).as_bytes()))
        .and_then(|()| write_whole(&report, record.html().as_bytes()));
    written.map_err(|error| cannot_write(run_dir, &error))?;
    Ok(report)
}

/// Removes the temporary files of a process that was killed while it wrote.
fn sweep(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&path);
        } else if path.file_name().and_then(|name| name.to_str()).is_some_and(is_torn) {
            // One that cannot be removed does no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn find(run_dir: &Path, start: &str, end: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(run_dir).ok()?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(start) && name.ends_with(end))
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Exit;

    #[test]
    fn a_directory_without_the_start_of_a_run_is_none() {
        let parent = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"\x00\xffgarbage\n{}\n", b"[1]\n"] {
            std::fs::write(parent.path().join("events.jsonl"), content).unwrap();
            let why = render_again(parent.path()).unwrap_err();
            assert_eq!(why.exit, Exit::Configuration);
            assert!(why.cause.contains("the start of a run is not in it"), "{why}");
            assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "nothing is written there");
        }
    }
}
