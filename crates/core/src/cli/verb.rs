//! What a tool implements.

use toolbox_cluster::Cluster;
use toolbox_engine::{Plan, RunDir, Secret, Why};

pub use toolbox_engine::run::VerbName;

use crate::EnvMap;
use crate::settings::Settings;

/// What a plan is made for. More may come; tests make one with [`VerbEnv::new`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerbEnv {
    /// The cluster.
    pub cluster: Cluster,
    /// The settings in force, each with its origin.
    pub settings: Settings,
    /// The environment, for the variables that a CI gives a flow.
    pub env: EnvMap,
    /// Whether the cluster is simulated.
    pub rehearsal: bool,
    /// The run's directory, for a flow that gives each of its verbs one of its own; none with `--plan`.
    pub run: Option<RunDir>,
}

impl VerbEnv {
    /// For this cluster; nothing set.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, settings: Settings::default(), env: EnvMap::default(), rehearsal: false, run: None }
    }

    /// The same with an environment.
    #[must_use]
    pub fn with_env(self, env: EnvMap) -> Self {
        Self { env, ..self }
    }

    /// The same with settings.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }
}

/// A job whose least possible time the rehearsal can say: GPU nodes, NFD, the GPU Operator, validation, a burn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorJob {
    /// Type of the GPU machines.
    pub instance_type: String,
    /// How many of them there have to be.
    pub replicas: u32,
    /// Seconds of the burn.
    pub burn_seconds: u64,
    /// Package of the GPU Operator.
    pub gpu_package: String,
    /// Package of NFD.
    pub nfd_package: String,
}

/// A verb's part of a CI flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPart {
    /// The verb.
    pub name: VerbName,
    /// The beginnings of its steps' ids; where several parts claim a step, the longest decides.
    pub prefixes: Vec<&'static str>,
    /// The words that run the verb alone.
    pub command: Vec<String>,
}

/// A verb with its arguments checked: makes the plan.
pub trait Verb: Send {
    /// Its name in the artifacts directory.
    fn name(&self) -> VerbName;

    /// The steps. Reads nothing from the cluster; a step does that.
    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why>;

    /// Set for a CI flow, whose files stand at the root of the artifact directory: the name its report carries, as in
    /// `<flow>-summary.html`.
    fn flow(&self) -> Option<String> {
        None
    }

    /// The verbs that a CI flow is composed of, each with a directory of its own for existing readers.
    fn parts(&self) -> Vec<FlowPart> {
        Vec::new()
    }

    /// The job whose floor a rehearsal records, so that the run's time can be judged.
    fn floor(&self) -> Option<FloorJob> {
        None
    }

    /// Values that must appear in no file and no output.
    fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }
}

/// A group of verbs: the enum of a noun's subcommands.
pub trait Noun: clap::Subcommand {
    /// Checks the arguments. A failure is about the command line (exit code 2) or a file named on it (3).
    fn verb(self) -> Result<Box<dyn Verb>, Why>;
}

/// A verb without a noun, such as `tbx run`.
pub trait Lone: clap::Args {
    /// Checks the arguments, as [`Noun::verb`].
    fn verb(self) -> Result<Box<dyn Verb>, Why>;
}
