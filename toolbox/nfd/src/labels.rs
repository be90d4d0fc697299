//! `nfd has-labels`, `wait-labels`, `has-gpu-nodes`, `wait-gpu-nodes`: what NFD says about the nodes.

use std::time::Duration;

use serde_json::json;
use toolbox_core::cluster::{Cluster, Query, kinds};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{Plan, Report, Step, StepSpec, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::diagnosis;
use crate::verdict::{Sight, labelled, verdict};

/// Ask now, without waiting
///
/// Exit code 0 is yes, 1 is no.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct LabelArgs {}

/// Wait, for five minutes unless told otherwise with --deadline
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct WaitArgs {}

/// Which labels are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// NFD has looked at the node at all.
    Any,
    /// NFD has seen an NVIDIA GPU, in any of the three spellings.
    Gpu,
}

/// The question or the wait, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelSpec {
    labels: Labels,
    wait: bool,
}

impl LabelSpec {
    /// Asks now.
    pub fn has(labels: Labels) -> Self {
        Self { labels, wait: false }
    }

    /// Waits.
    pub fn wait(labels: Labels) -> Self {
        Self { labels, wait: true }
    }
}

/// The catalogue's budget for labels.
const WAIT: Duration = Duration::from_secs(300);

/// Adds the step that waits until at least one node has the labels; its value is the names of those that have.
pub fn wait_steps(plan: &mut Plan, cluster: &Cluster, labels: Labels, after: After) -> Out<Vec<String>> {
    let (id, title, name) = match labels {
        Labels::Any => ("nfd.labels", "NFD labels the nodes", "nfd-labels"),
        Labels::Gpu => ("nfd.gpu-label", "NFD sees a GPU", "gpu-label"),
    };
    let describe = StepSpec::wait(id, title, WAIT).named(name).does(Effect::any(Act::Watch, &kinds::NODE, None));
    let cluster = cluster.clone();
    plan.step(describe, after, move |cx, ()| async move {
        let nodes = cluster.watch(Query::all(&kinds::NODE));
        let csvs = cluster.watch(Query::all(&kinds::CSV).labels("!olm.copiedFrom"));
        let instances = cluster.watch(Query::all(&kinds::NODE_FEATURE_DISCOVERY));
        let changes = nodes.changes().and(csvs.changes()).and(instances.changes());
        diagnosis::on_failure(&cx, &cluster, labels);
        let found = cx
            .wait(changes, || {
                let sight = Sight::of(&csvs, &instances);
                nodes.judge(|nodes| verdict(labels, nodes, sight))
            })
            .await?;
        let what = format!("{} nodes: {}", found.len(), found.join(", "));
        Ok(Step::AlreadySo(found, what))
    })
}

/// Adds the step that asks whether a node has the labels, and fails with exit code 1 when none has.
pub fn has_steps(plan: &mut Plan, cluster: &Cluster, labels: Labels, after: After) -> Out<Vec<String>> {
    let (id, title) = match labels {
        Labels::Any => ("nfd.has-labels", "whether NFD has labelled a node"),
        Labels::Gpu => ("nfd.has-gpu-nodes", "whether NFD sees a GPU"),
    };
    let describe =
        StepSpec::ask(id, title).deadline(Duration::from_secs(180)).does(Effect::any(Act::Read, &kinds::NODE, None));
    let cluster = cluster.clone();
    plan.step(describe, after, move |cx, ()| async move {
        let nodes = cluster.list(&Query::all(&kinds::NODE)).await?;
        let found = labelled(labels, &nodes);
        if found.is_empty() {
            diagnosis::on_failure(&cx, &cluster, labels);
            let sight = diagnosis::sight(&cluster).await;
            return Err(crate::verdict::answer_no(labels, &nodes, sight));
        }
        let what = format!("{} nodes: {}", found.len(), found.join(", "));
        Ok(Step::AlreadySo(found, what))
    })
}

impl Verb for LabelSpec {
    fn name(&self) -> VerbName {
        let command = match (self.labels, self.wait) {
            (Labels::Any, false) => "has_labels",
            (Labels::Any, true) => "wait_labels",
            (Labels::Gpu, false) => "has_gpu_nodes",
            (Labels::Gpu, true) => "wait_gpu_nodes",
        };
        VerbName::new("nfd", command)
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new(self.name().to_string());
        let found = if self.wait {
            wait_steps(&mut plan, &env.cluster, self.labels, After::nothing())
        } else {
            plan.mark_probe();
            has_steps(&mut plan, &env.cluster, self.labels, After::nothing())
        };
        plan.answer(&found, |nodes| Report { text: nodes.join("\n"), json: json!({"nodes": nodes}) });
        Ok(plan)
    }
}
