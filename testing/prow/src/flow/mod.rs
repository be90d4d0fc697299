//! `prow gpu-operator test_operatorhub`: one plan composed of the verbs' steps.

mod plan;
mod records;

use std::time::Duration;

use tool_gpu_operator::{BurnSpec, DeploySpec};
use toolbox_core::engine::{Plan, Why};
use toolbox_core::{FloorJob, FlowPart, Verb, VerbEnv, VerbName};

use crate::context::CiContext;
use crate::words;

/// The name that the flow's report and test results carry.
const FLOW: &str = "gpu-operator-test_operatorhub";

/// Install the GPU Operator from OperatorHub on a cluster with a GPU, wait until it works, and burn the GPU
///
/// Everything that can go on at the same time does: a GPU node is made if there is none, node feature discovery is
/// installed if no node has its labels, and the operator is installed meanwhile. At the end, whatever happened, the
/// stack's state is saved with the artifacts.
#[derive(Clone, Debug, clap::Args)]
pub struct OperatorHubArgs {
    /// The operator's version, such as 1.11.0, or latest [default: the newest of the channel]
    #[arg(value_name = "VERSION")]
    version: Option<String>,
    /// The channel [default: the one that has the version, or the package's default]
    #[arg(value_name = "CHANNEL")]
    channel: Option<String>,
    /// Accepted for the predecessor's sake; nothing is undeployed here
    #[arg(value_name = "no_undeploy", hide = true)]
    rest: Vec<String>,
    /// The type of the GPU machine to make when there is none
    #[arg(long, value_name = "TYPE", default_value = "g4dn.xlarge")]
    instance_type: String,
    /// How long each GPU computes at the end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    burn_runtime: u64,
}

/// The flow with its arguments checked.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorHubFlow {
    pub(crate) deploy: DeploySpec,
    pub(crate) burn: BurnSpec,
    pub(crate) instance_type: String,
}

impl OperatorHubFlow {
    /// The flow for a version and a channel; `None` for the catalog's own choice.
    pub fn new(version: Option<String>, channel: Option<String>) -> Result<Self, Why> {
        let deploy = DeploySpec { wish: DeploySpec::wish(version, channel)?, ..DeploySpec::default() };
        Ok(Self { deploy, burn: BurnSpec::default(), instance_type: "g4dn.xlarge".to_owned() })
    }

    /// The flow for the predecessor's words: `[VERSION] [CHANNEL] [no_undeploy]`.
    pub(crate) fn of_words(words: &[String]) -> Result<Self, Why> {
        let unknown = words.iter().skip(2).find(|word| !is_spare(word));
        if let Some(word) = unknown {
            return Err(words::too_many(word));
        }
        let at = |index: usize| words.get(index).filter(|word| !is_spare(word)).cloned();
        Self::new(at(0), at(1))
    }
}

/// A word that the predecessor passed on to the entitlement, which nothing here needs.
fn is_spare(word: &str) -> bool {
    word.replace('-', "_") == "no_undeploy"
}

impl TryFrom<OperatorHubArgs> for OperatorHubFlow {
    type Error = Why;

    fn try_from(args: OperatorHubArgs) -> Result<Self, Why> {
        let words: Vec<String> = [args.version, args.channel].into_iter().flatten().chain(args.rest).collect();
        Ok(Self {
            burn: BurnSpec { runtime: Duration::from_secs(args.burn_runtime), ..BurnSpec::default() },
            instance_type: args.instance_type,
            ..Self::of_words(&words)?
        })
    }
}

impl Verb for OperatorHubFlow {
    fn name(&self) -> VerbName {
        VerbName::new("prow", "gpu_operator_test_operatorhub")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let deploy = self.deploy.clone().or_env(&env.env)?;
        Ok(plan::plan(&Self { deploy, ..*self }, env, CiContext::read(&env.env)))
    }

    fn flow(&self) -> Option<String> {
        Some(FLOW.to_owned())
    }

    fn parts(&self) -> Vec<FlowPart> {
        plan::parts(self)
    }

    fn floor(&self) -> Option<FloorJob> {
        Some(FloorJob {
            instance_type: self.instance_type.clone(),
            replicas: 1,
            burn_seconds: self.burn.runtime.as_secs(),
            gpu_package: "gpu-operator-certified".to_owned(),
            nfd_package: "nfd".to_owned(),
        })
    }
}
