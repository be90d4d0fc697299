//! What a tool implements.

use toolbox_engine::{Plan, Why};

use crate::EnvMap;

/// A verb's name as the artifacts directory spells it: `gpu_operator`, `deploy_from_operatorhub`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerbName {
    /// The noun: `gpu_operator`.
    pub group: String,
    /// The verb: `deploy_from_operatorhub`.
    pub command: String,
}

impl VerbName {
    /// A name; upstream's spelling, with underscores.
    pub fn new(group: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            command: command.into(),
        }
    }
}

/// `gpu_operator deploy_from_operatorhub`.
impl std::fmt::Display for VerbName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.group, self.command)
    }
}

/// What a plan is made for. The fields only grow; tests make one with [`VerbEnv::new`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerbEnv {
    /// The environment, for the variables that a CI gives a flow.
    pub env: EnvMap,
    /// Whether the cluster is simulated.
    pub rehearsal: bool,
}

/// A verb with its arguments checked: makes the plan.
pub trait Verb: Send {
    /// Its name in the artifacts directory.
    fn name(&self) -> VerbName;

    /// The steps. Reads nothing from the cluster; a step does that.
    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why>;

    /// Set for a CI flow: the name its JUnit file and report carry at the root of the artifacts directory.
    fn flow(&self) -> Option<String> {
        None
    }

    /// Values that must appear in no file and no output.
    fn secrets(&self) -> Vec<String> {
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
