//! `cluster scale`: so many machines of an instance type, in one zone that has them.

mod change;
mod intent;
mod verdict;
mod wait;

use std::time::Duration;

use clap::builder::BoolishValueParser;
use serde_json::json;
use toolbox_core::cluster::{Cluster, kinds, machines};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{Cause, Exit, FailureVerdict, ObjectRef, Plan, Report, Step, StepSpec, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use intent::Intent;

/// Have so many machines of an instance type
///
/// Uses the machine sets of that type; if there is none, derives one from a worker machine set that works. When a zone has
/// none of that type left, or does not sell it, the next zone is tried. Waits for the machines and then for their nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct ScaleArgs {
    /// Instance type as the cloud spells it, such as g4dn.xlarge or Standard_NC4as_T4_v3
    #[arg(value_name = "INSTANCE_TYPE")]
    instance_type: String,
    /// How many machines of that type the cluster is to have, over all machine sets
    #[arg(value_name = "REPLICAS", value_parser = replicas)]
    replicas: u32,
    /// Empty the other machine sets of that type, should several hold machines
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          value_parser = BoolishValueParser::new(), hide_default_value = true, hide_possible_values = true)]
    force: bool,
    /// Worker machine set to derive from; no other zone is tried then
    #[arg(long, value_name = "NAME", alias = "base_machineset")]
    base_machineset: Option<String>,
}

/// No cluster has more nodes; a number above is a slip that would be paid for.
const MOST: u32 = 5000;

fn replicas(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number <= MOST);
    number.ok_or_else(|| format!("write a whole number from 0 to {MOST}"))
}

/// The wish, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSpec {
    /// The instance type.
    pub instance_type: String,
    /// How many in all.
    pub replicas: u32,
    /// Whether other sets of the type may be emptied.
    pub force: bool,
    /// The set to derive from.
    pub base: Option<String>,
}

impl ScaleSpec {
    /// So many of this type, without force, from whichever base is best.
    pub fn new(instance_type: impl Into<String>, replicas: u32) -> Self {
        Self { instance_type: instance_type.into(), replicas, force: false, base: None }
    }

    fn wanted(&self) -> i64 {
        i64::from(self.replicas)
    }
}

/// What is wrong with the command line.
#[derive(Clone, Debug)]
enum TypeCause {
    Empty,
    Malformed(String),
}

impl Cause for TypeCause {
    fn code(&self) -> &'static str {
        match self {
            TypeCause::Empty => "no-instance-type-given",
            TypeCause::Malformed(_) => "instance-type-malformed",
        }
    }
    fn text(&self) -> String {
        match self {
            TypeCause::Empty => "is empty".to_owned(),
            TypeCause::Malformed(text) => format!("{text:?} is no name of an instance type"),
        }
    }
    fn next(&self) -> String {
        match self {
            TypeCause::Empty => "give the instance type as the cloud spells it".to_owned(),
            TypeCause::Malformed(_) => {
                "give the instance type as the cloud spells it: letters, digits and . _ - + only".to_owned()
            }
        }
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl TryFrom<ScaleArgs> for ScaleSpec {
    type Error = Why;

    fn try_from(args: ScaleArgs) -> Result<Self, Why> {
        let refused = |cause| Err(Why::new(ObjectRef::thing("argument", "INSTANCE_TYPE"), &cause));
        if args.instance_type.trim().is_empty() {
            return refused(TypeCause::Empty);
        }
        if !args.instance_type.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c)) {
            return refused(TypeCause::Malformed(args.instance_type));
        }
        Ok(Self {
            instance_type: args.instance_type,
            replicas: args.replicas,
            force: args.force,
            // Upstream's callers pass an empty name when they mean none.
            base: args.base_machineset.filter(|name| !name.is_empty()),
        })
    }
}

/// Handles to what a scale-up yields.
#[derive(Clone, Copy, Debug)]
pub struct Scaled {
    /// The machines are there; the value is what holds them.
    pub fleet: Out<Fleet>,
    /// The names of their nodes, all Ready.
    pub nodes: Out<Vec<String>>,
}

/// The machines of the type, and their sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Each machine set of the type with the number of its machines.
    pub sets: std::collections::BTreeMap<String, i64>,
    /// Names of the machines.
    pub machines: Vec<String>,
}

/// Budget of each of the two waits.
const WAIT: Duration = Duration::from_secs(1200);

/// A server that throttles for a minute must not end the run.
const ASK: Duration = Duration::from_secs(180);

/// Adds the steps of a scale-up or -down.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &ScaleSpec, after: After) -> Scaled {
    let intent = intent_step(plan, cluster, spec, after);
    let changed = change_step(plan, cluster, spec, intent);
    let fleet = machines_step(plan, cluster, spec, intent, changed);
    let nodes = nodes_step(plan, cluster, spec, fleet);
    Scaled { fleet, nodes }
}

fn intent_step(plan: &mut Plan, cluster: &Cluster, spec: &ScaleSpec, after: After) -> Out<Intent> {
    let describe = StepSpec::ask("cluster.machine-sets", format!("which machine set gets the {}", spec.instance_type))
        .deadline(ASK)
        .does(Effect::any(Act::Read, &kinds::MACHINE_SET, Some(machines::NAMESPACE)));
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, after, |cx, ()| async move {
        let intent = intent::find(&cluster, &spec).await?;
        let what = intent.to_string();
        cx.note(what.clone());
        Ok(Step::AlreadySo(intent, what))
    })
}

fn change_step(plan: &mut Plan, cluster: &Cluster, spec: &ScaleSpec, intent: Out<Intent>) -> Out<()> {
    let describe = StepSpec::change("cluster.scale", format!("ask for {} {}", spec.replicas, spec.instance_type))
        .does(Effect::decided(Act::Apply, &kinds::MACHINE_SET, Some(machines::NAMESPACE), "the base machine set"))
        .does(Effect::any(Act::Patch, &kinds::MACHINE_SET, Some(machines::NAMESPACE)))
        .leaves("the machine set, with its replicas");
    let (cluster, wanted) = (cluster.clone(), spec.wanted());
    let instance_type = spec.instance_type.clone();
    plan.step(describe, intent, move |cx, intent| async move {
        change::first(&cx, &cluster, &intent, &instance_type, wanted).await
    })
}

fn machines_step(
    plan: &mut Plan,
    cluster: &Cluster,
    spec: &ScaleSpec,
    intent: Out<Intent>,
    changed: Out<()>,
) -> Out<Fleet> {
    let describe = StepSpec::wait(
        "cluster.machines",
        match spec.replicas {
            1 => format!("1 machine of type {} is made", spec.instance_type),
            replicas => format!("{replicas} machines of type {} are made", spec.instance_type),
        },
        WAIT,
    )
    .named("machines")
    .does(Effect::any(Act::Watch, &kinds::MACHINE, Some(machines::NAMESPACE)))
    .does(Effect::any(Act::Watch, &kinds::MACHINE_SET, Some(machines::NAMESPACE)))
    .leaves("the Machines as they are, for inspection");
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, (intent, changed), |cx, (intent, _)| async move {
        wait::machines(&cx, &cluster, &spec, &intent).await
    })
}

fn nodes_step(plan: &mut Plan, cluster: &Cluster, spec: &ScaleSpec, fleet: Out<Fleet>) -> Out<Vec<String>> {
    let describe = StepSpec::wait("cluster.nodes", "their nodes are Ready", WAIT)
        .named("nodes")
        .does(Effect::any(Act::Watch, &kinds::NODE, None))
        .leaves("the Machines and Nodes as they are, for inspection");
    let (cluster, spec) = (cluster.clone(), spec.clone());
    plan.step(describe, fleet, |cx, fleet| async move { wait::nodes(&cx, &cluster, &spec, &fleet).await })
}

impl Verb for ScaleSpec {
    fn name(&self) -> VerbName {
        VerbName::new("cluster", "set_scale")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("cluster set_scale");
        let scaled = steps(&mut plan, &env.cluster, &self, After::nothing());
        let instance_type = self.instance_type.clone();
        plan.answer(&scaled.nodes, move |nodes| Report {
            text: match nodes.as_slice() {
                [] => format!("no machine of type {instance_type}"),
                nodes => nodes.join("\n"),
            },
            json: json!({"instance_type": instance_type, "replicas": nodes.len(), "nodes": nodes}),
        });
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ScaleArgs,
    }

    fn parse(words: &[&str]) -> Result<ScaleSpec, Exit> {
        let words = std::iter::once("scale").chain(words.iter().copied());
        let line = Line::try_parse_from(words).map_err(|_| Exit::Usage)?;
        ScaleSpec::try_from(line.args).map_err(|why| why.exit)
    }

    #[test]
    fn the_word_false_is_not_force() {
        assert!(!parse(&["g4dn.xlarge", "1"]).unwrap().force);
        assert!(!parse(&["g4dn.xlarge", "1", "--force=false"]).unwrap().force);
        assert!(parse(&["g4dn.xlarge", "1", "--force"]).unwrap().force);
        assert!(parse(&["g4dn.xlarge", "1", "--force=True"]).unwrap().force);
    }

    #[test]
    fn bad_words_are_usage_errors() {
        for words in [
            &["g4dn.xlarge", "-1"][..],
            &["g4dn.xlarge", "one"],
            &["g4dn.xlarge", "5001"],
            &["g4dn.xlarge", "99999999999999999999"],
            &["g4dn.xlarge"],
            &["", "1"],
            &["g4dn xlarge", "1"],
            &["g4dn\nxlarge", "1"],
            &["../g4dn", "1"],
            &["g4dn.☃", "1"],
        ] {
            assert_eq!(parse(words), Err(Exit::Usage), "{words:?}");
        }
    }
}
