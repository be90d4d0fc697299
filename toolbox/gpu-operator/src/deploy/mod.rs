//! `gpu-operator deploy-from-operatorhub`: the operator from its catalog, and the ClusterPolicy that makes it work.

mod instance;
mod patch;
mod policy;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolbox_core::cli::wrong_flag;
use toolbox_core::cluster::olm::steps::{Approval, InstallSpec, Installed, install};
use toolbox_core::cluster::olm::{PackageRef, Wish};
use toolbox_core::cluster::{Cluster, Object};
use toolbox_core::config;
use toolbox_core::engine::plan::{After, Out};
use toolbox_core::engine::{Cause, FailureVerdict, Plan, Report, Step, StepCx, Why};
use toolbox_core::{EnvMap, Verb, VerbEnv, VerbName};

use crate::locate::{self, Operator};
use crate::names;
use crate::version::OperatorVersion;

/// Install the GPU Operator from OperatorHub and create its ClusterPolicy
///
/// Channel and version are looked up in the catalog before anything is changed. The namespace and the scope of the
/// OperatorGroup come from the version itself: up to 1.8 it watches every namespace and goes to openshift-operators, from
/// 1.9 on it has a namespace of its own. Only the InstallPlan of this operator is approved. The ClusterPolicy is the one
/// that the installed version brings as an example, with your changes; one that is there already is kept, and only your
/// changes are applied to it.
///
/// Ends when the operator is installed and the ClusterPolicy exists; wait-deployment waits for the driver and the rest.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DeployArgs {
    /// The version to install, such as 1.11.0, or latest for the channel's newest
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// The channel to subscribe to [default: the one that has the version, or the package's default]
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// The operator's namespace [default: GPU_OPERATOR_NAMESPACE, or what the version suggests]
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The catalog to install from
    #[arg(long, value_name = "CATALOGSOURCE", default_value = names::CATALOG)]
    catalog: String,
    /// Who approves later versions: Manual (nobody; this run approves its own) or Automatic
    #[arg(long, alias = "installPlan", value_name = "APPROVAL", value_enum, ignore_case = true, default_value_t)]
    install_plan: InstallPlan,
    /// A YAML or JSON file with changes to the ClusterPolicy (a JSON merge patch)
    #[arg(long, value_name = "FILE")]
    cluster_policy_patch: Option<PathBuf>,
    /// Also approve an InstallPlan that would install or upgrade other operators
    #[arg(long)]
    approve_strangers: bool,
}

/// Who approves later versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum InstallPlan {
    /// Nobody: later versions wait for an approval.
    #[default]
    #[value(name = "Manual")]
    Manual,
    /// OLM itself.
    #[value(name = "Automatic")]
    Automatic,
}

/// An installation with its arguments checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploySpec {
    /// Channel and version.
    pub wish: Wish,
    /// The namespace asked for.
    pub namespace: Option<String>,
    /// The catalog.
    pub catalog: String,
    /// Who approves later versions.
    pub install_plan: InstallPlan,
    /// Changes to the ClusterPolicy.
    pub patch: Option<Value>,
    /// Approve plans that hold other operators.
    pub approve_strangers: bool,
}

impl Default for DeploySpec {
    fn default() -> Self {
        Self {
            wish: Wish::default(),
            namespace: None,
            catalog: names::CATALOG.to_owned(),
            install_plan: InstallPlan::Manual,
            patch: None,
            approve_strangers: false,
        }
    }
}

/// The bundle that was installed says no version.
struct NoVersion;

impl Cause for NoVersion {
    fn code(&self) -> &'static str {
        "csv-without-version"
    }
    fn text(&self) -> String {
        "has no readable version (spec.version)".to_owned()
    }
    fn next(&self) -> String {
        "choose another version: this bundle is not complete".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Product
    }
}

/// An empty word counts as not given: scripts pass `--channel=""`.
fn given(word: Option<String>) -> Option<String> {
    word.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty())
}

impl DeploySpec {
    /// The same, in the namespace that the environment names when no other was asked for: where the other verbs look.
    pub fn or_env(self, env: &EnvMap) -> Result<Self, Why> {
        let Some(namespace) = locate::namespace_in(env).filter(|_| self.namespace.is_none()) else {
            return Ok(self);
        };
        if !is_label(&namespace) {
            return Err(locate::bad_variable(locate::NAMESPACE_VARIABLE, not_a_namespace(&namespace)));
        }
        Ok(Self { namespace: Some(namespace), ..self })
    }

    /// Channel and version as words: checked as far as that is possible without the catalog.
    pub fn wish(version: Option<String>, channel: Option<String>) -> Result<Wish, Why> {
        let version = given(version);
        if let Some(text) = &version
            && text != "latest"
            && let Err(error) = text.parse::<OperatorVersion>()
        {
            let next = "give a version such as 1.11.0, or latest";
            return Err(wrong_flag("--version", error.to_string(), next));
        }
        Ok(Wish { channel: given(channel), version })
    }
}

impl TryFrom<DeployArgs> for DeploySpec {
    type Error = Why;

    fn try_from(args: DeployArgs) -> Result<Self, Why> {
        let namespace = given(args.namespace);
        if let Some(name) = &namespace
            && !is_label(name)
        {
            let next = "use up to 63 small letters, digits and dashes";
            return Err(wrong_flag("--namespace", not_a_namespace(name), next));
        }
        let patch = args.cluster_policy_patch.as_deref().map(read_patch).transpose()?;
        Ok(Self {
            wish: Self::wish(args.version, args.channel)?,
            namespace,
            catalog: given(Some(args.catalog)).unwrap_or_else(|| names::CATALOG.to_owned()),
            install_plan: args.install_plan,
            patch,
            approve_strangers: args.approve_strangers,
        })
    }
}

fn not_a_namespace(name: &str) -> String {
    format!("`{name}` is no name of a namespace")
}

fn read_patch(path: &Path) -> Result<Value, Why> {
    let text = config::read_file(path, "ClusterPolicy patch")?;
    Ok(patch::read(&path.display().to_string(), &text)?)
}

fn is_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= 63 && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Handles to what an installation yields.
#[derive(Clone, Copy, Debug)]
pub struct Deployed {
    /// What OLM did.
    pub installed: Installed,
    /// The operator, installed.
    pub operator: Out<Operator>,
    /// The ClusterPolicy.
    pub policy: Out<Object>,
}

/// Adds the steps of an installation.
pub fn steps(plan: &mut Plan, cluster: &Cluster, spec: &DeploySpec, after: After) -> Deployed {
    let package = PackageRef::new(names::PACKAGE, spec.catalog.as_str());
    let install_spec = InstallSpec {
        wish: spec.wish.clone(),
        namespace: spec.namespace.clone(),
        fallback_namespace: names::OWN_NAMESPACE,
        group: names::OPERATOR_GROUP,
        approval: match spec.install_plan {
            InstallPlan::Manual => Approval::Manual,
            InstallPlan::Automatic => Approval::Automatic,
        },
        approve_strangers: spec.approve_strangers,
        keep_package: Some(keep_package),
        ..InstallSpec::new("gpu-operator", "the GPU Operator", package)
    };
    let leftover = instance::leftover_step(plan, cluster, after.clone());
    let installed = install(plan, cluster, install_spec, after);
    let operator = operator_step(plan, &installed);
    let policy = instance::steps(plan, cluster, spec.patch.clone(), &installed, leftover);
    Deployed { installed, operator, policy }
}

fn keep_package(cx: &StepCx, manifest: &Value) {
    if let Ok(yaml) = config::to_yaml(manifest) {
        cx.file("gpu_operator_packagemanifest.yml", yaml);
    }
    if let Ok(json) = serde_json::to_string_pretty(manifest) {
        cx.file("gpu_operator_packagemanifest.json", json);
    }
}

fn operator_step(plan: &mut Plan, installed: &Installed) -> Out<Operator> {
    let describe = crate::asking("gpu-operator.version", "the version that was installed");
    plan.step(describe, (installed.target, installed.csv), |cx, (target, csv)| async move {
        let Some(operator) = Operator::of_csv((*csv).clone(), None) else {
            return Err(Why::new(csv.refer(), &NoVersion));
        };
        cx.file("gpu_operator_csv_name.txt", format!("{}\n", csv.name()));
        if let Ok(yaml) = config::to_yaml(csv.value()) {
            cx.file("gpu_operator_csv.yml", yaml);
        }
        cx.file(names::VERSION_FILE, format!("{}\n", operator.version));
        let image = csv
            .text("/spec/install/spec/deployments/0/spec/template/spec/containers/0/image")
            .or_else(|| csv.annotation("containerImage"));
        cx.version("gpu-operator image", None, image);
        let what = format!("{operator}, from channel {}", target.chosen.channel);
        Ok(Step::AlreadySo(operator, what))
    })
}

/// What is printed at the end.
fn report(deployed: &(Operator, String)) -> Report {
    let (operator, policy) = deployed;
    Report {
        text: format!("GPU Operator {operator}, ClusterPolicy {policy}"),
        json: json!({
            "version": operator.version.as_str(),
            "namespace": operator.namespace,
            "operand_namespace": operator.operand_namespace,
            "csv": operator.csv.as_ref().map(Object::name),
            "cluster_policy": policy,
        }),
    }
}

impl Verb for DeploySpec {
    fn name(&self) -> VerbName {
        VerbName::new("gpu_operator", "deploy_from_operatorhub")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("gpu_operator deploy_from_operatorhub");
        let spec = self.or_env(&env.env)?;
        let deployed = steps(&mut plan, &env.cluster, &spec, After::nothing());
        let both = plan.step(
            crate::asking("gpu-operator.deployed", "the operator and its ClusterPolicy"),
            (deployed.operator, deployed.policy),
            |_, (operator, policy)| async move {
                let text = format!("{operator}, {}", policy.name());
                Ok(Step::AlreadySo(((*operator).clone(), policy.name().to_owned()), text))
            },
        );
        plan.answer(&both, report);
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolbox_core::engine::Exit;

    fn spec(change: impl FnOnce(&mut DeployArgs)) -> Result<DeploySpec, Why> {
        let mut args = DeployArgs { catalog: names::CATALOG.to_owned(), ..DeployArgs::default() };
        change(&mut args);
        args.try_into()
    }

    #[test]
    fn versions_are_text_and_bad_ones_are_refused_beforehand() {
        let fine = spec(|args| args.version = Some("1.10".to_owned())).unwrap();
        assert_eq!(fine.wish.version.as_deref(), Some("1.10"));
        let latest = spec(|args| args.version = Some("latest".to_owned())).unwrap();
        assert_eq!(latest.wish.exact(), None);
        let why = spec(|args| args.version = Some("one.two".to_owned())).unwrap_err();
        assert_eq!((why.exit, why.object.to_string().as_str()), (Exit::Usage, "flag/--version"));
        let empty = spec(|args| args.channel = Some(String::new())).unwrap();
        assert_eq!(empty.wish.channel, None);
    }

    #[test]
    fn a_namespace_must_be_one() {
        for name in ["-a", "A", "a_b", &"x".repeat(64)] {
            assert_eq!(spec(|args| args.namespace = Some(name.to_owned())).unwrap_err().exit, Exit::Usage);
        }
    }

    #[test]
    fn a_patch_that_cannot_be_read_is_exit_3_and_names_the_file() {
        let why = spec(|args| args.cluster_policy_patch = Some("/nowhere/patch.yaml".into())).unwrap_err();
        assert_eq!(why.exit, Exit::Configuration);
        assert!(why.to_string().contains("/nowhere/patch.yaml"), "{why}");
    }
}
