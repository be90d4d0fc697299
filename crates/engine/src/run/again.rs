//! Looks at run directories from outside: is the run still going on, and what did it look like.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::dir::cannot_write;
use super::files::write_whole;
use super::trouble::RunDirCause;
use super::{Record, VerbName};
use crate::why::{ObjectRef, Why};

/// Whether the process that writes this run directory is alive: it holds a lock on the events for as long as it lives,
/// however it ends.
pub fn is_running(run_dir: &Path) -> bool {
    File::open(run_dir.join("events.jsonl"))
        .is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Writes the report and the JUnit file of a run again, from its events: after a kill, or with a newer program.
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
    let written = write_whole(&junit, record.junit(&record.name).as_bytes())
        .and_then(|()| write_whole(&report, record.html().as_bytes()));
    written.map_err(|error| cannot_write(run_dir, &error))?;
    Ok(report)
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
