//! `gpu-operator capture-deployment-state`: everything that explains the stack's state, as far as it can be had.
//!
//! Nothing that is missing stops it: an absent operator, a kind that is not served, a log that cannot be read is a line
//! in the manifest, and the rest is captured all the same.

mod collect;
mod describe;
mod gather;
mod items;
mod running;
mod table;

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolbox_core::cluster::{Cluster, Object, kinds};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{Plan, Report, Step, StepCx, StepSpec, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::locate::{Hints, Traces};
use crate::names::VERSION_FILE;
use collect::{Collector, Missing};
pub(crate) use describe::pod as describe_pod;
pub use gather::must_gather_finalizer;
pub(crate) use table::pod_status;

/// Save the state of the GPU stack: lists, YAML, logs and descriptions
///
/// Works when things are broken, also without any operator: what cannot be had is listed with its reason in capture.json
/// and missing.txt. Each item is limited in time and size, and they are read at the same time. The operator's version
/// goes to gpu_operator.version; the one that was asked for is compared with what its pod and its log say.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CaptureArgs {
    /// The operator's namespace, when it cannot be found out
    #[arg(long, value_name = "NAMESPACE", value_parser = toolbox_core::cli::namespace)]
    namespace: Option<String>,
}

/// What to capture, and where to put it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureSpec {
    /// Where the operator may be.
    pub hints: Hints,
    /// The version that was asked for, when the caller knows.
    pub asked: Option<String>,
    /// A folder of the run directory for the files; empty for the run directory itself.
    pub folder: String,
}

impl From<CaptureArgs> for CaptureSpec {
    fn from(args: CaptureArgs) -> Self {
        Self {
            hints: Hints { namespace: args.namespace.filter(|name| !name.is_empty()), version: None },
            ..Self::default()
        }
    }
}

/// What was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The operator's version, when there is an operator.
    pub version: Option<String>,
    /// Files with their sizes in bytes.
    pub files: Vec<(String, usize)>,
    /// What is missing: file and reason.
    pub missing: Vec<(String, String)>,
}

impl Captured {
    /// What is printed.
    pub fn report(&self) -> Report {
        let version = self.version.as_deref().unwrap_or("MISSING");
        let mut text = format!("operator {version}, {} files", self.files.len());
        if !self.missing.is_empty() {
            let _ = write!(text, ", {} missing:", self.missing.len());
            for (file, reason) in &self.missing {
                let _ = write!(text, "\n  {file}: {reason}");
            }
        }
        Report { text, json: self.manifest() }
    }

    fn manifest(&self) -> Value {
        let files: Vec<Value> = self.files.iter().map(|(file, bytes)| json!({"file": file, "bytes": bytes})).collect();
        let missing: Vec<Value> =
            self.missing.iter().map(|(file, reason)| json!({"file": file, "reason": reason})).collect();
        json!({"operator_version": self.version, "files": files, "missing": missing})
    }
}

fn describe(id: &str) -> StepSpec {
    let reads = [
        &kinds::NODE,
        &kinds::MACHINE,
        &kinds::POD,
        &kinds::DAEMON_SET,
        &kinds::EVENT,
        &kinds::SUBSCRIPTION,
        &kinds::CSV,
        &kinds::CLUSTER_POLICY,
    ];
    let spec = StepSpec::ask(id, "the state of the GPU stack is saved").deadline(std::time::Duration::from_secs(300));
    reads.iter().fold(spec, |spec, kind| spec.does(Effect::any(Act::Read, kind, None))).does(Effect::any(
        Act::Logs,
        &kinds::POD,
        None,
    ))
}

/// Adds the step that captures.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &CaptureSpec, after: After) -> Out<Captured> {
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe("gpu-operator.capture"), after, |cx, ()| async move {
        let captured = Box::pin(capture(&cx, &cluster, &spec)).await;
        let what = captured.report().text;
        let what = what.lines().next().unwrap_or_default().to_owned();
        Ok(Step::AlreadySo(captured, what))
    })
}

/// Adds the same as a finalizer: it runs whatever happens before.
pub fn finalizer(plan: &mut Plan, cluster: &Cluster, spec: &CaptureSpec) {
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.finalizer(describe("gpu-operator.capture"), |cx| async move {
        let captured = Box::pin(capture(&cx, &cluster, &spec)).await;
        let what = captured.report().text;
        let what = what.lines().next().unwrap_or_default().to_owned();
        Ok(Step::AlreadySo((), what))
    });
}

/// Captures. Never fails: what is missing is part of the answer.
pub(crate) async fn capture(cx: &StepCx, cluster: &Cluster, spec: &CaptureSpec) -> Captured {
    let collector = Collector::new(cx, cluster, &spec.folder);
    let traces = collector.limited("the operator", Box::pin(Traces::read(cluster))).await;
    let operator = match traces {
        Ok(traces) => match traces.operator(&spec.hints) {
            Ok(Some(operator)) => Ok(operator),
            Ok(None) => Err(Traces::absence(&spec.hints).cause),
            Err(why) => Err(why.cause),
        },
        Err(problem) => Err(problem),
    };
    let seen = Box::pin(items::collect(&collector, operator.as_ref().ok(), spec)).await;
    let version = operator.as_ref().ok().map(|operator| operator.version.to_string());
    match &operator {
        Ok(operator) => {
            collector.write(VERSION_FILE, &format!("{}\n", operator.version));
            running::record(cx, &collector, operator, &seen, spec.asked.as_deref());
        }
        Err(problem) => collector.missing(Missing::of(VERSION_FILE, problem)),
    }
    let captured = collector.finish(version);
    let manifest = serde_json::to_string_pretty(&captured.manifest()).unwrap_or_default();
    let lines: Vec<String> = captured.missing.iter().map(|(file, reason)| format!("{file}: {reason}\n")).collect();
    let place = |name: &str| collect::place(&spec.folder, name);
    cx.file(&place("capture.json"), format!("{manifest}\n"));
    cx.file(&place("missing.txt"), lines.concat());
    captured
}

impl Verb for CaptureSpec {
    fn name(&self) -> VerbName {
        VerbName::new("gpu_operator", "capture_deployment_state")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("gpu_operator capture_deployment_state");
        let spec = Self { hints: self.hints.or_env(&env.env)?, ..*self };
        let captured = steps(&mut plan, &env.cluster, &spec, After::nothing());
        plan.answer(&captured, Captured::report);
        Ok(plan)
    }
}

/// The pods of a DaemonSet, by their owner.
pub(crate) fn pods_of<'a>(set: &Object, pods: &'a [Object]) -> Vec<&'a Object> {
    pods.iter().filter(|pod| pod.owner_uids().contains(&set.uid())).collect()
}
