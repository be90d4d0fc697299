//! The verbs that a CI flow is composed of, each with a directory of its own for existing readers; and the marker files.

use std::path::{Path, PathBuf};

use super::dir::RunDir;
use super::files::write_whole;
use super::record::{Record, StepRecord, StepState};
use super::{VerbName, legacy, number};
use crate::why::{FailureVerdict, Why};

/// A verb's part of a flow.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) command: String,
    /// The beginnings of its steps' ids.
    prefixes: Vec<String>,
}

impl Part {
    /// How specific its claim to a step is; 0 is none.
    fn claim(&self, step: &str) -> usize {
        let matching = self.prefixes.iter().filter(|prefix| step.starts_with(prefix.as_str()));
        matching.map(|prefix| prefix.len() + 1).max().unwrap_or(0)
    }
}

/// The directory of the part that a step belongs to: the most specific claim, the first of equal ones.
pub(super) fn owner<'a>(parts: &'a [Part], step: &str) -> Option<&'a Path> {
    let claims = parts.iter().filter(|part| part.claim(step) > 0);
    claims.rev().max_by_key(|part| part.claim(step)).map(|part| part.path.as_path())
}

/// The directory of one verb of a flow.
#[derive(Clone, Debug)]
pub struct PartDir {
    path: PathBuf,
    run: RunDir,
}

impl PartDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that a known flake occurred in this part, one line each.
    pub fn mark_flake(&self, text: &str) {
        self.run.mark(&self.path.join("FLAKE"), text, true);
    }

    /// Says that a failure of this part was the answer to a question; `question` is what was asked.
    pub fn mark_expected_fail(&self, question: &str) {
        self.run.mark(&self.path.join("EXPECTED_FAIL"), question, false);
    }
}

impl RunDir {
    /// A directory for one verb of a flow: `NNN__group__command` below this one, with the files that existing readers
    /// look for, about the steps whose ids begin with one of `prefixes` (the longest one decides). `command` runs the
    /// verb alone.
    pub fn part(&self, name: &VerbName, prefixes: &[&str], command: &[String]) -> Result<PartDir, Why> {
        let path = number::create(self.path(), &name.directory())
            .map_err(|error| super::dir::cannot_write(self.path(), &error))?;
        self.add_part(Part {
            path: path.clone(),
            command: self.redactor().text(&super::shell_words(command)).into_owned(),
            prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
        });
        Ok(PartDir { path, run: self.clone() })
    }

    /// Says that the whole test failed, and why in a line.
    pub fn mark_failure(&self, text: &str) {
        self.mark(&self.root().join("FAILURE"), text, false);
    }

    /// Says that a known flake occurred, one line each.
    pub fn mark_flake(&self, text: &str) {
        self.mark(&self.path().join("FLAKE"), text, true);
    }

    /// Says that this run's failure was the answer to a question; `question` is what was asked.
    pub fn mark_expected_fail(&self, question: &str) {
        self.mark(&self.path().join("EXPECTED_FAIL"), question, false);
    }

    fn mark(&self, path: &Path, text: &str, add: bool) {
        let text = self.redactor().text(text).replace('\n', " ");
        let mut content = String::new();
        if add {
            content = std::fs::read_to_string(path).unwrap_or_default();
            if content.lines().any(|line| line == text) {
                return;
            }
        }
        content.push_str(&text);
        content.push('\n');
        self.written(path, write_whole(path, content.as_bytes()));
    }
}

/// The files of older readers: in the run directory about everything, in each part about its steps.
pub(super) fn legacy_files(
    directory: &Path,
    command: &str,
    parts: &[Part],
    record: &Record,
) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut add = |path: &Path, command: &str, belongs: &dyn Fn(&StepRecord) -> bool, whole: bool| {
        files.push((path.join("_ansible.log.json"), legacy::log_json(record, belongs, whole)));
        files.push((path.join("_ansible.log"), legacy::log_text(record, belongs, whole).into_bytes()));
        files.push((path.join("_ansible.cmd"), format!("{command}\n").into_bytes()));
        let mut flakes = std::fs::read_to_string(path.join("FLAKE")).unwrap_or_default();
        let before = flakes.len();
        for why in record.steps.iter().filter(|step| belongs(step)).filter_map(known_flake) {
            let line = format!("{why}\n");
            if !flakes.contains(&line) {
                flakes.push_str(&line);
            }
        }
        if flakes.len() > before {
            files.push((path.join("FLAKE"), flakes.into_bytes()));
        }
    };
    // The root of a flow with parts has no such files of its own: readers would count its steps twice.
    if parts.is_empty() {
        add(directory, command, &|_| true, true);
    }
    for part in parts {
        add(&part.path, &part.command, &|step| owner(parts, &step.planned.id) == Some(&part.path), false);
    }
    files
}

fn known_flake(step: &StepRecord) -> Option<&Why> {
    let why = step.why.as_ref()?;
    (step.state == StepState::Failed && why.verdict == FailureVerdict::KnownFlake).then_some(why)
}
