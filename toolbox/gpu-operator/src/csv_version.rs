//! `gpu-operator get-csv-version`: the installed operator's version.

use serde_json::json;
use toolbox_core::engine::{Plan, Report, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::locate::{self, Hints, Operator};

/// Print the version of the installed GPU Operator
#[derive(Clone, Debug, Default, clap::Args)]
pub struct VersionArgs {
    /// The operator's namespace, when it is installed more than once
    #[arg(long, value_name = "NAMESPACE", value_parser = toolbox_core::cli::namespace)]
    namespace: Option<String>,
}

/// The question, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionSpec {
    /// Where the operator is.
    pub hints: Hints,
}

impl From<VersionArgs> for VersionSpec {
    fn from(args: VersionArgs) -> Self {
        Self { hints: Hints { namespace: args.namespace.filter(|name| !name.is_empty()), version: None } }
    }
}

fn report(operator: &Operator) -> Report {
    Report {
        text: operator.version.to_string(),
        json: json!({"version": operator.version.as_str(), "namespace": operator.namespace}),
    }
}

impl Verb for VersionSpec {
    fn name(&self) -> VerbName {
        VerbName::new("gpu_operator", "get_csv_version")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("gpu_operator get_csv_version");
        let hints = self.hints.or_env(&env.env)?;
        let operator = locate::locate(&mut plan, &env.cluster, "gpu-operator.find", &hints);
        plan.answer(&operator, report);
        Ok(plan)
    }
}
