//! One job on a small cluster with faults of the API, and what has to be so afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use testing_prow::OperatorHubFlow;
use toolbox_core::engine::Exit;
use toolbox_core::engine::journal::Entry;
use toolbox_core::{Verb, VerbEnv};
use toolbox_rehearsal::scenario::{ApiFault, Scenario};
use toolbox_testkit::{Ran, Rehearsed};

/// How many times the requests of an undisturbed job a disturbed one may make.
pub(crate) const REQUESTS_AT_MOST: f64 = 4.0;

/// A job that has ended, on a cluster that has come to rest.
pub(crate) struct Ended {
    pub(crate) ran: Ran,
    /// Every object, without what the server or chance decides.
    pub(crate) state: Vec<String>,
    pub(crate) requests: u64,
    /// Requests and watches that met a fault.
    pub(crate) hits: u64,
}

/// The job's own steps are all there; the cluster has no more nodes than they need.
fn small(scenario: &mut Scenario) {
    scenario.nodes.truncate(1);
    for set in scenario.machine_sets.iter_mut().skip(1) {
        set.replicas = Some(0);
    }
}

/// The whole job with these faults.
pub(crate) async fn job(faults: &[ApiFault]) -> Ended {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        small(scenario);
        scenario.api_faults = faults.to_vec();
    })
    .await;
    let flow = OperatorHubFlow::new(None, None).unwrap();
    let plan = Box::new(flow).plan(&VerbEnv::new(rehearsed.cluster.clone())).unwrap();
    let ran = rehearsed.run(plan).await;
    let requests = rehearsed.cluster.traffic().requests.values().sum();
    let hits = rehearsed.world().api().faults().hits();
    rehearsed.clock.sleep(Duration::from_secs(120)).await;
    let state = state(&rehearsed.world().api().dump());
    Ended { ran, state, requests, hits }
}

impl Ended {
    /// What was made and not deleted again, by kind.
    fn made(&self) -> BTreeMap<String, i64> {
        let mut made = BTreeMap::new();
        let mut uids = std::collections::BTreeSet::new();
        for entry in &self.ran.journal {
            if let Entry::Made { object, .. } = entry
                && uids.insert(object.uid.clone())
            {
                *made.entry(object.kind.clone()).or_default() += 1;
            }
        }
        made
    }

    /// What is wrong with it, compared with the job that nothing disturbed; empty when nothing is.
    pub(crate) fn differs(&self, undisturbed: &Self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.ran.outcome.exit != Exit::Done {
            let why = self.ran.outcome.why.as_ref().map(ToString::to_string);
            wrong.push(format!("exit {:?}: {}", self.ran.outcome.exit, why.unwrap_or_default()));
        }
        wrong.extend(difference(&undisturbed.state, &self.state));
        if self.made() != undisturbed.made() {
            wrong.push(format!("made {:?} instead of {:?}", self.made(), undisturbed.made()));
        }
        let ratio = self.requests as f64 / undisturbed.requests as f64;
        if ratio > REQUESTS_AT_MOST {
            wrong.push(format!("{} requests, {ratio:.1} times {}", self.requests, undisturbed.requests));
        }
        wrong
    }
}

/// What one side has and the other has not; each object as often as it is there.
fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let mut count: BTreeMap<&String, i64> = BTreeMap::new();
    for object in before {
        *count.entry(object).or_default() -= 1;
    }
    for object in after {
        *count.entry(object).or_default() += 1;
    }
    let lines = count.into_iter().filter(|(_, count)| *count != 0);
    lines.map(|(object, count)| format!("{count:+} {object}")).collect()
}

/// All objects, without uids, times, versions, addresses and generated parts of names.
fn state(dump: &[Value]) -> Vec<String> {
    let told = |object: &&Value| !matches!(object["kind"].as_str(), Some("Event" | "Lease"));
    let mut state: Vec<String> = dump.iter().filter(told).map(|object| plain(&bare(object).to_string())).collect();
    state.sort();
    state
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !key.starts_with("tbx/"));
        }
    }
    object
}

/// The text with each word that is a uid, a time, an address or a generated suffix replaced.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(['"', ' ', ',', '/']) {
        let (word, end) = word.split_at(word.trim_end_matches(['"', ' ', ',', '/']).len());
        out.push_str(&one(word));
        out.push_str(end);
    }
    out
}

fn one(word: &str) -> String {
    let of = |word: &str, test: fn(char) -> bool| !word.is_empty() && word.chars().all(test);
    let parts: Vec<&str> = word.split('-').collect();
    if word.len() == 36 && parts.len() == 5 && parts.iter().all(|part| of(part, |c| c.is_ascii_hexdigit())) {
        return "<uid>".to_owned();
    }
    if word.len() >= 20 && word.starts_with("20") && word.ends_with('Z') && word.as_bytes()[10] == b'T' {
        return "<time>".to_owned();
    }
    if word.split('.').count() == 4 && word.split('.').all(|part| of(part, |c| c.is_ascii_digit())) {
        return "<address>".to_owned();
    }
    let generated = |part: &str| {
        let digits = part.len() >= 8 && of(part, |c| c.is_ascii_hexdigit());
        digits || part.len() == 5 && of(part, |c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
    };
    parts.iter().map(|part| if generated(part) { "*" } else { part }).collect::<Vec<_>>().join("-")
}
