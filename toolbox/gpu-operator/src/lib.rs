//! The GPU Operator: installing it, waiting for the driver and everything else, burning the GPUs, saving its state,
//! removing it.
//!
//! Every verb is a function `steps` that adds its steps to a plan, so that a CI flow can compose them; the verb itself is
//! a plan of those steps alone. This crate must not import kube, print, or read the environment.

mod burn;
mod capture;
mod csv_version;
mod deploy;
mod locate;
mod names;
mod undeploy;
mod version;
mod wait;

use std::time::Duration;

use toolbox_core::engine::{StepSpec, Why};
use toolbox_core::{Noun, Verb};

pub use burn::{BurnArgs, BurnSpec, Burnt, steps as burn_steps};
pub use capture::{
    CaptureArgs, CaptureSpec, Captured, finalizer as capture_finalizer, must_gather_finalizer, steps as capture_steps,
};
pub use csv_version::{VersionArgs, VersionSpec};
pub use deploy::{DeployArgs, DeploySpec, Deployed, InstallPlan, steps as deploy_steps};
pub use locate::{Hints, Operator, find as find_operator};
pub use undeploy::{UndeployArgs, UndeploySpec, steps as undeploy_steps};
pub use version::{NotAVersion, OperatorVersion};
pub use wait::{StackReady, WaitArgs, WaitSpec, steps as wait_steps};

/// The verbs of the GPU Operator.
#[derive(Clone, Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "a verb's help is the text of its arguments, and text here would hide it")]
pub enum GpuOperatorCommand {
    #[command(alias = "deploy_from_operatorhub")]
    DeployFromOperatorhub(DeployArgs),
    #[command(alias = "undeploy_from_operatorhub")]
    UndeployFromOperatorhub(UndeployArgs),
    #[command(alias = "wait_deployment")]
    WaitDeployment(WaitArgs),
    #[command(alias = "run_gpu_burn")]
    RunGpuBurn(BurnArgs),
    #[command(alias = "capture_deployment_state")]
    CaptureDeploymentState(CaptureArgs),
    #[command(alias = "get_csv_version")]
    GetCsvVersion(VersionArgs),
}

/// `1 node`, `2 nodes`.
fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A step that reads and decides: it has the time that an API server may need to come back.
fn asking(id: &str, title: &str) -> StepSpec {
    StepSpec::ask(id, title).deadline(Duration::from_secs(300))
}

impl Noun for GpuOperatorCommand {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        Ok(match self {
            GpuOperatorCommand::DeployFromOperatorhub(args) => Box::new(DeploySpec::try_from(args)?),
            GpuOperatorCommand::UndeployFromOperatorhub(args) => Box::new(UndeploySpec::from(args)),
            GpuOperatorCommand::WaitDeployment(args) => Box::new(WaitSpec::from(args)),
            GpuOperatorCommand::RunGpuBurn(args) => Box::new(BurnSpec::from(args)),
            GpuOperatorCommand::CaptureDeploymentState(args) => Box::new(CaptureSpec::from(args)),
            GpuOperatorCommand::GetCsvVersion(args) => Box::new(VersionSpec::from(args)),
        })
    }
}
