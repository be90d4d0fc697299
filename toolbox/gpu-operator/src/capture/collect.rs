//! Collecting items at the same time, each bounded in time and size.

use std::fmt::{Display, Write as _};
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolbox_core::cluster::{Cluster, LogOptions, Object, Query};
use toolbox_core::config;
use toolbox_core::engine::StepCx;

use super::Captured;

/// How long one item may take.
const ITEM_TIME: Duration = Duration::from_secs(30);
/// How much of one item is kept.
pub(super) const ITEM_SIZE: usize = 8 << 20;
/// How many of the last lines of a container's log are asked for: what went wrong is at the end.
pub(super) const LOG_LINES: usize = 50_000;

/// An item that could not be had.
pub(super) struct Missing {
    file: String,
    reason: String,
}

impl Missing {
    pub(super) fn of(file: &str, reason: impl Display) -> Self {
        Self { file: file.to_owned(), reason: reason.to_string() }
    }
}

/// `folder/name`, or `name`.
pub(super) fn place(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The last lines of a log that fit into so many bytes, each with where it comes from, and a note where something was cut
/// off: `lines` is how many were asked for.
pub(super) fn ending(log: &str, lines: usize, bytes: usize, place: &str) -> String {
    let all: Vec<&str> = log.lines().collect();
    let mut left = bytes;
    let fit = all.iter().rev().take_while(|line| {
        let length = place.len() + line.len() + 2;
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    });
    let first = all.len() - fit.count();
    let mut text = String::new();
    if first > 0 || all.len() >= lines {
        let _ = writeln!(text, "{place} [cut here: only the last {} lines are kept]", all.len() - first);
    }
    text.extend(all[first..].iter().flat_map(|line| [place, " ", *line, "\n"]));
    text
}

/// Takes items and remembers what was had and what was not.
pub(super) struct Collector {
    cx: StepCx,
    cluster: Cluster,
    folder: String,
    captured: Mutex<Captured>,
}

impl Collector {
    pub(super) fn new(cx: &StepCx, cluster: &Cluster, folder: &str) -> Self {
        Self { cx: cx.clone(), cluster: cluster.clone(), folder: folder.to_owned(), captured: Mutex::default() }
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        self.cluster.now()
    }

    /// A future's result, or why there is none within the time of an item.
    pub(super) async fn limited<T, E: Display>(
        &self,
        what: &str,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        tokio::select! {
            biased;
            done = future => done.map_err(|error| error.to_string()),
            () = self.cx.clock().sleep(ITEM_TIME) => Err(format!(
                "{what} did not answer within {} s",
                ITEM_TIME.as_secs()
            )),
        }
    }

    /// The objects of a query; each of the files is missing when they cannot be had.
    pub(super) async fn list(&self, query: &Query, files: &[&str]) -> Option<Vec<Object>> {
        match self.limited("the list", self.cluster.list(query)).await {
            Ok(objects) => Some(objects),
            Err(reason) => {
                for file in files {
                    self.missing(Missing::of(file, format!("{query}: {reason}")));
                }
                None
            }
        }
    }

    /// A container's log, its last lines.
    pub(super) async fn log(&self, pod: &Object, container: &str, previous: bool) -> Result<String, String> {
        let options = LogOptions { tail_lines: u64::try_from(LOG_LINES).ok(), previous, ..LogOptions::default() };
        let namespace = pod.namespace().unwrap_or_default();
        let log = self.cluster.log(namespace, pod.name(), Some(container), &options);
        self.limited("the log", log).await
    }

    /// Keeps a file, cut where it is too long.
    pub(super) fn write(&self, file: &str, content: &str) {
        let mut end = content.len().min(ITEM_SIZE);
        while !content.is_char_boundary(end) {
            end -= 1;
        }
        let kept = &content[..end];
        let path = place(&self.folder, file);
        if end < content.len() {
            let note = format!("{kept}\n[cut here: {} more bytes]\n", content.len() - end);
            self.cx.file(&path, note);
        } else {
            self.cx.file(&path, kept);
        }
        self.lock().files.push((file.to_owned(), end));
    }

    /// Keeps objects as YAML, one document each.
    pub(super) fn yaml(&self, file: &str, objects: &[Object]) {
        let values: Vec<&serde_json::Value> = objects.iter().map(Object::value).collect();
        match config::to_yaml_documents(&values) {
            Ok(text) => self.write(file, &text),
            Err(error) => self.missing(Missing::of(file, error)),
        }
    }

    pub(super) fn missing(&self, missing: Missing) {
        self.lock().missing.push((missing.file, missing.reason));
    }

    /// What was captured, in the order of the files' names.
    pub(super) fn finish(&self, version: Option<String>) -> Captured {
        let mut captured = std::mem::take(&mut *self.lock());
        captured.files.sort();
        captured.missing.sort();
        captured.version = version;
        captured
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_end_and_says_so() {
        let log = "one\ntwo\nthree\n";
        assert_eq!(ending(log, 10, 1000, "[p]"), "[p] one\n[p] two\n[p] three\n");
        let cut = "[p] [cut here: only the last 2 lines are kept]\n[p] two\n[p] three\n";
        assert_eq!(ending(log, 10, "[p] two\n[p] three\n".len(), "[p]"), cut);
        // The server has cut it already.
        assert!(ending(log, 3, 1000, "[p]").starts_with("[p] [cut here: only the last 3 lines are kept]\n"));
        assert_eq!(ending("", 10, 1000, "[p]"), "");
    }
}
