//! `gpu-operator wait-deployment`: until every GPU of every GPU node can be used, or until it is known why not.

mod cause;
mod look;
mod sets;
mod toolkit;
mod trouble;

use std::time::Duration;

use serde_json::json;
use toolbox_core::cluster::{Cluster, Query, Watched, kinds};
use toolbox_core::engine::plan::{Act, After, Changes, Effect, Out};
use toolbox_core::engine::why::Evidence;
use toolbox_core::engine::{Plan, Report, Step, StepCx, StepSpec, Verdict, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::locate::{self, Hints, Operator};
use crate::names::MONITORING_LABEL;
pub(crate) use cause::StackCause;
use look::Look;
pub(crate) use trouble::Troubles;

const POLICY_DEADLINE: Duration = Duration::from_secs(120);
const DRIVER_DEADLINE: Duration = Duration::from_secs(1200);
const OPERANDS_DEADLINE: Duration = Duration::from_secs(900);
const CAPACITY_DEADLINE: Duration = Duration::from_secs(600);
const READY_DEADLINE: Duration = Duration::from_secs(300);
/// How long a pod's trouble is tolerated ends without any change to be told of: it is looked at again after this.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);
const MONITORING_DEADLINE: Duration = Duration::from_secs(120);

/// Wait until the driver and everything else works on every GPU node
///
/// In this order: at least one GPU node, a ClusterPolicy, the driver, every other DaemonSet with its pods ready on each
/// node it is for, the validator among them, GPUs offered by each GPU node, and a ClusterPolicy that is ready. Nothing to
/// do is a failure: without a GPU node the ClusterPolicy is ready as well. A driver that crashes, an image that cannot be
/// pulled or a check that fails ends the wait at once, with the reason from the container's log.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WaitArgs {
    /// The operator's namespace, when it cannot be found out
    #[arg(long, value_name = "NAMESPACE", value_parser = toolbox_core::cli::namespace)]
    namespace: Option<String>,
}

/// A wait with its arguments checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSpec {
    /// Where the operator is, and which version, for those who know.
    pub hints: Hints,
}

impl From<WaitArgs> for WaitSpec {
    fn from(args: WaitArgs) -> Self {
        Self { hints: Hints { namespace: args.namespace.filter(|name| !name.is_empty()), version: None } }
    }
}

/// A stack that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackReady {
    /// The operator's version.
    pub version: String,
    /// The GPU nodes.
    pub nodes: Vec<String>,
    /// What is ready, in words.
    pub what: String,
}

impl StackReady {
    fn report(&self) -> Report {
        Report {
            text: format!("GPU Operator {}: {}", self.version, self.what),
            json: json!({"version": self.version, "nodes": self.nodes, "ready": true}),
        }
    }
}

/// The watches that all steps share.
#[derive(Clone)]
struct Watches {
    nodes: Watched,
    policies: Watched,
    sets: Watched,
    pods: Watched,
}

impl Watches {
    fn new(cluster: &Cluster, operator: &Operator) -> Self {
        let within = |kind| cluster.watch(Query::within(kind, &operator.operand_namespace));
        Self {
            nodes: cluster.watch(Query::all(&kinds::NODE)),
            policies: cluster.watch(Query::all(&kinds::CLUSTER_POLICY)),
            sets: within(&kinds::DAEMON_SET),
            pods: within(&kinds::POD),
        }
    }

    fn changes(&self) -> Changes {
        self.nodes.changes().and(self.policies.changes()).and(self.sets.changes()).and(self.pods.changes())
    }

    fn judge<T>(
        &self,
        operator: &Operator,
        now: jiff::Timestamp,
        judge: impl FnOnce(&Look<'_>) -> Verdict<T>,
    ) -> Verdict<T> {
        self.nodes.judge(|nodes| {
            self.policies.judge(|policies| {
                self.sets.judge(|sets| {
                    self.pods.judge(|pods| {
                        judge(&Look {
                            version: &operator.version,
                            operand_namespace: &operator.operand_namespace,
                            nodes,
                            policies,
                            sets,
                            pods,
                            now,
                        })
                    })
                })
            })
        })
    }
}

/// Which condition a step waits for.
#[derive(Clone, Copy)]
enum Stage {
    Driver,
    Operands,
    Capacity,
    Policy,
}

impl Stage {
    fn of(self, look: &Look<'_>, troubles: &mut Troubles) -> Verdict<String> {
        match self {
            Stage::Driver => look.driver(troubles),
            Stage::Operands => look.operands(troubles),
            Stage::Capacity => look.capacity(),
            Stage::Policy => look.policy(troubles),
        }
    }

    fn describe(self) -> StepSpec {
        let wait = |id: &str, title: &str, deadline, name| StepSpec::wait(id, title, deadline).named(name);
        match self {
            Stage::Driver => {
                wait("gpu-operator.driver", "the driver is loaded on every GPU node", DRIVER_DEADLINE, "driver")
            }
            Stage::Operands => wait(
                "gpu-operator.operands",
                "every DaemonSet is ready, the validator too",
                OPERANDS_DEADLINE,
                "operands",
            ),
            Stage::Capacity => {
                wait("gpu-operator.capacity", "every GPU node offers its GPUs", CAPACITY_DEADLINE, "gpu-capacity")
            }
            Stage::Policy => wait("gpu-operator.ready", "the ClusterPolicy is ready", READY_DEADLINE, "cluster-policy"),
        }
    }
}

/// Adds the steps of a wait for an operator that another step has found or installed.
pub fn steps(plan: &mut Plan, cluster: &Cluster, operator: Out<Operator>, after: After) -> Out<StackReady> {
    let nodes = nodes_step(plan, cluster, operator, after);
    let policy = policy_step(plan, cluster, operator, nodes);
    let toolkit = toolkit::step(plan, cluster, operator, nodes);
    monitoring_step(plan, cluster, operator, policy);
    let mut before = After::nothing().and(&policy).and(&toolkit);
    let mut last = None;
    for stage in [Stage::Driver, Stage::Operands, Stage::Capacity, Stage::Policy] {
        let done = stage_step(plan, cluster, stage, operator, toolkit, before);
        before = done.done();
        last = Some(done);
    }
    let ready = last.expect("invariant: the list of stages is not empty");
    let describe = crate::asking("gpu-operator.stack", "what is ready");
    plan.step(describe, (operator, nodes, ready), |_, (operator, nodes, what)| async move {
        let ready =
            StackReady { version: operator.version.to_string(), nodes: (*nodes).clone(), what: (*what).clone() };
        let what = ready.what.clone();
        Ok(Step::AlreadySo(ready, what))
    })
}

fn nodes_step(plan: &mut Plan, cluster: &Cluster, operator: Out<Operator>, after: After) -> Out<Vec<String>> {
    let describe = crate::asking("gpu-operator.gpu-nodes", "the cluster has a GPU node").does(Effect::any(
        Act::Read,
        &kinds::NODE,
        None,
    ));
    let cluster = cluster.clone();
    plan.step(describe, (operator, after), |_, _| async move {
        let nodes = cluster.list(&Query::all(&kinds::NODE)).await?;
        let names = look::gpu_nodes(&nodes)?;
        let what = names.join(", ");
        Ok(Step::AlreadySo(names, what))
    })
}

fn policy_step(plan: &mut Plan, cluster: &Cluster, operator: Out<Operator>, nodes: Out<Vec<String>>) -> Out<()> {
    let describe = StepSpec::wait("gpu-operator.policy-exists", "a ClusterPolicy exists", POLICY_DEADLINE)
        .does(Effect::any(Act::Watch, &kinds::CLUSTER_POLICY, None));
    let cluster = cluster.clone();
    plan.step(describe, (operator, nodes), |cx, _| async move {
        let watched = cluster.watch(Query::all(&kinds::CLUSTER_POLICY));
        let name = cx
            .wait(watched.changes(), || {
                watched.judge(|policies| {
                    if let Some(policy) = policies.iter().find(|policy| !policy.is_deleting()) {
                        return Verdict::Done(policy.name().to_owned());
                    }
                    let object = watched.query().object();
                    Verdict::Pending(Why::new(object, &StackCause::NoClusterPolicy))
                })
            })
            .await?;
        Ok(Step::AlreadySo((), name))
    })
}

fn stage_step(
    plan: &mut Plan,
    cluster: &Cluster,
    stage: Stage,
    operator: Out<Operator>,
    toolkit: Out<Option<StackCause>>,
    before: After,
) -> Out<String> {
    let describe = [&kinds::NODE, &kinds::CLUSTER_POLICY, &kinds::DAEMON_SET, &kinds::POD]
        .into_iter()
        .fold(stage.describe(), |spec, kind| spec.does(Effect::any(Act::Watch, kind, None)))
        .does(Effect::any(Act::Logs, &kinds::POD, None));
    let cluster = cluster.clone();
    plan.step(describe, (operator, toolkit, before), move |cx, (operator, toolkit, ())| async move {
        let watches = Watches::new(&cluster, &operator);
        diagnose(&cx, &watches, &operator);
        let mut troubles = Troubles::default();
        let clock = cx.clock().clone();
        let result = cx
            .wait(watches.changes().or_after(LOOK_AGAIN), || {
                watches.judge(&operator, clock.now(), |look| stage.of(look, &mut troubles))
            })
            .await;
        match (result, troubles.culprit()) {
            (Ok(what), _) => Ok(Step::AlreadySo(what.clone(), what)),
            (Err(why), Some(culprit)) => {
                Err(trouble::explain(&cx, &cluster, why, culprit, toolkit.as_ref().as_ref()).await)
            }
            (Err(why), None) => Err(why),
        }
    })
}

/// At the deadline, or after a failure: everything that is late, one line each.
fn diagnose(cx: &StepCx, watches: &Watches, operator: &Operator) {
    let (watches, operator, clock) = (watches.clone(), operator.clone(), cx.clock().clone());
    cx.diagnose_with(move || async move {
        let (mut lines, now) = (Vec::new(), clock.now());
        let _ = watches.judge(&operator, now, |look| {
            lines = look.late_lines();
            Verdict::Done(())
        });
        if lines.is_empty() {
            return Vec::new();
        }
        vec![Evidence { label: "not ready".to_owned(), text: lines.join("\n") }]
    });
}

fn monitoring_step(plan: &mut Plan, cluster: &Cluster, operator: Out<Operator>, policy: Out<()>) {
    let describe = StepSpec::wait("gpu-operator.monitoring", "the namespace is monitored", MONITORING_DEADLINE)
        .does(Effect::any(Act::Watch, &kinds::NAMESPACE, None))
        .does(Effect::decided(Act::Patch, &kinds::NAMESPACE, None, "the operator's version"));
    let cluster = cluster.clone();
    let _: Out<()> = plan.step(describe, (operator, policy), |cx, (operator, _)| async move {
        let namespace = operator.operand_namespace.clone();
        if !operator.version.has_own_namespace() {
            return label_namespaces(&cx, &cluster, &operator).await;
        }
        let watched = cluster.watch(Query::named(&kinds::NAMESPACE, None, &namespace));
        cx.wait(watched.changes(), || {
            watched.judge_one(|found| match found {
                Some(found) if found.label(MONITORING_LABEL) == Some("true") => Verdict::Done(()),
                _ => {
                    let cause = StackCause::NotMonitored { version: operator.version.to_string() };
                    Verdict::Pending(Why::new(kinds::NAMESPACE.object(None, &namespace), &cause))
                }
            })
        })
        .await?;
        Ok(Step::AlreadySo((), format!("{namespace} has the label {MONITORING_LABEL}")))
    });
}

/// Versions before 1.9 leave it to the administrator to have their namespaces monitored. The operator makes the one of
/// its workloads itself, some time after it has seen the ClusterPolicy.
async fn label_namespaces(cx: &StepCx, cluster: &Cluster, operator: &Operator) -> Result<Step<()>, Why> {
    let mut labelled = Vec::new();
    for name in [&operator.operand_namespace, &operator.namespace] {
        let watched = cluster.watch(Query::named(&kinds::NAMESPACE, None, name));
        let namespace = cx
            .wait(watched.changes(), || {
                watched.judge_one(|found| {
                    if let Some(found) = found {
                        return Verdict::Done(found.clone());
                    }
                    let object = watched.query().object();
                    Verdict::Pending(Why::waiting(object, "namespace-absent", "does not exist yet"))
                })
            })
            .await?;
        if namespace.label(MONITORING_LABEL) != Some("true") {
            let patch = json!({"metadata": {"labels": {MONITORING_LABEL: "true"}}});
            cluster.patch(cx, &kinds::NAMESPACE, None, name, patch).await?;
            labelled.push(name.as_str());
        }
    }
    if labelled.is_empty() {
        return Ok(Step::AlreadySo((), "both namespaces are monitored".to_owned()));
    }
    Ok(Step::Changed((), format!("labelled {} for monitoring", labelled.join(" and "))))
}

impl Verb for WaitSpec {
    fn name(&self) -> VerbName {
        VerbName::new("gpu_operator", "wait_deployment")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("gpu_operator wait_deployment");
        let hints = self.hints.or_env(&env.env)?;
        let operator = locate::locate(&mut plan, &env.cluster, "gpu-operator.find", &hints);
        let ready = steps(&mut plan, &env.cluster, operator, After::nothing());
        plan.answer(&ready, StackReady::report);
        Ok(plan)
    }
}
