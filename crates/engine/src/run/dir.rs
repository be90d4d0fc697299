//! The run directory itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::files::{Lines, below, write_whole};
use super::name::{VerbName, file_safe};
use super::parts::{Part, legacy_files, owner};
use super::record::{Record, is_weighty};
use super::resume::Journal;
use super::text::shell_words;
use super::trouble::RunDirCause;
use super::{clean, number};
use crate::event::{Ended, Event, Reporter, Stamped};
use crate::journal::{Entry, Records};
use crate::secret::Redactor;
use crate::why::{ObjectRef, Why};

/// While nothing weighty happens the summary is written again after this many seconds of the run's own time.
const SUMMARY_EVERY_S: f64 = 10.0;

/// Names that the directory keeps for itself.
const OURS: [&str; 5] = ["summary.json", "events.jsonl", "journal.jsonl", "command.txt", "FAILURE"];

/// How a run directory is kept.
#[derive(Clone, Debug, Default)]
pub struct RunDirOptions {
    /// Takes secrets out of everything that is written.
    pub redactor: Redactor,
    /// The journal of the run that this one resumes; its entries are carried over.
    pub resumes: Option<Journal>,
    /// Name of the report; `report.html` unless said otherwise. A CI flow's is `<flow>-summary.html`.
    pub report: Option<String>,
}

/// The directory of one run. Cheap to clone; clones write to the same directory.
#[derive(Clone, Debug)]
pub struct RunDir(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    root: PathBuf,
    name: VerbName,
    redactor: Redactor,
    report: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    record: Record,
    journal: Journal,
    events: Lines,
    journal_lines: Lines,
    summary_t: f64,
    parts: Vec<Part>,
    trouble: Option<Why>,
}

impl RunDir {
    /// A new directory `NNN__group__command` below `parent`, which is created when it is not there. No other process
    /// gets the same number.
    pub fn create(parent: &Path, name: &VerbName, options: RunDirOptions) -> Result<Self, Why> {
        let path = number::create(parent, &name.directory()).map_err(|error| cannot_write(parent, &error))?;
        Self::open(path, parent.to_path_buf(), name, options)
    }

    /// The artifact directory itself, for a CI flow whose files stand at its root. What an earlier run left there is
    /// moved aside; a run that is still going on there is an error.
    pub fn unnumbered(root: &Path, name: &VerbName, options: RunDirOptions) -> Result<Self, Why> {
        std::fs::create_dir_all(root).map_err(|error| cannot_write(root, &error))?;
        super::aside::move_earlier(root)?;
        Self::open(root.to_path_buf(), root.to_path_buf(), name, options)
    }

    fn open(path: PathBuf, root: PathBuf, name: &VerbName, options: RunDirOptions) -> Result<Self, Why> {
        let lines = |file: &str| Lines::create(&path.join(file)).map_err(|error| cannot_write(&path, &error));
        let (events, journal_lines) = (lines("events.jsonl")?, lines("journal.jsonl")?);
        if !events.lock() || !events.is_empty() {
            return Err(super::aside::in_use(&path));
        }
        let report = options.report.as_deref().map_or_else(|| "report.html".to_owned(), file_safe);
        let state = State {
            record: Record::default(),
            journal: Journal::default(),
            events,
            journal_lines,
            summary_t: f64::MIN,
            parts: Vec::new(),
            trouble: None,
        };
        let dir = Self(Arc::new(Shared {
            path,
            root,
            name: name.clone(),
            redactor: options.redactor,
            report,
            state: Mutex::new(state),
        }));
        if let Some(resumed) = options.resumes {
            for entry in resumed.entries() {
                dir.journal(entry);
            }
        }
        let mut state = dir.lock();
        state.write_summary(&dir.0);
        if let Some(why) = state.trouble.take() {
            return Err(why);
        }
        drop(state);
        Ok(dir)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The artifact directory that it stands in; its own path for a CI flow.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// What takes secrets out; also for whatever is shown.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The run so far.
    pub fn record(&self) -> Record {
        self.lock().record.clone()
    }

    /// The journal so far, with what was carried over from the run it resumes.
    pub fn journal_so_far(&self) -> Journal {
        self.lock().journal.clone()
    }

    /// The first file that could not be written, if any. A full disk does not change a run's result, but is said.
    pub fn trouble(&self) -> Option<Why> {
        self.lock().trouble.clone()
    }

    pub(super) fn add_part(&self, part: Part) {
        self.lock().parts.push(part);
    }

    pub(super) fn written(&self, path: &Path, written: io::Result<()>) {
        self.lock().check(path, written);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter for RunDir {
    fn event(&self, event: &Stamped) {
        let event = redacted(&self.0.redactor, event);
        let mut state = self.lock();
        if let Ok(line) = serde_json::to_string(&event) {
            let written = state.events.push(&line);
            state.check(&self.0.path.join("events.jsonl"), written);
        }
        state.record.event(&event);
        match &event.event {
            Event::RunStarted { command, .. } => {
                let line = format!("{}\n", shell_words(command));
                state.write(&self.0.path.join("command.txt"), line.as_bytes());
            }
            Event::Warning { name, .. } => {
                let same = state.record.warnings.iter().filter(|warning| warning.name == *name);
                let mut text = same.map(|warning| warning.text.as_str()).collect::<Vec<_>>().join("\n");
                text.push('\n');
                let path = self.0.root.join("_WARNING").join(file_safe(name));
                let written = write_whole(&path, text.as_bytes());
                state.check(&path, written);
            }
            _ => {}
        }
        if is_weighty(&event.event) || event.t >= state.summary_t + SUMMARY_EVERY_S {
            state.write_summary(&self.0);
        }
        match &event.event {
            Event::Interrupted { .. } | Event::RunEnded { .. } | Event::Ended { ended: Ended::Failed { .. }, .. } => {
                state.write_everything(&self.0);
            }
            Event::Ended { .. } => state.write_junit(&self.0),
            _ => {}
        }
    }
}

impl Records for RunDir {
    fn journal(&self, entry: &Entry) {
        let entry = redacted(&self.0.redactor, entry);
        let mut state = self.lock();
        if let Ok(line) = serde_json::to_string(&entry) {
            let written = state.journal_lines.push(&line);
            state.check(&self.0.path.join("journal.jsonl"), written);
        }
        state.record.journal(&entry);
        state.journal.take(&entry);
    }

    fn recall(&self, key: &str) -> Option<Value> {
        self.lock().journal.decisions.get(key).cloned()
    }

    fn file(&self, path: &str, content: &[u8]) {
        self.file_below(&self.0.path, path, content);
    }

    fn step_file(&self, step: &str, path: &str, content: &[u8]) {
        let directory = owner(&self.lock().parts, step).map_or_else(|| self.0.path.clone(), Path::to_path_buf);
        self.file_below(&directory, path, content);
    }
}

impl RunDir {
    fn file_below(&self, directory: &Path, path: &str, content: &[u8]) {
        let content = clean::file(&self.0.redactor, path, content);
        let ours = OURS.contains(&path) || path == self.0.report || path.starts_with("junit_");
        let path = if ours { format!("files/{path}") } else { path.to_owned() };
        let path = below(directory, &self.0.redactor.text(&path));
        self.written(&path, write_whole(&path, &content));
    }
}

impl State {
    fn write_summary(&mut self, shared: &Shared) {
        self.summary_t = self.record.last_s;
        if let Ok(mut json) = serde_json::to_vec_pretty(&self.record.summary()) {
            json.push(b'\n');
            self.write(&shared.path.join("summary.json"), &json);
        }
    }

    fn write_junit(&mut self, shared: &Shared) {
        let xml = self.record.junit(&shared.name.to_string());
        let name = format!("junit_{}.xml", shared.name.word());
        self.write(&shared.path.join(name), xml.as_bytes());
    }

    /// What takes longer to write than a line: at the end, and whenever the end may be near.
    fn write_everything(&mut self, shared: &Shared) {
        self.write_junit(shared);
        let html = self.record.html();
        self.write(&shared.path.join(&shared.report), html.as_bytes());
        let command = shell_words(&self.record.command);
        let files = legacy_files(&shared.path, &command, &self.parts, &self.record);
        for (path, content) in files {
            self.write(&path, &content);
        }
    }

    fn write(&mut self, path: &Path, content: &[u8]) {
        self.check(path, write_whole(path, content));
    }

    fn check(&mut self, path: &Path, written: io::Result<()>) {
        if let Err(error) = written
            && self.trouble.is_none()
        {
            tracing::warn!(path = %path.display(), %error, "a file of the run directory cannot be written");
            self.trouble = Some(cannot_write(path, &error));
        }
    }
}

/// The same record without secrets. Our own identifiers stay exact, so that it can be read back.
fn redacted<T: Clone + serde::Serialize + serde::de::DeserializeOwned>(redactor: &Redactor, record: &T) -> T {
    let Ok(mut value) = serde_json::to_value(record) else {
        return record.clone();
    };
    if !redactor.own_json(&mut value) {
        return record.clone();
    }
    serde_json::from_value(value).expect("invariant: only free text was replaced, by text")
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Why {
    let cause = RunDirCause::CannotWrite { path: path.to_path_buf(), error: error.to_string() };
    Why::new(ObjectRef::thing("artifact-dir", path.display().to_string()), &cause)
}
