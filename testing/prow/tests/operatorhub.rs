//! The whole job on a rehearsed cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use testing_prow::OperatorHubFlow;
use toolbox_core::cluster::{Cluster, ClusterInfo};
use toolbox_core::engine::event::{Ended, Event, Reporter, Stamped};
use toolbox_core::engine::journal::{Entry, Records};
use toolbox_core::engine::plan::{Outcome, RunOptions, run};
use toolbox_core::engine::{Clock, Exit};
use toolbox_core::{Verb, VerbEnv};
use toolbox_rehearsal::scenario::Fault;
use toolbox_rehearsal::{FloorRequest, Scenario, World};

#[derive(Default)]
struct Memory {
    events: Mutex<Vec<Stamped>>,
    files: Mutex<BTreeMap<String, String>>,
}

impl Reporter for Memory {
    fn event(&self, event: &Stamped) {
        self.events.lock().unwrap().push(event.clone());
    }
}

impl Records for Memory {
    fn journal(&self, _: &Entry) {}
    fn recall(&self, _: &str) -> Option<Value> {
        None
    }
    fn file(&self, path: &str, content: &[u8]) {
        let text = String::from_utf8_lossy(content).into_owned();
        self.files.lock().unwrap().insert(path.to_owned(), text);
    }
}

struct Job {
    world: World,
    cluster: Cluster,
    clock: Clock,
}

struct Done {
    outcome: Outcome,
    memory: Arc<Memory>,
    seconds: f64,
}

impl Job {
    async fn start(scenario: &str, faults: &[Fault]) -> Self {
        let scenario = Scenario::embedded(scenario).unwrap().with_faults(faults);
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let world = World::start(scenario, 7, clock.clone()).await.unwrap();
        let cluster = Cluster::from_client(world.client(), ClusterInfo::default(), clock.clone());
        Self { world, cluster, clock }
    }

    async fn run(&self) -> Done {
        let memory = Arc::new(Memory::default());
        let mut options = RunOptions::new(self.clock.clone());
        options.records = memory.clone();
        let flow = Box::new(OperatorHubFlow::new(None, None).unwrap());
        let plan = flow.plan(&VerbEnv::new(self.cluster.clone())).unwrap();
        let before = self.clock.elapsed();
        let outcome = run(plan, options).await;
        let seconds = (self.clock.elapsed() - before).as_secs_f64();
        Done { outcome, memory, seconds }
    }
}

impl Done {
    fn ended(&self, id: &str) -> &Ended {
        let found = self.outcome.steps.iter().find(|step| step.id == id);
        &found.unwrap_or_else(|| panic!("no step {id}")).ended
    }

    fn at(&self, id: &str) -> f64 {
        let events = self.memory.events.lock().unwrap();
        let found = events.iter().find(|event| matches!(&event.event, Event::Ended { step, .. } if step == id));
        found.unwrap_or_else(|| panic!("{id} has not ended")).t
    }

    fn story(&self) -> String {
        let steps = self.outcome.steps.iter();
        steps.map(|step| format!("{:>8.1} {} {:?}\n", self.at(&step.id), step.id, step.ended)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_job_takes_no_longer_than_the_cluster_itself_and_changes_nothing_when_run_again() {
    let job = Job::start("default", &[]).await;
    let request = FloorRequest {
        instance_type: "g4dn.xlarge".to_owned(),
        replicas: 1,
        burn_seconds: 300,
        gpu_package: "gpu-operator-certified".to_owned(),
        nfd_package: "nfd".to_owned(),
    };
    let floor = job.world.floor(&request);
    let done = job.run().await;
    println!("floor {floor}, took {}\n{}", done.seconds, done.story());
    assert_eq!(done.outcome.exit, Exit::Done, "{:?}", done.outcome.why);
    assert!(done.seconds <= floor * 1.02, "{} s, floor {floor} s\n{}", done.seconds, done.story());
    let machines = done.at("gpu-operator.driver");
    assert!(done.at("gpu-operator.cluster-policy") < machines, "the installation is off the critical path");
    {
        let files = done.memory.files.lock().unwrap();
        assert_eq!(files["operator.version"], "1.11.0\n");
        for file in [
            "ocp.version",
            "ci_artifact.git_version",
            "custom-prow-metadata.json",
            "gpu_operator.version",
            "capture.json",
        ] {
            assert!(files.contains_key(file), "{file}");
        }
    }

    let again = job.run().await;
    assert_eq!(again.outcome.exit, Exit::Done, "{:?}", again.outcome.why);
    let changed: Vec<&str> = again
        .outcome
        .steps
        .iter()
        .filter(|step| matches!(step.ended, Ended::Changed { .. }) && !step.id.starts_with("gpu-operator.burn"))
        .map(|step| step.id.as_str())
        .collect();
    assert_eq!(changed, Vec::<&str>::new());
    assert!(matches!(again.ended("cluster.machines"), Ended::Skipped { .. }));
}

#[tokio::test(start_paused = true)]
async fn each_fault_ends_the_job_with_its_own_cause() {
    let expected = [
        (Fault::QuotaExhausted, Exit::Failed, "quota-exhausted"),
        // OLM installs nothing while any catalog is away, and NFD's installation is the first to notice.
        (Fault::CatalogNotReady, Exit::Failed, "other-catalog"),
        (Fault::SecondOperatorGroup, Exit::Failed, "second-operator-group"),
        (Fault::ImagePullFailure, Exit::Failed, "image-pull-failure"),
        (Fault::DriverCrashLoop, Exit::Failed, "no-kernel-headers"),
        (Fault::NoGpuLabel, Exit::TimedOut, "no-gpu-label"),
        (Fault::NodeNotReady, Exit::TimedOut, "node-not-ready"),
        (Fault::ValidatorFailed, Exit::Failed, "validator-failed"),
        (Fault::GpuFaulty, Exit::Failed, "gpu-faulty"),
    ];
    let mut wrong = Vec::new();
    for (fault, exit, code) in expected {
        let done = Job::start("default", &[fault]).await.run().await;
        let why = done.outcome.why.as_ref().unwrap_or_else(|| panic!("{fault}: no failure\n{}", done.story()));
        println!("{fault}: {why}\n  next: {}", why.next);
        if (done.outcome.exit, why.code.as_ref()) != (exit, code) || why.next.is_empty() {
            wrong.push(format!("{fault}: {:?} {} {why}", done.outcome.exit, why.code));
        }
        let captured = done.memory.files.lock().unwrap().contains_key("capture.json");
        assert!(captured, "{fault}: the state is captured all the same");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_does_not_fail_the_job() {
    for fault in [Fault::ZoneOutOfStock, Fault::ApiRestart, Fault::ExpiredWatch, Fault::Throttled] {
        let done = Job::start("default", &[fault]).await.run().await;
        assert_eq!(done.outcome.exit, Exit::Done, "{fault}: {:?}\n{}", done.outcome.why, done.story());
    }
}
