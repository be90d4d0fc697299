//! The cluster itself: its machines and what it is.
//!
//! Every verb is a function that adds its steps to a plan, so that a CI flow can compose them; the verb itself is a plan
//! of those steps alone. This crate must not import kube, print, or read the environment.

mod capture_environment;
mod scale;

use toolbox_core::engine::Why;
use toolbox_core::{Noun, Verb};

pub use capture_environment::{
    CaptureEnvironmentArgs, CaptureEnvironmentSpec, OWN_VERSION, steps as capture_environment_steps,
};
pub use scale::{ScaleArgs, ScaleSpec, Scaled, steps as scale_steps};

/// The verbs of the cluster.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ClusterCommand {
    /// Have so many machines of an instance type
    #[command(alias = "set-scale", alias = "set_scale")]
    Scale(ScaleArgs),
    /// Save the cluster's version, nodes and machines with the artifacts
    #[command(alias = "capture_environment")]
    CaptureEnvironment(CaptureEnvironmentArgs),
}

impl Noun for ClusterCommand {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        Ok(match self {
            ClusterCommand::Scale(args) => Box::new(ScaleSpec::try_from(args)?),
            ClusterCommand::CaptureEnvironment(args) => Box::new(CaptureEnvironmentSpec::from(args)),
        })
    }
}
