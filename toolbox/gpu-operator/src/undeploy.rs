//! `gpu-operator undeploy-from-operatorhub`: what belongs to the operator goes, in an order that lets it clean up.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use toolbox_core::cluster::olm::PackageRef;
use toolbox_core::cluster::olm::steps::{Found, UninstallSpec, Uninstalled, uninstall};
use toolbox_core::cluster::{Cluster, kinds};
use toolbox_core::engine::plan::{After, Out};
use toolbox_core::engine::{Plan, Report, Step, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

use crate::locate;
use crate::names;

/// Remove the GPU Operator that OperatorHub installed
///
/// First the ClusterPolicy, and only when it is gone the Subscription, the operator's own ClusterServiceVersion, the CRD,
/// and the OperatorGroup and namespace if an earlier run of this tool made them. Other operators in the same namespace
/// are left alone, and what stays behind is listed. With nothing there, nothing is done.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct UndeployArgs {
    /// The operator's namespace, when it is installed more than once
    #[arg(long, value_name = "NAMESPACE", value_parser = toolbox_core::cli::namespace)]
    namespace: Option<String>,
    /// Remove finalizers that the operator does not remove within a minute, or that nobody is left to remove
    #[arg(long)]
    strip_finalizers: bool,
}

/// A removal with its arguments checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndeploySpec {
    /// The operator's namespace; found when absent.
    pub namespace: Option<String>,
    /// Remove finalizers that nobody removes.
    pub strip_finalizers: bool,
}

impl From<UndeployArgs> for UndeploySpec {
    fn from(args: UndeployArgs) -> Self {
        Self { namespace: args.namespace.filter(|name| !name.is_empty()), strip_finalizers: args.strip_finalizers }
    }
}

/// Adds the steps of a removal.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &UndeploySpec, after: After) -> Uninstalled {
    let spec = UninstallSpec {
        id: "gpu-operator",
        title: "the GPU Operator",
        package: PackageRef::new(names::PACKAGE, names::CATALOG),
        namespace: spec.namespace.clone(),
        usual_namespace: names::OWN_NAMESPACE,
        instances: vec![kinds::CLUSTER_POLICY],
        strip_finalizers: spec.strip_finalizers,
        instances_deadline: Duration::from_secs(600),
    };
    uninstall(plan, cluster, spec, after)
}

fn answer(plan: &mut Plan, undeployed: &Uninstalled) -> Out<Report> {
    let describe = crate::asking("gpu-operator.removed", "what went and what stays");
    plan.step(describe, (undeployed.found, undeployed.gone), |_, (found, _)| async move {
        let report = report(&found);
        let what = report.text.lines().next().unwrap_or_default().to_owned();
        Ok(Step::AlreadySo(report, what))
    })
}

fn report(found: &Found) -> Report {
    let went: Vec<String> = [&found.instances, &found.subscriptions, &found.csvs, &found.groups]
        .into_iter()
        .flatten()
        .chain(&found.own_namespace)
        .map(ToString::to_string)
        .collect();
    let mut text = if went.is_empty() {
        "nothing of the GPU Operator was there".to_owned()
    } else {
        format!("removed {}", went.join(", "))
    };
    for stays in &found.stays {
        let _ = write!(text, "\nstays: {stays}");
    }
    Report { text, json: json!({"removed": went, "stays": found.stays}) }
}

impl Verb for UndeploySpec {
    fn name(&self) -> VerbName {
        VerbName::new("gpu_operator", "undeploy_from_operatorhub")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("gpu_operator undeploy_from_operatorhub");
        let namespace = self.namespace.clone().or_else(|| locate::namespace_in(&env.env));
        let spec = Self { namespace, ..*self };
        let undeployed = steps(&mut plan, &env.cluster, &spec, After::nothing());
        let report = answer(&mut plan, &undeployed);
        plan.answer(&report, Clone::clone);
        Ok(plan)
    }
}
