//! What these tests share: a server, a cluster seen as user `tbx`, an administrator, and a way to run a step.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolbox_cluster::{Cluster, ClusterInfo, Query, Watched, kinds};
use toolbox_engine::event::{Event, Reporter, Stamped};
use toolbox_engine::journal::{Entry, Records};
use toolbox_engine::plan::{Outcome, Plan, Preview, RunOptions, preview, run};
use toolbox_engine::{Clock, ObjectRef, Step, StepCx, StepSpec, Verdict, Why};
use toolbox_rehearsal::{ApiOptions, ApiServer, Fault, FaultRule, KubeVersion};

pub(crate) struct Stage {
    pub(crate) api: ApiServer,
    pub(crate) cluster: Cluster,
    pub(crate) clock: Clock,
    pub(crate) kept: Arc<Kept>,
    admin: kube::Client,
}

/// What a run leaves.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) journal: Mutex<Vec<Entry>>,
    pub(crate) files: Mutex<Vec<(String, String)>>,
}

impl Reporter for Kept {
    fn event(&self, event: &Stamped) {
        self.events.lock().unwrap().push(event.event.clone());
    }
}

impl Records for Kept {
    fn journal(&self, entry: &Entry) {
        self.journal.lock().unwrap().push(entry.clone());
    }
    fn recall(&self, _: &str) -> Option<Value> {
        None
    }
    fn file(&self, path: &str, content: &[u8]) {
        let text = String::from_utf8(content.to_vec()).unwrap();
        self.files.lock().unwrap().push((path.to_owned(), text));
    }
}

impl Kept {
    /// The reasons that were given for waiting, in order.
    pub(crate) fn pending(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let pending = events.iter().filter_map(|event| match event {
            Event::Pending { why, .. } => Some(why.cause.clone()),
            _ => None,
        });
        pending.collect()
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let options =
            ApiOptions { clock: clock.clone(), seed: 7, version: KubeVersion::new(1, 34, 4), openshift: true };
        let api = ApiServer::new(options);
        let info = ClusterInfo {
            server: "https://api.example.test:6443".to_owned(),
            user: Some("tbx".to_owned()),
            ..ClusterInfo::default()
        };
        let cluster = Cluster::from_client(api.client_as("tbx"), info, clock.clone()).with_run_id("run-1");
        Self { admin: api.client(), api, cluster, clock, kept: Arc::default() }
    }

    /// A request of the administrator.
    pub(crate) async fn raw(&self, method: &str, path: &str, body: Value) -> Value {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        self.admin.request(request.body(body).unwrap()).await.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) async fn make_map(&self, name: &str, value: &str) -> Value {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}});
        self.raw("POST", "/api/v1/namespaces/default/configmaps", map).await
    }

    pub(crate) async fn set_map(&self, name: &str, value: &str) {
        self.raw("PATCH", &format!("{MAPS}/{name}"), json!({"data": {"k": value}})).await;
    }

    pub(crate) async fn drop_map(&self, name: &str) {
        self.raw("DELETE", &format!("{MAPS}/{name}"), Value::Null).await;
    }

    pub(crate) fn maps(&self) -> Watched {
        self.cluster.watch(Query::within(&kinds::CONFIG_MAP, "default"))
    }

    /// Makes the API fail for the tools' user only, so that the administrator can go on.
    pub(crate) fn fault(&self, rule: FaultRule) {
        self.api.faults().add(rule.user("tbx"));
    }

    /// The API is away for the tools: watches break and nothing answers.
    pub(crate) fn away(&self, duration: Duration) {
        self.fault(FaultRule::new(Fault::ConnectionRefused).lasting(duration));
        self.api.faults().break_watches("");
    }

    pub(crate) async fn sleep(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    fn options(&self) -> RunOptions {
        let mut options = RunOptions::new(self.clock.clone());
        options.records = self.kept.clone();
        options
    }

    /// Runs a plan of one step.
    pub(crate) async fn step<T, F, R>(&self, run_step: F) -> Result<T, Why>
    where
        T: Clone + Send + Sync + 'static,
        F: FnOnce(StepCx, Cluster) -> R + Send + 'static,
        R: Future<Output = Result<T, Why>> + Send + 'static,
    {
        let found = Arc::new(Mutex::new(None));
        let plan = self.plan(run_step, found.clone());
        let outcome: Outcome = run(plan, self.options()).await;
        let found = found.lock().unwrap().take();
        found.ok_or_else(|| outcome.why.unwrap())
    }

    /// Runs a plan of one step as `--plan` does.
    pub(crate) async fn dry<T, F, R>(&self, run_step: F) -> Preview
    where
        T: Clone + Send + Sync + 'static,
        F: FnOnce(StepCx, Cluster) -> R + Send + 'static,
        R: Future<Output = Result<T, Why>> + Send + 'static,
    {
        let mut options = RunOptions::new(self.clock.clone());
        options.records = self.kept.clone();
        preview(self.plan(run_step, Arc::default()), options).await.remove(0)
    }

    fn plan<T, F, R>(&self, run_step: F, found: Arc<Mutex<Option<T>>>) -> Plan
    where
        T: Clone + Send + Sync + 'static,
        F: FnOnce(StepCx, Cluster) -> R + Send + 'static,
        R: Future<Output = Result<T, Why>> + Send + 'static,
    {
        let mut plan = Plan::new("test");
        let cluster = self.cluster.clone();
        let spec = StepSpec::change("step", "step").deadline(Duration::from_secs(600));
        plan.step(spec, (), move |cx, ()| async move {
            let value = run_step(cx, cluster).await?;
            *found.lock().unwrap() = Some(value.clone());
            Ok(Step::Changed(value, String::new()))
        });
        plan
    }
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Waits until a map has a value; tells when, in seconds.
pub(crate) async fn until_map(cx: &StepCx, cluster: &Cluster, name: &str, value: &str) -> Result<f64, Why> {
    let maps = cluster.watch(Query::within(&kinds::CONFIG_MAP, "default"));
    let meant = ObjectRef::new("v1", "ConfigMap", Some("default"), name);
    cx.wait(maps.changes(), || {
        maps.judge(|maps| match maps.iter().find(|map| map.name() == name) {
            Some(map) if map.text("/data/k") == Some(value) => Verdict::Done(()),
            Some(_) => Verdict::Pending(Why::waiting(meant.clone(), "other", "has another value")),
            None => Verdict::Pending(Why::waiting(meant.clone(), "absent", "has not appeared")),
        })
    })
    .await?;
    Ok(cx.clock().elapsed().as_secs_f64())
}
