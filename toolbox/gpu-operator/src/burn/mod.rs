//! `gpu-operator run-gpu-burn`: every GPU of every GPU node computes for a while and must compute right.

mod pod;
mod result;
mod verdict;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use toolbox_core::cluster::{Cluster, LogOptions, Object, Query, kinds};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::why::Evidence;
use toolbox_core::engine::{ObjectRef, Plan, Report, Step, StepCx, StepSpec, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::count;
use crate::names::{BURN_IMAGE, BURN_NAMESPACE};
use crate::wait::LOOK_AGAIN;
use pod::{APP, BurnNode, CONTAINER, MapNames};
pub(crate) use pod::{allocatable_gpus, is_gpu_node};
use result::{BurnCause, judge, settled};
use verdict::Judge;

/// Pulling an image of several gigabytes and compiling, on top of the run itself.
const PREPARATION: Duration = Duration::from_secs(1200);
/// How many of the last lines of a log are read: the result is at its end, after many hours of progress maybe.
const LOG_LINES: u64 = 2000;

/// Burn every GPU of every GPU node, and check its results
///
/// One pod per GPU node multiplies matrices on all of the node's GPUs at the same time and compares the products. A GPU
/// passes when the log says OK for it; a missing log is a failure, and so is a GPU that was not tested. The pods run in
/// namespace `default` with the label app=gpu-burn and are deleted at the end, together with two ConfigMaps whose names
/// begin with gpu-burn-entrypoint and gpu-burn-src.
///
/// The program is compiled in the pod, which needs an image with nvcc; an image that brings a `gpu_burn` program of its
/// own is used as it is, as long as it prints `Tested N GPUs:` and `GPU I: OK` or `GPU I: FAULTY`.
#[derive(Clone, Debug, clap::Args)]
pub struct BurnArgs {
    /// How long each GPU computes, in seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    runtime: u64,
    /// The image to run: a CUDA devel image, or one with a gpu_burn program
    #[arg(long, default_value = BURN_IMAGE, value_name = "IMAGE", value_parser = image)]
    image: String,
}

/// An empty image counts as not given: scripts pass it.
fn image(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(BURN_IMAGE.to_owned());
    }
    let sign = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if text.chars().all(sign) { Ok(text.to_owned()) } else { Err("this is no name of an image".to_owned()) }
}

/// A burn with its arguments checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurnSpec {
    /// How long each GPU computes.
    pub runtime: Duration,
    /// The image.
    pub image: String,
}

impl Default for BurnSpec {
    fn default() -> Self {
        Self { runtime: Duration::from_secs(300), image: BURN_IMAGE.to_owned() }
    }
}

impl From<BurnArgs> for BurnSpec {
    fn from(args: BurnArgs) -> Self {
        Self { runtime: Duration::from_secs(args.runtime), image: args.image }
    }
}

/// What a burn found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burnt {
    /// Each node with the number of its GPUs, all of them good.
    pub nodes: Vec<(String, u32)>,
}

impl Burnt {
    /// What is printed.
    pub fn report(&self) -> Report {
        let lines: Vec<String> =
            self.nodes.iter().map(|(node, gpus)| format!("{node}: {gpus} of {gpus} GPUs OK")).collect();
        let nodes: Vec<_> =
            self.nodes.iter().map(|(node, gpus)| json!({"node": node, "gpus": gpus, "faulty": []})).collect();
        Report { text: lines.join("\n"), json: json!({"nodes": nodes}) }
    }
}

/// What this run made and has to take away again.
type Temporary = Arc<Mutex<Vec<ObjectRef>>>;

fn remember(temporary: &Temporary, object: &Object) {
    let mut made = temporary.lock().unwrap_or_else(PoisonError::into_inner);
    if !made.contains(&object.refer()) {
        made.push(object.refer());
    }
}

/// Adds the steps of a burn. The pods and ConfigMaps are deleted by a finalizer, whatever happens.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &BurnSpec, after: After) -> Out<Burnt> {
    let temporary = Temporary::default();
    let nodes = nodes_step(plan, cluster, after);
    let config = config_step(plan, cluster, &temporary, nodes);
    let pods = pods_step(plan, cluster, spec, &temporary, nodes, config);
    let burnt = burn_step(plan, cluster, spec, nodes, pods);
    clean_up(plan, cluster, temporary);
    burnt
}

fn nodes_step(plan: &mut Plan, cluster: &Cluster, after: After) -> Out<Vec<BurnNode>> {
    let describe = crate::asking("gpu-operator.burn-nodes", "the GPU nodes to burn").does(Effect::any(
        Act::Read,
        &kinds::NODE,
        None,
    ));
    let cluster = cluster.clone();
    plan.step(describe, after, |_, ()| async move {
        let nodes = cluster.list(&Query::all(&kinds::NODE)).await?;
        match pod::burn_nodes(&nodes) {
            Ok(found) => {
                let text: Vec<String> =
                    found.iter().map(|node| format!("{} ({})", node.name, count(node.gpus as usize, "GPU"))).collect();
                Ok(Step::AlreadySo(found, text.join(", ")))
            }
            Err((node, cause)) => {
                let object =
                    node.map_or_else(|| kinds::NODE.object(None, "<nvidia.com/gpu.present=true>"), |node| node.refer());
                Err(Why::new(object, &cause))
            }
        }
    })
}

fn config_step(plan: &mut Plan, cluster: &Cluster, temporary: &Temporary, nodes: Out<Vec<BurnNode>>) -> Out<MapNames> {
    let describe = StepSpec::change("gpu-operator.burn-config", "the burn's script and source").does(Effect::decided(
        Act::Apply,
        &kinds::CONFIG_MAP,
        Some(BURN_NAMESPACE),
        "this run",
    ));
    let (cluster, temporary) = (cluster.clone(), temporary.clone());
    plan.step(describe, nodes.done(), |cx, ()| async move {
        let suffix: String =
            cx.decide("gpu-operator.burn-config.suffix", || format!("{:x}", cx.clock().now().as_microsecond()));
        let names = MapNames::of(&suffix);
        for manifest in [pod::entrypoint(&names), pod::source(&names)] {
            // Whether it is new or, when a run is resumed, there already: nobody but this run has the name.
            let applied = cluster.apply(&cx, manifest).await?;
            remember(&temporary, &applied.object);
        }
        let what = format!("ConfigMaps {} and {}", names.entrypoint, names.source);
        Ok(Step::Changed(names, what))
    })
}

fn pods_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &BurnSpec,
    temporary: &Temporary,
    nodes: Out<Vec<BurnNode>>,
    config: Out<MapNames>,
) -> Out<Vec<Object>> {
    let pods = |act| Effect::decided(act, &kinds::POD, Some(BURN_NAMESPACE), "the GPU nodes");
    let describe = StepSpec::change("gpu-operator.burn-pods", "one burn pod per GPU node")
        .does(pods(Act::Create))
        .does(pods(Act::Delete))
        .leaves("nothing: the pods are deleted at the end");
    let (cluster, temporary, spec) = (cluster.clone(), temporary.clone(), spec.clone());
    plan.step(describe, (nodes, config), move |cx, (nodes, maps)| async move {
        let mut made = Vec::new();
        for node in nodes.iter() {
            remove_stale(&cx, &cluster, &pod::pod_name(&node.name)).await?;
            let manifest = pod::pod(node, &spec.image, spec.runtime.as_secs(), &maps);
            let applied = cluster.create(&cx, manifest).await?;
            remember(&temporary, &applied.object);
            made.push(applied.object);
        }
        let what = format!("{} in namespace {BURN_NAMESPACE}", count(made.len(), "pod"));
        Ok(Step::Changed(made, what))
    })
}

/// Deletes a pod that an earlier burn left, and waits until its name is free.
async fn remove_stale(cx: &StepCx, cluster: &Cluster, name: &str) -> Result<(), Why> {
    let found = cluster.get(&kinds::POD, Some(BURN_NAMESPACE), name).await?;
    let Some(stale) = found else { return Ok(()) };
    if stale.label("app") != Some(APP) {
        return Err(Why::new(stale.refer(), &BurnCause::NotOurs));
    }
    cx.note(format!("deletes pod {name}, left by an earlier burn"));
    cluster.delete(cx, &stale.refer()).await?;
    if cx.dry() {
        return Ok(());
    }
    let watched = cluster.watch(Query::named(&kinds::POD, Some(BURN_NAMESPACE), name));
    cx.wait(watched.changes(), || watched.judge_absence(|pods| verdict::replaced(pods, stale.uid()))).await
}

fn burn_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &BurnSpec,
    nodes: Out<Vec<BurnNode>>,
    pods: Out<Vec<Object>>,
) -> Out<Burnt> {
    let limit = spec.runtime + PREPARATION;
    let describe = StepSpec::wait("gpu-operator.burn", "every GPU computes right", limit)
        .named("burn")
        .per("GPU node")
        .does(Effect::any(Act::Watch, &kinds::POD, Some(BURN_NAMESPACE)))
        .does(Effect::any(Act::Logs, &kinds::POD, Some(BURN_NAMESPACE)));
    let each = StepSpec::wait("gpu-operator.burn", "every GPU computes right", limit).named("burn");
    let cluster = cluster.clone();
    plan.step(describe, (nodes, pods), move |cx, (nodes, pods)| async move {
        let items: Vec<(String, (BurnNode, Object))> =
            nodes.iter().zip(pods.iter()).map(|(node, pod)| (node.name.clone(), (node.clone(), pod.clone()))).collect();
        let results = cx
            .each(items, each, move |cx, (node, pod)| {
                let cluster = cluster.clone();
                async move { burn_one(&cx, &cluster, &node, &pod).await }
            })
            .await;
        let mut burnt = Vec::new();
        let mut failures = Vec::new();
        for result in results {
            match result {
                Ok(node) => burnt.push(node),
                Err(why) => failures.push(why),
            }
        }
        if let Some(mut first) = failures.first().cloned() {
            for other in &failures[1..] {
                first = first.with("also", other.to_string());
            }
            return Err(first);
        }
        let gpus: u32 = burnt.iter().map(|(_, gpus)| gpus).sum();
        let what = format!("{} on {} good", count(gpus as usize, "GPU"), count(burnt.len(), "node"));
        Ok(Step::AlreadySo(Burnt { nodes: burnt }, what))
    })
}

/// Waits for one node's pod and reads its result.
async fn burn_one(cx: &StepCx, cluster: &Cluster, node: &BurnNode, pod: &Object) -> Result<Step<(String, u32)>, Why> {
    let name = pod.name().to_owned();
    {
        let (cluster, cx, node, pod) = (cluster.clone(), cx.clone(), node.name.clone(), pod.clone());
        cx.clone().diagnose_with(move || async move { diagnose(&cx, &cluster, &node, &pod).await });
    }
    let watched = cluster.watch(Query::within(&kinds::POD, BURN_NAMESPACE).labels(format!("app={APP}")));
    let mut judged = Judge::new(pod.refer());
    let clock = cx.clock().clone();
    let ended = cx
        .wait(watched.changes().or_after(LOOK_AGAIN), || watched.judge(|pods| judged.look(pods, clock.now())))
        .await?;
    let log = read_log(cx, cluster, &name, &ended).await;
    let log = match log {
        Ok(log) => log,
        Err(problem) => return Err(Why::new(pod.refer(), &BurnCause::NoLog { problem })),
    };
    cx.file(&log_file(&node.name), settled(&log));
    describe(cx, cluster, &node.name, &ended).await;
    let exit_code = verdict::exit_code(&ended);
    match judge(&log, node.gpus, exit_code) {
        Ok(gpus) => {
            let what = format!("{gpus} of {gpus} GPUs OK");
            Ok(Step::Changed((node.name.clone(), gpus), what))
        }
        Err(cause) => {
            let node = kinds::NODE.object(None, &node.name);
            Err(Why::new(node, &cause).with(format!("log of pod {name}"), tail(&settled(&log))))
        }
    }
}

/// The log with its end; tried again for a moment, since a node's kubelet answers late at times.
async fn read_log(cx: &StepCx, cluster: &Cluster, pod: &str, ended: &Object) -> Result<String, String> {
    let options = LogOptions { tail_lines: Some(LOG_LINES), ..LogOptions::default() };
    let mut problem = String::new();
    for pause in [0, 1, 2, 4, 8] {
        cx.clock().sleep(Duration::from_secs(pause)).await;
        match cluster.log(BURN_NAMESPACE, pod, Some(CONTAINER), &options).await {
            Ok(log) if !log.trim().is_empty() => return Ok(log),
            Ok(_) => "it is empty".clone_into(&mut problem),
            Err(error) => problem = error.to_string(),
        }
    }
    if let Some(message) = verdict::termination_message(ended) {
        problem = format!("{problem}; the container ended with {message}");
    }
    Err(problem)
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn log_file(node: &str) -> String {
    format!("gpu_burn.{node}.log")
}

/// Keeps the pod's description, with its events.
async fn describe(cx: &StepCx, cluster: &Cluster, node: &str, pod: &Object) -> Vec<Object> {
    let query = Query::within(&kinds::EVENT, BURN_NAMESPACE).fields(format!("involvedObject.name={}", pod.name()));
    let events = cluster.list(&query).await.unwrap_or_default();
    cx.file(&format!("gpu_burn.{node}.description.txt"), crate::capture::describe_pod(pod, &events));
    events
}

/// Keeps what explains a failed burn: the pod's description, and its log as far as there is one.
async fn diagnose(cx: &StepCx, cluster: &Cluster, node: &str, pod: &Object) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let options = LogOptions { tail_lines: Some(LOG_LINES), ..LogOptions::default() };
    let now = cluster.get(&kinds::POD, Some(BURN_NAMESPACE), pod.name()).await.ok().flatten();
    let events = describe(cx, cluster, node, now.as_ref().unwrap_or(pod)).await;
    let log = cluster.log(BURN_NAMESPACE, pod.name(), Some(CONTAINER), &options).await;
    if let Some(log) = log.ok().filter(|log| !log.trim().is_empty()) {
        cx.file(&log_file(node), settled(&log));
    }
    if let Some(event) = events.iter().rev().find(|event| event.text("/type") == Some("Warning")) {
        evidence.push(Evidence {
            label: format!("event {}", event.text("/reason").unwrap_or("")),
            text: event.text("/message").unwrap_or("").to_owned(),
        });
    }
    evidence
}

fn clean_up(plan: &mut Plan, cluster: &Cluster, temporary: Temporary) {
    let any = |kind| Effect::any(Act::Delete, kind, Some(BURN_NAMESPACE));
    let describe = crate::asking("gpu-operator.burn-clean-up", "the burn's temporary objects go")
        .does(any(&kinds::POD))
        .does(any(&kinds::CONFIG_MAP));
    let cluster = cluster.clone();
    plan.finalizer(describe, |cx| async move {
        let made = std::mem::take(&mut *temporary.lock().unwrap_or_else(PoisonError::into_inner));
        if made.is_empty() {
            return Ok(Step::AlreadySo((), "nothing was made".to_owned()));
        }
        let mut failed = None;
        // The pods first: they mount the ConfigMaps.
        for object in made.iter().rev() {
            if let Err(why) = cluster.delete(&cx, object).await {
                cx.leftover(object);
                failed = failed.or(Some(why));
            }
        }
        match failed {
            Some(why) => Err(why),
            None => Ok(Step::Changed((), format!("{} deleted", count(made.len(), "object")))),
        }
    });
}

impl Verb for BurnSpec {
    fn name(&self) -> VerbName {
        VerbName::new("gpu_operator", "run_gpu_burn")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("gpu_operator run_gpu_burn");
        let burnt = steps(&mut plan, &env.cluster, &self, After::nothing());
        plan.answer(&burnt, Burnt::report);
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_name_and_an_empty_one_is_the_usual_one() {
        assert_eq!(image(""), Ok(BURN_IMAGE.to_owned()));
        for text in [BURN_IMAGE, "localhost:5000/burn", "nvcr.io/nvidia/cuda@sha256:00ff"] {
            assert_eq!(image(text), Ok(text.to_owned()));
        }
        for text in ["a b", "a\nb", "☃", "a;b"] {
            assert!(image(text).is_err(), "{text}");
        }
    }
}
