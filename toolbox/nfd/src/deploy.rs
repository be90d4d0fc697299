//! `nfd deploy`: the NFD Operator from a catalog, and its instance, until the nodes can be labelled.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolbox_core::cluster::conditions::PodTroubles;
use toolbox_core::cluster::olm::steps::{Approval, InstallSpec, InstanceSpec, Target, install, instance};
use toolbox_core::cluster::olm::{PackageRef, Wish};
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::config::to_yaml;
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{FailureVerdict, Plan, Report, Step, StepCx, StepSpec, Verdict, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

/// Name of NFD's package.
pub(crate) const PACKAGE: &str = "nfd";

/// Where NFD goes when neither the bundle nor the caller says.
pub(crate) const NAMESPACE: &str = "openshift-nfd";

/// Install the NFD Operator from a catalog and let it label the nodes
///
/// What is there already is used: an OperatorGroup that fits, a Subscription of the same package, an instance in whatever
/// namespace.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DeployArgs {
    /// Channel of the package; its default one when not given
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Version of the operator, such as 4.11.0-202212070335; the channel's newest when not given
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Catalog to install from
    #[arg(long, value_name = "NAME", default_value = "redhat-operators")]
    catalog: String,
    /// Namespace to install into; the one that the bundle suggests when not given
    #[arg(long, value_name = "NAMESPACE", value_parser = toolbox_core::cli::namespace)]
    namespace: Option<String>,
    /// Also approve an install plan that holds other operators
    #[arg(long)]
    approve_strangers: bool,
}

/// The installation, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploySpec {
    /// Channel and version asked for.
    pub wish: Wish,
    /// The catalog.
    pub catalog: String,
    /// The namespace asked for.
    pub namespace: Option<String>,
    /// Whether a plan with other operators may be approved.
    pub approve_strangers: bool,
}

impl Default for DeploySpec {
    fn default() -> Self {
        Self {
            wish: Wish::default(),
            catalog: "redhat-operators".to_owned(),
            namespace: None,
            approve_strangers: false,
        }
    }
}

impl From<DeployArgs> for DeploySpec {
    fn from(args: DeployArgs) -> Self {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        Self {
            wish: Wish { channel: given(args.channel), version: given(args.version) },
            catalog: given(Some(args.catalog)).unwrap_or_else(|| Self::default().catalog),
            namespace: given(args.namespace),
            approve_strangers: args.approve_strangers,
        }
    }
}

/// Handles to what an installation yields.
#[derive(Clone, Copy, Debug)]
pub struct Deployed {
    /// Version and namespace.
    pub target: Out<Target>,
    /// The namespace.
    pub namespace: Out<String>,
    /// The CSV that has succeeded.
    pub csv: Out<Object>,
    /// The NodeFeatureDiscovery.
    pub instance: Out<Object>,
    /// Ready when NFD's workers run.
    pub operands: Out<()>,
}

/// Adds the steps that install NFD.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &DeploySpec, after: After) -> Deployed {
    let operator = InstallSpec {
        wish: spec.wish.clone(),
        namespace: spec.namespace.clone(),
        fallback_namespace: NAMESPACE,
        group: "openshift-nfd-ci",
        approval: Approval::Manual,
        approve_strangers: spec.approve_strangers,
        keep_package: Some(keep_package),
        ..InstallSpec::new("nfd", "NFD", PackageRef::new(PACKAGE, &spec.catalog))
    };
    let installed = install(plan, cluster, operator, after);
    let cr = InstanceSpec {
        id: "nfd",
        title: "the NodeFeatureDiscovery is made",
        kind: kinds::NODE_FEATURE_DISCOVERY,
        change: Some(Arc::new(keep_instance)),
        deadline: Duration::from_secs(300),
    };
    let made = instance(plan, cluster, cr, &installed);
    let operands = operands_step(plan, cluster, made);
    Deployed { target: installed.target, namespace: installed.namespace, csv: installed.csv, instance: made, operands }
}

fn keep_package(cx: &StepCx, manifest: &Value) {
    if let Ok(text) = to_yaml(manifest) {
        cx.file("nfd_packagemanifest.yml", text);
    }
}

/// The example goes in as it is: fields differ by version, and the CSV's own example is the one that fits.
#[expect(clippy::unnecessary_wraps, reason = "the changes that other tools make can fail")]
fn keep_instance(cx: &StepCx, example: Value, _namespace: &str) -> Result<Value, Why> {
    let text = serde_json::to_string_pretty(&example).unwrap_or_default();
    cx.file("nfd_cr.json", format!("{text}\n"));
    Ok(example)
}

fn operands_step(plan: &mut Plan, cluster: &Cluster, made: Out<Object>) -> Out<()> {
    let describe = StepSpec::wait("nfd.operands", "NFD's workers run", Duration::from_secs(600))
        .named("nfd-operands")
        .does(Effect::any(Act::Watch, &kinds::DAEMON_SET, None))
        .does(Effect::any(Act::Watch, &kinds::POD, None));
    let cluster = cluster.clone();
    plan.step(describe, made, |cx, made| async move {
        let namespace = made.namespace().unwrap_or(NAMESPACE).to_owned();
        let sets = cluster.watch(Query::within(&kinds::DAEMON_SET, &namespace));
        let pods = cluster.watch(Query::within(&kinds::POD, &namespace));
        let instance = made.refer();
        let mut troubles = PodTroubles::default();
        let changes = sets.changes().and(pods.changes()).or_after(troubles.look_again());
        let found = cx
            .wait(changes, || {
                sets.judge(|sets| {
                    let workers: Vec<&Object> = sets.iter().filter(|set| set.name().contains("worker")).collect();
                    if workers.is_empty() {
                        return Verdict::Pending(
                            Why::waiting(
                                instance.clone(),
                                "no-workers",
                                "the operator has made no worker DaemonSet yet",
                            )
                            .or_else(FailureVerdict::Product, format!("see the NFD operator's log in {namespace}")),
                        );
                    }
                    match Verdict::all(workers.iter().copied().map(worker_verdict)) {
                        Verdict::Pending(why) => pods.judge(|pods| {
                            let theirs = of_sets(pods, &workers);
                            troubles.explain(why, &theirs, &[], cx.clock().now())
                        }),
                        verdict => verdict,
                    }
                })
            })
            .await?;
        let pods: i64 = found.iter().sum();
        Ok(Step::AlreadySo((), format!("{pods} workers run")))
    })
}

/// The pods that these sets made.
fn of_sets(pods: &[Object], sets: &[&Object]) -> Vec<Object> {
    let is_theirs = |pod: &&Object| sets.iter().any(|set| pod.owner_uids().contains(&set.uid()));
    pods.iter().filter(is_theirs).cloned().collect()
}

/// All pods of the present generation ready, and at least one of them: a set that runs nowhere labels nothing.
fn worker_verdict(set: &Object) -> Verdict<i64> {
    let number = |path| set.number(path).unwrap_or(0);
    let desired = number("/status/desiredNumberScheduled");
    let ready = number("/status/numberReady").min(number("/status/updatedNumberScheduled"));
    let (code, text) = if !set.is_observed() {
        ("workers-new", "is not looked at yet".to_owned())
    } else if desired == 0 {
        ("workers-nowhere", "is to run on no node".to_owned())
    } else if ready < desired {
        ("workers-starting", format!("has {ready} of {desired} pods ready"))
    } else {
        return Verdict::Done(ready);
    };
    let why = Why::waiting(set.refer(), code, text);
    Verdict::Pending(why.or_else(FailureVerdict::Product, "see its pods: image, node selector, tolerations"))
}

impl Verb for DeploySpec {
    fn name(&self) -> VerbName {
        VerbName::new("nfd_operator", "deploy_from_operatorhub")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("nfd_operator deploy_from_operatorhub");
        let deployed = steps(&mut plan, &env.cluster, &self, After::nothing());
        let needs = (deployed.target, deployed.instance, deployed.operands);
        let answer =
            plan.step(StepSpec::ask("nfd.answer", "what is installed"), needs, |_, (target, instance, _)| async move {
                let version = &target.chosen.published.version;
                let text = format!("NFD {version} in {}", target.placement.namespace);
                let json = json!({
                    "csv": target.chosen.published.csv, "version": version, "channel": target.chosen.channel,
                    "namespace": target.placement.namespace, "instance": instance.name(),
                });
                Ok(Step::AlreadySo(Report { text: text.clone(), json }, text))
            });
        plan.answer(&answer, Report::clone);
        Ok(plan)
    }
}
