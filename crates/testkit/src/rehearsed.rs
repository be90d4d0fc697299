//! A plan run on a simulated cluster, and what it said.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use toolbox_cluster::{Cluster, ClusterInfo, Object, Patience, Query};
use toolbox_engine::event::{Ended, Event, Reporter, Stamped};
use toolbox_engine::journal::{Entry, Records};
use toolbox_engine::plan::{Kind, Outcome, Preview, RunOptions, preview, run};
use toolbox_engine::{Clock, ObjectRef, Plan, Why};
use toolbox_rehearsal::scenario::{Fault, Scenario};
use toolbox_rehearsal::{FloorRequest, World};

/// A simulated cluster. Make it inside `#[tokio::test(start_paused = true)]`.
pub struct Rehearsed {
    /// The cluster as the tools see it.
    pub cluster: Cluster,
    /// Its clock.
    pub clock: Clock,
    world: World,
}

/// What a run said and did.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub outcome: Outcome,
    /// Everything it said, in order.
    pub events: Vec<Stamped>,
    /// What it would need to be resumed or taken back.
    pub journal: Vec<Entry>,
    /// The files it wrote.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Virtual seconds it took.
    pub seconds: f64,
}

impl Rehearsed {
    /// A cluster of a scenario that comes with the product, with faults by name.
    pub async fn new(scenario: &str, faults: &[&str]) -> Self {
        Self::with(scenario, faults, |_| {}).await
    }

    /// The same with changes to the scenario.
    pub async fn with(scenario: &str, faults: &[&str], change: impl FnOnce(&mut Scenario)) -> Self {
        Self::seeded(scenario, faults, 1, change).await
    }

    /// The same with another seed.
    pub async fn seeded(scenario: &str, faults: &[&str], seed: u64, change: impl FnOnce(&mut Scenario)) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().expect("invariant: a stamp"));
        let faults: Vec<Fault> =
            faults.iter().map(|name| name.parse().expect("the test names faults that exist")).collect();
        let mut scenario = Scenario::embedded(scenario).expect("the test names a scenario that exists");
        change(&mut scenario);
        let scenario = scenario.with_faults(&faults);
        let world = World::start(scenario, seed, clock.clone()).await.expect("the scenario can be started");
        let cluster = connect(&world, &clock);
        Self { cluster, clock, world }
    }

    /// One that was started by the test itself.
    pub fn of(world: World, clock: Clock) -> Self {
        let cluster = connect(&world, &clock);
        Self { cluster, clock, world }
    }

    /// Another connection to the same cluster, as another process has it: nothing is shared but the cluster.
    pub fn another(&self) -> Cluster {
        connect(&self.world, &self.clock)
    }

    /// What is on the cluster, by kind and name, without what differs from run to run: uids, versions, times, states.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        self.world.api().dump().iter().map(normal).collect()
    }

    /// Runs a plan to its end.
    pub async fn run(&self, plan: Plan) -> Ran {
        self.run_with(plan, |_| {}).await
    }

    /// Runs a plan with changed options.
    pub async fn run_with(&self, plan: Plan, change: impl FnOnce(&mut RunOptions)) -> Ran {
        let kept = Arc::new(Kept::default());
        let mut options = RunOptions::new(self.clock.clone());
        options.records = kept.clone();
        change(&mut options);
        let started = self.clock.elapsed();
        let outcome = run(plan, options).await;
        let seconds = self.clock.elapsed().saturating_sub(started).as_secs_f64();
        let inner = std::mem::take(&mut *kept.lock());
        Ran { outcome, events: inner.events, journal: inner.journal, files: inner.files, seconds }
    }

    /// What a plan would do.
    pub async fn preview(&self, plan: Plan) -> Vec<Preview> {
        preview(plan, RunOptions::new(self.clock.clone())).await
    }

    /// An object that must be there.
    pub async fn object(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Object {
        let found = self.cluster.get(kind, namespace, name).await;
        found.expect("the rehearsal answers").unwrap_or_else(|| panic_absent(&kind.object(namespace, name)))
    }

    /// Whether an object is there.
    pub async fn has(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> bool {
        matches!(self.cluster.get(kind, namespace, name).await, Ok(Some(_)))
    }

    /// Every object of a kind.
    pub async fn all(&self, kind: &Kind) -> Vec<Object> {
        self.cluster.list(&Query::all(kind)).await.unwrap_or_default()
    }

    /// Creates an object as somebody else, who is not the tool under test.
    pub async fn somebody_creates(&self, object: Value) {
        self.somebody_posts(&path_of(&object), object).await;
    }

    /// The same for a kind that the tools do not know, at its place in the API.
    pub async fn somebody_posts(&self, path: &str, object: Value) {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .expect("invariant: a request");
        let answer: Result<Value, kube::Error> = self.world.client().request(request).await;
        answer.expect("the test creates objects that are in order");
    }

    /// Merges a patch into an object as somebody else.
    pub async fn somebody_changes(&self, kind: &Kind, namespace: Option<&str>, name: &str, patch: Value) {
        let collection = collection(kind, namespace);
        let request = http::Request::patch(format!("{collection}/{name}"))
            .header("content-type", "application/merge-patch+json")
            .body(patch.to_string().into_bytes())
            .expect("invariant: a request");
        let answer: Result<Value, kube::Error> = self.world.client().request(request).await;
        answer.expect("the test changes objects that are there");
    }

    /// Deletes an object as somebody else.
    pub async fn somebody_deletes(&self, kind: &Kind, namespace: Option<&str>, name: &str) {
        let request = http::Request::delete(format!("{}/{name}", collection(kind, namespace)))
            .body(Vec::new())
            .expect("invariant: a request");
        let answer: Result<Value, kube::Error> = self.world.client().request(request).await;
        answer.expect("the test deletes objects that are there");
    }

    /// The least time in which the scenario's causes allow a job, in seconds.
    pub fn floor(&self, request: &FloorRequest) -> f64 {
        self.world.floor(request)
    }

    /// The simulated cluster itself.
    pub fn world(&self) -> &World {
        &self.world
    }
}

fn connect(world: &World, clock: &Clock) -> Cluster {
    let info = ClusterInfo {
        server: "https://rehearsal".to_owned(),
        version: "v1.24.17".to_owned(),
        ..ClusterInfo::default()
    };
    let api = world.api().clone();
    Cluster::from_clients(move || api.client(), info, clock.clone(), Patience::default())
}

/// An object's key and what it is meant to be.
fn normal(object: &Value) -> (String, Value) {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = format!("{}/{}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
    let annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    let annotations: serde_json::Map<_, _> = annotations
        .into_iter()
        .filter(|(name, _)| !name.starts_with("tbx/") && !name.ends_with("operatorframework.io/generated-by"))
        .collect();
    let mut kept = object.clone();
    if let Some(map) = kept.as_object_mut() {
        map.remove("status");
    }
    kept["metadata"] = serde_json::json!({"labels": metadata["labels"], "annotations": annotations});
    (key, kept)
}

fn path_of(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let kind = toolbox_cluster::kinds::find(api_version, kind).expect("the test uses a kind that the tools know");
    collection(&kind, object["metadata"]["namespace"].as_str())
}

fn collection(kind: &Kind, namespace: Option<&str>) -> String {
    let root = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{}", kind.plural),
        None => format!("{root}/{}", kind.plural),
    }
}

#[expect(clippy::panic, reason = "this is how a test's expectation fails")]
fn panic_absent(object: &ObjectRef) -> Object {
    panic!("{object} is not there")
}

impl Ran {
    /// The failure that decided the run, or a failed test.
    pub fn why(&self) -> &Why {
        self.outcome.why.as_ref().expect("the run failed")
    }

    /// How a step ended.
    pub fn ended(&self, step: &str) -> &Ended {
        let found = self.outcome.steps.iter().find(|result| result.id == step);
        &found.expect("the plan has this step").ended
    }

    /// The steps that changed something.
    pub fn changed(&self) -> Vec<&str> {
        self.outcome
            .steps
            .iter()
            .filter(|result| matches!(result.ended, Ended::Changed { .. }))
            .map(|result| result.id.as_str())
            .collect()
    }

    /// The codes of the reasons a step waited for, each once, in order.
    pub fn waited_for(&self, step: &str) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for stamped in &self.events {
            if let Event::Pending { step: of, why } = &stamped.event
                && of == step
                && codes.last().is_none_or(|last| *last != why.code)
            {
                codes.push(why.code.to_string());
            }
        }
        codes
    }

    /// The lines the run noted.
    pub fn notes(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|stamped| match &stamped.event {
                Event::Note { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// What the verb answered.
    pub fn answer(&self) -> &str {
        let report = self.outcome.report.as_ref();
        report.map(|report| report.text.as_str()).unwrap_or_default()
    }

    /// When a step ended, in seconds on the cluster's clock.
    pub fn ended_at(&self, step: &str) -> f64 {
        let found = self.events.iter().find_map(|stamped| match &stamped.event {
            Event::Ended { step: of, .. } if of == step => Some(stamped.t),
            _ => None,
        });
        found.expect("the step ended")
    }
}

#[derive(Default)]
struct Inner {
    events: Vec<Stamped>,
    journal: Vec<Entry>,
    files: BTreeMap<String, Vec<u8>>,
}

#[derive(Default)]
struct Kept(Mutex<Inner>);

impl Kept {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter for Kept {
    fn event(&self, event: &Stamped) {
        self.lock().events.push(event.clone());
    }
}

impl Records for Kept {
    fn journal(&self, entry: &Entry) {
        self.lock().journal.push(entry.clone());
    }

    fn recall(&self, key: &str) -> Option<Value> {
        self.lock().journal.iter().find_map(|entry| match entry {
            Entry::Decided { key: of, value } if of == key => Some(value.clone()),
            _ => None,
        })
    }

    fn file(&self, path: &str, content: &[u8]) {
        self.lock().files.insert(path.to_owned(), content.to_vec());
    }
}
