//! What was seen of each object, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolbox_cluster::{Object, Watched, kinds};
use toolbox_engine::Redactor;
use toolbox_engine::plan::Kind;

use super::clean::{clean, difference};
use super::wanted;

/// One object, from when it was first seen.
struct Track {
    /// Place of its kind in the order of owners.
    order: usize,
    at: f64,
    first: Value,
    last: Value,
    version: String,
    changes: Vec<Value>,
    is_gone: bool,
}

/// A recording that goes on.
pub(super) struct Tape<'a> {
    namespaces: &'a [String],
    redactor: &'a Redactor,
    /// By uid; no cluster gives one twice.
    tracks: BTreeMap<String, Track>,
}

/// Groups whose definitions are needed to show their objects.
const GROUPS: [&str; 3] = ["nfd.openshift.io", "nfd.k8s-sigs.io", "nvidia.com"];

impl<'a> Tape<'a> {
    pub(super) fn new(namespaces: &'a [String], redactor: &'a Redactor) -> Self {
        Self { namespaces, redactor, tracks: BTreeMap::new() }
    }

    /// Notes everything that is different from the last look.
    pub(super) fn look(&mut self, watches: &[Watched], passed: Duration) {
        let at = (passed.as_secs_f64() * 1000.0).round() / 1000.0;
        for (order, watched) in watches.iter().enumerate() {
            // What cannot be seen at the moment has not gone.
            if watched.trouble().is_some() {
                continue;
            }
            let kind = &watched.query().kind;
            let objects = watched.objects();
            let present: Vec<&Object> = objects.iter().filter(|object| self.is_wanted(kind, object)).collect();
            for object in &present {
                self.see(order, at, object);
            }
            for (uid, track) in self.tracks.iter_mut().filter(|(_, track)| track.order == order && !track.is_gone) {
                if !present.iter().any(|object| object.uid() == uid) {
                    track.is_gone = true;
                    track.changes.push(json!({"at": at, "gone": true}));
                }
            }
        }
    }

    fn is_wanted(&self, kind: &Kind, object: &Object) -> bool {
        if *kind == kinds::CRD {
            return object.text("/spec/group").is_some_and(|group| GROUPS.contains(&group));
        }
        if *kind == kinds::NAMESPACE {
            return wanted(self.namespaces, &kinds::POD, object.name());
        }
        object.namespace().is_none_or(|namespace| wanted(self.namespaces, kind, namespace))
    }

    fn see(&mut self, order: usize, at: f64, object: &Object) {
        let version = object.resource_version().to_owned();
        if self.tracks.get(object.uid()).is_some_and(|track| track.version == version) {
            return;
        }
        let now = clean(object.value(), self.redactor);
        match self.tracks.get_mut(object.uid()) {
            None => {
                let track =
                    Track { order, at, first: now.clone(), last: now, version, changes: Vec::new(), is_gone: false };
                self.tracks.insert(object.uid().to_owned(), track);
            }
            Some(track) => {
                if let Some(set) = difference(&track.last, &now) {
                    track.changes.push(json!({"at": at, "set": set}));
                }
                track.last = now;
                track.version = version;
            }
        }
    }

    /// The scenario's `recorded` section: owners before what they own, then by time.
    pub(super) fn recording(self, began: jiff::Timestamp, passed: Duration) -> Value {
        let mut tracks: Vec<Track> = self.tracks.into_values().collect();
        let name = |track: &Track| {
            let meta = |key: &str| track.first["metadata"][key].as_str().unwrap_or_default().to_owned();
            (meta("namespace"), meta("name"))
        };
        tracks.sort_by(|one, other| {
            (one.order, name(one)).cmp(&(other.order, name(other))).then(one.at.total_cmp(&other.at))
        });
        let objects: Vec<Value> = tracks
            .into_iter()
            .map(|track| json!({"at": track.at, "object": track.first, "changes": track.changes}))
            .collect();
        let seconds = (passed.as_secs_f64() * 1000.0).round() / 1000.0;
        json!({"began": began.to_string(), "seconds": seconds, "objects": objects})
    }
}
