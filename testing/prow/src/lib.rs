//! The CI layer: what a CI's job runs, in the words it has always used.
//!
//! A job is a flow: the verbs' own steps composed into one plan, so that everything that can go on at the same time does.
//! What the CI tells about itself comes from a map that is passed in. This crate must not read the environment, run
//! programs or print.

mod context;
mod flow;
mod run;
mod words;

use toolbox_core::engine::Why;
use toolbox_core::{Noun, Verb};

pub use context::{CiContext, JobType, Pull, Refs, Sourced};
pub use flow::{OperatorHubArgs, OperatorHubFlow};
pub use run::RunArgs;
use words::NotBuilt;

/// The jobs of the CI.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ProwCommand {
    /// Test the GPU Operator
    #[command(subcommand, alias = "gpu_operator")]
    GpuOperator(GpuOperatorJob),
    /// Not built yet
    #[command(hide = true)]
    Cluster(NotBuilt),
    /// Not built yet
    #[command(hide = true)]
    Entitle(NotBuilt),
    /// Not built yet
    #[command(hide = true, alias = "nfd_operator")]
    NfdOperator(NotBuilt),
    /// Not built yet
    #[command(hide = true)]
    Nto(NotBuilt),
    /// Not built yet
    #[command(hide = true)]
    Sro(NotBuilt),
}

/// The jobs of the GPU Operator.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum GpuOperatorJob {
    #[expect(missing_docs, reason = "its help is the text of its arguments, and text here would hide it")]
    #[command(alias = "test_operatorhub")]
    TestOperatorhub(OperatorHubArgs),
    /// Not built yet
    #[command(hide = true, alias = "test_master_branch")]
    TestMasterBranch(NotBuilt),
    /// Not built yet
    #[command(hide = true, alias = "test_commit")]
    TestCommit(NotBuilt),
    /// Not built yet
    #[command(hide = true, alias = "validate_deployment_post_upgrade")]
    ValidateDeploymentPostUpgrade(NotBuilt),
    /// Not built yet
    #[command(hide = true, alias = "publish_master_bundle")]
    PublishMasterBundle(NotBuilt),
    /// Not built yet
    #[command(hide = true, alias = "cleanup_cluster")]
    CleanupCluster(NotBuilt),
}

impl Noun for ProwCommand {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        match self {
            ProwCommand::GpuOperator(job) => job.verb(),
            ProwCommand::Cluster(_) => Err(words::not_built("prow cluster")),
            ProwCommand::Entitle(_) => Err(words::not_built("prow entitle")),
            ProwCommand::NfdOperator(_) => Err(words::not_built("prow nfd-operator")),
            ProwCommand::Nto(_) => Err(words::not_built("prow nto")),
            ProwCommand::Sro(_) => Err(words::not_built("prow sro")),
        }
    }
}

impl GpuOperatorJob {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        let name = match self {
            GpuOperatorJob::TestOperatorhub(args) => {
                return Ok(Box::new(OperatorHubFlow::try_from(args)?));
            }
            GpuOperatorJob::TestMasterBranch(_) => "test_master_branch",
            GpuOperatorJob::TestCommit(_) => "test_commit",
            GpuOperatorJob::ValidateDeploymentPostUpgrade(_) => "validate_deployment_post_upgrade",
            GpuOperatorJob::PublishMasterBundle(_) => "publish_master_bundle",
            GpuOperatorJob::CleanupCluster(_) => "cleanup_cluster",
        };
        Err(words::not_built(&format!("prow gpu-operator {name}")))
    }
}
