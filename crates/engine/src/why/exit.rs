//! Exit codes and whose fault a failure is: the contract with scripts and CIs.

use serde::{Deserialize, Serialize};

/// How a run ends. The number is the process's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// Everything asked for holds.
    Done,
    /// The thing under test, or what it stands on, reached a state it will not leave; a probe answered no.
    Failed,
    /// The command line is wrong.
    Usage,
    /// A configuration file, manifest or value is wrong.
    Configuration,
    /// The cluster cannot be reached, or does not allow what is needed.
    Access,
    /// A wait reached its deadline.
    TimedOut,
    /// An undo or clean-up that was asked for failed.
    CleanUp,
    /// A bug of this program.
    Bug,
    /// Stopped by SIGINT.
    Interrupted,
    /// Stopped by SIGTERM.
    Terminated,
}

impl Exit {
    /// Every way a run can end, in the order of the codes.
    pub const ALL: [Exit; 10] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::Configuration,
        Exit::Access,
        Exit::TimedOut,
        Exit::CleanUp,
        Exit::Bug,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Configuration => 3,
            Exit::Access => 4,
            Exit::TimedOut => 5,
            Exit::CleanUp => 6,
            Exit::Bug => 70,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }

    /// What the code means, for the help and the README's table.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done; a probe answered yes",
            Exit::Failed => {
                "failed: what is tested, or what it stands on, reached a state it will not leave; a probe answered no"
            }
            Exit::Usage => "wrong command line",
            Exit::Configuration => "wrong configuration, manifest or value",
            Exit::Access => "the cluster cannot be reached, or does not allow what is needed",
            Exit::TimedOut => "a wait reached its deadline; the last reason is quoted",
            Exit::CleanUp => "an undo or clean-up that was asked for failed",
            Exit::Bug => "a bug of this program",
            Exit::Interrupted => "interrupted (SIGINT)",
            Exit::Terminated => "terminated (SIGTERM, SIGHUP)",
        }
    }
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureVerdict {
    /// The operator or driver under test.
    Product,
    /// What it stands on: cluster, cloud, catalog, registry.
    Infrastructure,
    /// Quota or stock: the same request may work later or elsewhere.
    Capacity,
    /// The request or the cluster's set-up.
    Configuration,
    /// A failure on the reviewed list of known flakes.
    KnownFlake,
    /// This program.
    Tool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_has_its_own_code_and_meaning() {
        let codes: std::collections::BTreeSet<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes.len(), Exit::ALL.len());
        assert_eq!(codes.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 70, 130, 143]);
        let meanings: std::collections::BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.meaning()).collect();
        assert_eq!(meanings.len(), Exit::ALL.len());
    }
}
