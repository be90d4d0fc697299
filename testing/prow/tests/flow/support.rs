//! A command line of the program on a rehearsed cluster, and what is compared afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testing_prow::ProwCommand;
use toolbox_core::cli::{Embedded, EmbeddedEnd};
use toolbox_core::engine::plan::Interrupt;
use toolbox_core::{App, EnvMap};
use toolbox_testkit::Rehearsed;

pub(crate) const JOB: [&str; 3] = ["prow", "gpu-operator", "test_operatorhub"];

/// Runs the program's words; files go below `dir`.
pub(crate) async fn tbx(rehearsed: &Rehearsed, dir: &Path, words: &[&str], interrupt: Interrupt) -> EmbeddedEnd {
    tbx_with(rehearsed, dir, words, interrupt, &EnvMap::default()).await
}

pub(crate) async fn tbx_with(
    rehearsed: &Rehearsed,
    dir: &Path,
    words: &[&str],
    interrupt: Interrupt,
    env: &EnvMap,
) -> EmbeddedEnd {
    let app = App::new("tbx").noun::<ProwCommand>("prow", &[]);
    let dir = dir.display().to_string();
    let all: Vec<&str> =
        ["tbx"].into_iter().chain(words.iter().copied()).chain(["--artifact-dir", dir.as_str()]).collect();
    let embedded = Embedded { app: &app, env, cluster: rehearsed.another(), clock: rehearsed.clock.clone(), interrupt };
    embedded.run(&all).await
}

/// The main job, with further words.
pub(crate) async fn job(rehearsed: &Rehearsed, dir: &Path, further: &[&str]) -> EmbeddedEnd {
    let words: Vec<&str> = JOB.iter().chain(further).copied().collect();
    tbx(rehearsed, dir, &words, Interrupt::default()).await
}

/// A JSON file of a run directory.
pub(crate) fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

/// The lines of a `.jsonl` file.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What differs between two states, key by key.
pub(crate) fn difference(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter(|key| {
            // The lease is the program's own, and stays; events tell what happened.
            !key.starts_with("Lease/") && !key.starts_with("Event/")
        })
        .filter_map(|key| match (before.get(key), after.get(key)) {
            (Some(a), Some(b)) if a == b => None,
            (Some(a), Some(b)) => Some(format!("changed {key}\n  {a}\n  {b}")),
            (Some(_), None) => Some(format!("gone {key}")),
            (None, _) => Some(format!("new {key}")),
        })
        .collect()
}
