//! A rehearsed cluster, and runs on it that keep everything in memory.

#![expect(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolbox_core::cluster::olm::PackageRef;
use toolbox_core::cluster::olm::steps::{InstallSpec, InstanceSpec, install, instance};
use toolbox_core::cluster::{Cluster, ClusterInfo, kinds};
use toolbox_core::engine::event::{Ended, Event, Reporter, Stamped};
use toolbox_core::engine::journal::{Entry, Records};
use toolbox_core::engine::plan::{After, Outcome, RunOptions, run};
use toolbox_core::engine::{Clock, Exit, Plan, Why};
use toolbox_core::{Verb, VerbEnv};
use toolbox_rehearsal::scenario::Fault;
use toolbox_rehearsal::{Scenario, World};

/// Keeps events and files.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) events: Mutex<Vec<Stamped>>,
    pub(crate) files: Mutex<BTreeMap<String, String>>,
    pub(crate) journal: Mutex<Vec<Entry>>,
}

impl Reporter for Memory {
    fn event(&self, event: &Stamped) {
        self.events.lock().unwrap().push(event.clone());
    }
}

impl Records for Memory {
    fn journal(&self, entry: &Entry) {
        self.journal.lock().unwrap().push(entry.clone());
    }
    fn recall(&self, _: &str) -> Option<Value> {
        None
    }
    fn file(&self, path: &str, content: &[u8]) {
        let text = String::from_utf8_lossy(content).into_owned();
        self.files.lock().unwrap().insert(path.to_owned(), text);
    }
}

/// A finished run.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) memory: Arc<Memory>,
}

impl Ran {
    /// The failure that decided the run.
    pub(crate) fn why(&self) -> &Why {
        let why = self.outcome.why.as_ref();
        why.unwrap_or_else(|| panic!("the run has not failed: {:#?}", self.outcome.steps))
    }

    /// Fails the test unless the run is done.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        let why = self.outcome.why.as_ref();
        let lines = why.map(|why| format!("{why}\nnext: {}\n{:#?}", why.next, why.evidence));
        assert_eq!(self.outcome.exit, Exit::Done, "{}", lines.unwrap_or_default());
        self
    }

    /// What each step changed.
    pub(crate) fn changes(&self) -> Vec<String> {
        let ended = self.outcome.steps.iter();
        ended
            .filter_map(|step| match &step.ended {
                Ended::Changed { what } => Some(format!("{}: {what}", step.id)),
                _ => None,
            })
            .collect()
    }

    /// When a step ended, in seconds of the run.
    pub(crate) fn ended_at(&self, id: &str) -> f64 {
        let events = self.memory.events.lock().unwrap();
        let found = events.iter().find(|event| matches!(&event.event, Event::Ended { step, .. } if step == id));
        found.unwrap_or_else(|| panic!("{id} has not ended")).t
    }

    /// A file of the run directory.
    pub(crate) fn file(&self, path: &str) -> String {
        let files = self.memory.files.lock().unwrap();
        let names: Vec<&String> = files.keys().collect();
        files.get(path).unwrap_or_else(|| panic!("no file {path} among {names:?}")).clone()
    }

    /// The last event's time.
    pub(crate) fn end(&self) -> f64 {
        self.memory.events.lock().unwrap().last().map_or(0.0, |event| event.t)
    }
}

/// A rehearsed cluster.
pub(crate) struct Rehearsal {
    pub(crate) world: World,
    pub(crate) cluster: Cluster,
    pub(crate) clock: Clock,
}

impl Rehearsal {
    /// A scenario by name, with faults.
    pub(crate) async fn start(scenario: &str, faults: &[Fault]) -> Self {
        let scenario = Scenario::embedded(scenario).unwrap().with_faults(faults);
        Self::of(scenario).await
    }

    /// A scenario.
    pub(crate) async fn of(scenario: Scenario) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let world = World::start(scenario, 7, clock.clone()).await.unwrap();
        let cluster = Cluster::from_client(world.client(), ClusterInfo::default(), clock.clone());
        Self { world, cluster, clock }
    }

    /// Runs a plan.
    pub(crate) async fn run(&self, plan: Plan) -> Ran {
        let memory = Arc::new(Memory::default());
        let mut options = RunOptions::new(self.clock.clone());
        options.records = memory.clone();
        let outcome = run(plan, options).await;
        Ran { outcome, memory }
    }

    /// Runs a verb.
    pub(crate) async fn verb(&self, verb: impl Verb + 'static) -> Ran {
        let env = VerbEnv::new(self.cluster.clone());
        let plan = Box::new(verb).plan(&env).unwrap();
        self.run(plan).await
    }

    /// Installs node feature discovery and waits for its operand, as the tool for it does.
    pub(crate) async fn with_nfd(self) -> Self {
        let mut plan = Plan::new("nfd");
        let package = PackageRef::new("nfd", "redhat-operators");
        let spec = InstallSpec { fallback_namespace: "openshift-nfd", ..InstallSpec::new("nfd", "NFD", package) };
        let installed = install(&mut plan, &self.cluster, spec, After::nothing());
        let spec = InstanceSpec {
            id: "nfd",
            title: "NFD's instance",
            kind: kinds::NODE_FEATURE_DISCOVERY,
            change: None,
            deadline: std::time::Duration::from_secs(300),
        };
        let _ = instance(&mut plan, &self.cluster, spec, &installed);
        self.run(plan).await.done();
        self.clock.sleep(std::time::Duration::from_secs(120)).await;
        self
    }
}
