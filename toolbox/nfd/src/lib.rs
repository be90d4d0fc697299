//! Node Feature Discovery: installing it, asking and waiting for its labels, removing it.
//!
//! Every verb is a function that adds its steps to a plan, so that a CI flow can compose them; the verb itself is a plan
//! of those steps alone. This crate must not import kube, print, or read the environment.

mod deploy;
mod diagnosis;
mod labels;
mod undeploy;
mod verdict;

use toolbox_core::engine::Why;
use toolbox_core::{Noun, Verb};

pub use deploy::{DeployArgs, DeploySpec, Deployed, steps as deploy_steps};
pub use labels::{LabelArgs, LabelSpec, Labels, WaitArgs, has_steps, wait_steps};
pub use undeploy::{UndeployArgs, UndeploySpec, Undeployed, steps as undeploy_steps};

/// The verbs of Node Feature Discovery.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum NfdCommand {
    /// Ask whether NFD has labelled a node
    #[command(alias = "has_labels")]
    HasLabels(LabelArgs),
    /// Wait until NFD has labelled a node
    #[command(alias = "wait_labels")]
    WaitLabels(WaitArgs),
    /// Ask whether NFD sees an NVIDIA GPU on a node
    #[command(alias = "has_gpu_nodes")]
    HasGpuNodes(LabelArgs),
    /// Wait until NFD sees an NVIDIA GPU on a node
    #[command(alias = "wait_gpu_nodes")]
    WaitGpuNodes(WaitArgs),
    /// Install the NFD Operator from a catalog and let it label the nodes
    #[command(alias = "deploy-from-operatorhub", alias = "deploy_from_operatorhub")]
    Deploy(DeployArgs),
    /// Remove the NFD Operator
    #[command(alias = "undeploy-from-operatorhub", alias = "undeploy_from_operatorhub")]
    Undeploy(UndeployArgs),
}

impl Noun for NfdCommand {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        Ok(match self {
            NfdCommand::HasLabels(_) => Box::new(LabelSpec::has(Labels::Any)),
            NfdCommand::WaitLabels(_) => Box::new(LabelSpec::wait(Labels::Any)),
            NfdCommand::HasGpuNodes(_) => Box::new(LabelSpec::has(Labels::Gpu)),
            NfdCommand::WaitGpuNodes(_) => Box::new(LabelSpec::wait(Labels::Gpu)),
            NfdCommand::Deploy(args) => Box::new(DeploySpec::from(args)),
            NfdCommand::Undeploy(args) => Box::new(UndeploySpec::from(args)),
        })
    }
}
