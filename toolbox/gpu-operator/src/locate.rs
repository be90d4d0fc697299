//! Finding the installed operator: which namespace, which version.

use toolbox_core::EnvMap;
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::engine::plan::{Act, Effect, Out};
use toolbox_core::engine::{Cause, Exit, FailureVerdict, ObjectRef, Plan, Step, StepSpec, Why};

use crate::names::{self, VERSION_FILE};
use crate::version::OperatorVersion;
use crate::wait::StackCause;

/// An installed operator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Where the operator itself runs.
    pub namespace: String,
    /// Where the workloads it manages run.
    pub operand_namespace: String,
    /// Its version.
    pub version: OperatorVersion,
    /// Its CSV, when OLM installed it.
    pub csv: Option<Object>,
    /// Its Subscription, when there is one.
    pub subscription: Option<Object>,
}

impl Operator {
    /// An operator that OLM installed with this CSV. `None` when the CSV has no readable version.
    pub fn of_csv(csv: Object, subscription: Option<Object>) -> Option<Self> {
        let version = csv.text("/spec/version")?.parse().ok()?;
        let namespace = csv.namespace()?.to_owned();
        Some(Self {
            operand_namespace: names::operand_namespace(&namespace).to_owned(),
            namespace,
            version,
            csv: Some(csv),
            subscription,
        })
    }
}

/// `1.11.0 in nvidia-gpu-operator`.
impl std::fmt::Display for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.version, self.namespace)
    }
}

/// Where to look, and what to believe without looking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The operator's namespace, from `--namespace` or `GPU_OPERATOR_NAMESPACE`.
    pub namespace: Option<String>,
    /// The operator's version, from `GPU_OPERATOR_VERSION`.
    pub version: Option<OperatorVersion>,
}

impl Hints {
    /// The same, with what the environment says where nothing was given.
    pub fn or_env(&self, env: &EnvMap) -> Result<Self, Why> {
        let version = env.get("GPU_OPERATOR_VERSION").map(str::parse).transpose();
        let version = version
            .map_err(|error: crate::version::NotAVersion| bad_variable("GPU_OPERATOR_VERSION", error.to_string()))?;
        let namespace = namespace_in(env);
        Ok(Self { namespace: self.namespace.clone().or(namespace), version: self.version.clone().or(version) })
    }
}

/// Where the operator is, or is to be, for those who always say it in the environment.
pub(crate) const NAMESPACE_VARIABLE: &str = "GPU_OPERATOR_NAMESPACE";

/// The operator's namespace as the environment has it.
pub(crate) fn namespace_in(env: &EnvMap) -> Option<String> {
    env.get(NAMESPACE_VARIABLE).map(str::to_owned)
}

/// A variable whose value cannot be right.
pub(crate) fn bad_variable(name: &str, text: String) -> Why {
    Why::new(ObjectRef::thing("variable", name), &BadVariable(text))
}

struct BadVariable(String);

impl Cause for BadVariable {
    fn code(&self) -> &'static str {
        "bad-variable"
    }
    fn text(&self) -> String {
        self.0.clone()
    }
    fn next(&self) -> String {
        "correct it or unset it".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Configuration
    }
}

/// Everything that tells of an operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    /// Subscriptions of OLM, in every namespace.
    pub(crate) subscriptions: Vec<Object>,
    /// CSVs, the copies in other namespaces left out.
    pub(crate) csvs: Vec<Object>,
    /// The operator's own pods, in every namespace.
    pub(crate) pods: Vec<Object>,
}

/// The packages of the operator: NVIDIA's own catalog entry, and the community's.
const PACKAGES: [&str; 2] = [names::PACKAGE, "gpu-operator"];

/// Whether a package name is the operator's. Other vendors have GPU operators as well.
fn is_ours(package: &str) -> bool {
    PACKAGES.contains(&package)
}

/// By its package, or, for a bundle under test or another catalog's build, by the kind that it brings.
fn csv_is_ours(csv: &Object) -> bool {
    let named = csv.name().split_once('.').is_some_and(|(package, _)| is_ours(package));
    let owned = csv.list("/spec/customresourcedefinitions/owned").iter();
    let brings = owned.filter_map(|crd| crd["name"].as_str()).any(|name| name == names::CRD);
    (named || brings) && csv.label("olm.copiedFrom").is_none() && csv.text("/status/reason") != Some("Copied")
}

impl Traces {
    /// Reads them, all at the same time. A cluster without OLM has no Subscriptions and no CSVs.
    pub(crate) async fn read(cluster: &Cluster) -> Result<Self, Why> {
        let subscriptions = Query::all(&kinds::SUBSCRIPTION);
        let csvs = Query::all(&kinds::CSV).labels("!olm.copiedFrom");
        let pods = Query::all(&kinds::POD).labels("app.kubernetes.io/component=gpu-operator");
        let (subscriptions, csvs, pods) =
            tokio::join!(cluster.list(&subscriptions), cluster.list(&csvs), cluster.list(&pods));
        let unless_absent = |found: Result<Vec<Object>, toolbox_core::cluster::ClusterError>| match found {
            Err(error) if error.is_not_served() => Ok(Vec::new()),
            found => found,
        };
        Ok(Self { subscriptions: unless_absent(subscriptions)?, csvs: unless_absent(csvs)?, pods: pods? })
    }

    /// Whether a Subscription is the operator's: by its package, or because it installed one of the operator's CSVs.
    fn is_of_operator(&self, subscription: &Object) -> bool {
        let csvs = ["/status/installedCSV", "/status/currentCSV"].map(|path| subscription.text(path));
        let installed = |csv: &Object| {
            csv.namespace() == subscription.namespace() && csvs.contains(&Some(csv.name())) && csv_is_ours(csv)
        };
        subscription.text("/spec/name").is_some_and(is_ours) || self.csvs.iter().any(installed)
    }

    /// The operator they tell of; `None` when there is none.
    pub(crate) fn operator(&self, hints: &Hints) -> Result<Option<Operator>, Why> {
        let here = |object: &&Object| hints.namespace.is_none() || object.namespace() == hints.namespace.as_deref();
        let subscriptions: Vec<&Object> =
            self.subscriptions.iter().filter(|subscription| self.is_of_operator(subscription)).filter(here).collect();
        if subscriptions.len() > 1 {
            let namespaces =
                subscriptions.iter().filter_map(|subscription| subscription.namespace().map(str::to_owned));
            let cause = StackCause::SeveralInstalled { namespaces: namespaces.collect() };
            return Err(Why::new(subscription_kind(), &cause));
        }
        let subscription = subscriptions.first().copied();
        let csvs: Vec<&Object> = self.csvs.iter().filter(|csv| csv_is_ours(csv)).filter(here).collect();
        let named = subscription.and_then(|subscription| {
            let name = subscription.text("/status/installedCSV").or_else(|| subscription.text("/status/currentCSV"))?;
            csvs.iter().find(|csv| csv.name() == name && csv.namespace() == subscription.namespace())
        });
        // While one version replaces another both are there; the newer one is the one that stays.
        let csv = named.or_else(|| {
            csvs.iter()
                .max_by_key(|csv| csv.text("/spec/version").and_then(|text| text.parse::<OperatorVersion>().ok()))
        });
        if let Some(csv) = csv
            && let Some(mut operator) = Operator::of_csv((*csv).clone(), subscription.cloned())
        {
            if let Some(version) = &hints.version {
                operator.version = version.clone();
            }
            return Ok(Some(operator));
        }
        let pod = self.pods.iter().find(|pod| here(pod));
        let namespace = hints.namespace.as_deref().or_else(|| pod?.namespace());
        let version = hints.version.clone().or_else(|| version_of_pod(pod?));
        Ok(match (namespace, version) {
            (Some(namespace), Some(version)) => Some(Operator {
                namespace: namespace.to_owned(),
                operand_namespace: names::operand_namespace(namespace).to_owned(),
                version,
                csv: None,
                subscription: subscription.cloned(),
            }),
            _ => None,
        })
    }

    /// Why there is none, in terms of what was looked at.
    pub(crate) fn absence(hints: &Hints) -> Why {
        let place = hints.namespace.as_deref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
        let looked = format!("no Subscription, CSV or pod of it{place}");
        Why::new(subscription_kind(), &StackCause::NotInstalled { looked })
    }
}

fn subscription_kind() -> ObjectRef {
    kinds::SUBSCRIPTION.object(None, names::PACKAGE)
}

/// The version of an operator that was not installed by OLM, from its image's tag or its chart's label.
fn version_of_pod(pod: &Object) -> Option<OperatorVersion> {
    let label = pod.label("app.kubernetes.io/version").and_then(|text| text.parse().ok());
    let image = pod.list("/spec/containers").first()?.get("image")?.as_str()?;
    label.or_else(|| image.rsplit_once(':')?.1.parse().ok())
}

/// The installed operator; `None` when there is none.
pub async fn find(cluster: &Cluster, hints: &Hints) -> Result<Option<Operator>, Why> {
    Traces::read(cluster).await?.operator(hints)
}

/// Adds the step that finds the operator.
pub(crate) fn locate(plan: &mut Plan, cluster: &Cluster, id: &str, hints: &Hints) -> Out<Operator> {
    let (cluster, hints) = (cluster.clone(), hints.clone());
    plan.step(describe(id), (), |cx, ()| async move {
        let traces = Traces::read(&cluster).await?;
        match traces.operator(&hints)? {
            Some(operator) => {
                cx.version("gpu-operator", None, Some(operator.version.as_str()));
                cx.file(VERSION_FILE, format!("{}\n", operator.version));
                let what = operator.to_string();
                Ok(Step::AlreadySo(operator, what))
            }
            None => Err(Traces::absence(&hints)),
        }
    })
}

/// Describes a step that looks for the operator.
pub(crate) fn describe(id: &str) -> StepSpec {
    crate::asking(id, "the installed GPU Operator")
        .does(Effect::any(Act::Read, &kinds::SUBSCRIPTION, None))
        .does(Effect::any(Act::Read, &kinds::CSV, None))
        .does(Effect::any(Act::Read, &kinds::POD, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn csv(namespace: &str, version: &str) -> Object {
        Object::new(json!({
            "metadata": {"name": format!("gpu-operator-certified.v{version}"), "namespace": namespace},
            "spec": {"version": version},
        }))
    }

    fn subscription(namespace: &str, package: &str, installed: &str) -> Object {
        Object::new(json!({
            "metadata": {"name": package, "namespace": namespace},
            "spec": {"name": package},
            "status": {"installedCSV": installed},
        }))
    }

    fn traces(subscriptions: Vec<Object>, csvs: Vec<Object>) -> Traces {
        Traces { subscriptions, csvs, pods: Vec::new() }
    }

    #[test]
    fn an_operator_before_1_9_has_its_workloads_elsewhere() {
        let found = traces(
            vec![subscription("openshift-operators", "gpu-operator-certified", "gpu-operator-certified.v1.8.2")],
            vec![csv("openshift-operators", "1.8.2")],
        );
        let operator = found.operator(&Hints::default()).unwrap().unwrap();
        assert_eq!(operator.operand_namespace, "gpu-operator-resources");
        assert_eq!(operator.to_string(), "1.8.2 in openshift-operators");
    }

    #[test]
    fn other_operators_are_passed_over_and_an_upgrade_does_not_confuse() {
        let found = traces(
            vec![
                subscription("team", "billing-operator", "billing-operator.v5.1.0"),
                subscription("nvidia-gpu-operator", "gpu-operator-certified", "gpu-operator-certified.v1.10.1"),
            ],
            vec![csv("nvidia-gpu-operator", "1.9.0"), csv("nvidia-gpu-operator", "1.10.1")],
        );
        let operator = found.operator(&Hints::default()).unwrap().unwrap();
        assert_eq!(operator.version.as_str(), "1.10.1");
    }

    #[test]
    fn another_vendors_gpu_operator_is_not_it_and_a_build_of_another_name_is() {
        let named = |name: &str, crd: &str| {
            Object::new(json!({
                "metadata": {"name": name, "namespace": "kube-amd-gpu"},
                "spec": {"version": "1.2.0", "customresourcedefinitions": {"owned": [{"name": crd}]}},
            }))
        };
        let amd = named("amd-gpu-operator.v1.2.0", "deviceconfigs.amd.com");
        let found =
            traces(vec![subscription("kube-amd-gpu", "amd-gpu-operator", "amd-gpu-operator.v1.2.0")], vec![amd]);
        assert!(found.operator(&Hints::default()).unwrap().is_none());
        let test = named("nightly-gpu-bundle.v1.2.0", "clusterpolicies.nvidia.com");
        let found = traces(vec![subscription("kube-amd-gpu", "nightly", "nightly-gpu-bundle.v1.2.0")], vec![test]);
        let operator = found.operator(&Hints::default()).unwrap().unwrap();
        assert_eq!(operator.to_string(), "1.2.0 in kube-amd-gpu");
        assert!(operator.subscription.is_some());
    }

    #[test]
    fn a_csv_without_a_subscription_is_still_an_operator() {
        let found = traces(vec![], vec![csv("nvidia-gpu-operator", "1.9.0"), csv("nvidia-gpu-operator", "1.10.1")]);
        let operator = found.operator(&Hints::default()).unwrap().unwrap();
        assert_eq!(operator.version.as_str(), "1.10.1");
        assert!(operator.subscription.is_none());
    }

    #[test]
    fn two_are_one_too_many_unless_the_namespace_says_which() {
        let found = traces(
            vec![
                subscription("a", "gpu-operator-certified", "gpu-operator-certified.v1.9.0"),
                subscription("b", "gpu-operator-certified", "gpu-operator-certified.v1.10.1"),
            ],
            vec![csv("a", "1.9.0"), csv("b", "1.10.1")],
        );
        let why = found.operator(&Hints::default()).unwrap_err();
        assert_eq!(why.code, "several-operators");
        let hints = Hints { namespace: Some("b".to_owned()), version: None };
        assert_eq!(found.operator(&hints).unwrap().unwrap().version.as_str(), "1.10.1");
    }

    #[test]
    fn a_chart_is_known_by_its_pod_and_nothing_by_nothing() {
        let pod = Object::new(json!({
            "metadata": {"name": "gpu-operator-1", "namespace": "gpu-operator"},
            "spec": {"containers": [{"image": "nvcr.io/nvidia/gpu-operator:v22.9.0"}]},
        }));
        let found = Traces { pods: vec![pod], ..Traces::default() };
        let operator = found.operator(&Hints::default()).unwrap().unwrap();
        assert_eq!(operator.to_string(), "22.9.0 in gpu-operator");
        let why = Traces::absence(&Hints::default());
        assert_eq!(why.code, "operator-not-installed");
    }
}
