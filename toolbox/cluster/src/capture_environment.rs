//! `cluster capture-environment`: what the cluster is, as files.

use serde_json::{Value, json};
use toolbox_core::cluster::{Cluster, ClusterError, Object, Query, kinds};
use toolbox_core::config::to_yaml;
use toolbox_core::engine::plan::{Act, After, Effect, Kind, Out};
use toolbox_core::engine::{Plan, Report, Step, StepCx, StepSpec, Why};
use toolbox_core::{Verb, VerbEnv, VerbName};

/// Save the cluster's version, nodes and machines with the artifacts
///
/// This program's own version goes to ci_artifact.git_version, where readers look for the predecessor's. Whatever cannot be had, such as OpenShift's version on a cluster that is none, is left out and named; nothing of it
/// fails the command.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct CaptureEnvironmentArgs {}

/// The capture, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureEnvironmentSpec;

impl From<CaptureEnvironmentArgs> for CaptureEnvironmentSpec {
    fn from(_: CaptureEnvironmentArgs) -> Self {
        Self
    }
}

/// This program's version, where readers expect the predecessor's.
pub const OWN_VERSION: &str = concat!("tbx-", env!("CARGO_PKG_VERSION"));

/// What was saved and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// File names.
    pub files: Vec<String>,
    /// What is missing and why, one line each.
    pub missing: Vec<String>,
}

impl Captured {
    fn save(&mut self, cx: &StepCx, file: &str, content: String) {
        cx.file(file, content);
        self.files.push(file.to_owned());
    }

    fn miss(&mut self, what: &str, why: impl std::fmt::Display) {
        self.missing.push(format!("{what}: {why}"));
    }

    fn save_list(&mut self, cx: &StepCx, name: &str, found: Result<Vec<Object>, ClusterError>) {
        match found {
            Ok(objects) => {
                let items: Vec<&Value> = objects.iter().map(Object::value).collect();
                let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
                match to_yaml(&list) {
                    Ok(text) => self.save(cx, &format!("{name}.yaml"), text),
                    Err(error) => self.miss(name, error),
                }
                let lines: Vec<String> = objects.iter().map(status_line).collect();
                self.save(cx, &format!("{name}.status"), format!("{}\n", lines.join("\n")));
            }
            Err(error) => self.miss(name, error),
        }
    }
}

/// One line about a node, machine or machine set.
fn status_line(object: &Object) -> String {
    let state = match object.kind() {
        "Node" => match object.condition("Ready") {
            Some(ready) if ready.is_true() => "Ready".to_owned(),
            Some(ready) => format!("NotReady ({})", ready.text()),
            None => "NotReady".to_owned(),
        },
        "MachineSet" => format!(
            "{} wanted, {} there, {} available",
            toolbox_core::cluster::machines::replicas(object),
            toolbox_core::cluster::machines::current(object),
            toolbox_core::cluster::machines::available(object)
        ),
        _ => object.text("/status/phase").unwrap_or("-").to_owned(),
    };
    let size = toolbox_core::cluster::nodes::instance_type(object)
        .or_else(|| toolbox_core::cluster::machines::instance_type(object));
    format!("{}\t{state}\t{}", object.name(), size.unwrap_or("-"))
}

/// Adds the step that saves everything.
pub fn steps(plan: &mut Plan, cluster: &Cluster, after: After) -> Out<Captured> {
    let all = [&kinds::NODE, &kinds::MACHINE, &kinds::MACHINE_SET, &kinds::CLUSTER_VERSION];
    let describe = all.into_iter().fold(
        StepSpec::ask("cluster.capture-environment", "the cluster's version, nodes and machines")
            .deadline(std::time::Duration::from_secs(180)),
        |describe, kind: &Kind| describe.does(Effect::any(Act::Read, kind, None)),
    );
    let cluster = cluster.clone();
    plan.step(describe, after, |cx, ()| async move {
        let captured = capture(&cx, &cluster).await;
        for what in &captured.missing {
            cx.note(format!("not saved: {what}"));
        }
        let what = format!("saved {}", captured.files.join(", "));
        Ok(Step::AlreadySo(captured, what))
    })
}

async fn capture(cx: &StepCx, cluster: &Cluster) -> Captured {
    let mut captured = Captured::default();
    let info = cluster.info();
    captured.save(cx, "ci_artifact.git_version", format!("{OWN_VERSION}\n"));
    let openshift = match cluster.get(&kinds::CLUSTER_VERSION, None, "version").await {
        Ok(Some(version)) => {
            match to_yaml(version.value()) {
                Ok(text) => captured.save(cx, "ocp_clusterversion.yml", text),
                Err(error) => captured.miss("ocp_clusterversion.yml", error),
            }
            version.text("/status/desired/version").map(str::to_owned)
        }
        Ok(None) => None,
        Err(error) if error.is_not_served() => {
            captured.miss("ocp_clusterversion.yml", "this cluster is no OpenShift");
            None
        }
        Err(error) => {
            captured.miss("ocp_clusterversion.yml", error);
            None
        }
    };
    let openshift = openshift.or_else(|| info.openshift_version.clone());
    match &openshift {
        Some(version) => captured.save(cx, "ocp.version", format!("{version}\n")),
        None => captured.miss("ocp.version", "this cluster is no OpenShift"),
    }
    let version = json!({
        "openshiftVersion": openshift,
        "serverVersion": {"gitVersion": info.version},
        "server": info.server,
    });
    match to_yaml(&version) {
        Ok(text) => captured.save(cx, "ocp_version.yml", text),
        Err(error) => captured.miss("ocp_version.yml", error),
    }
    for (name, kind) in [("nodes", &kinds::NODE), ("machines", &kinds::MACHINE), ("machinesets", &kinds::MACHINE_SET)] {
        captured.save_list(cx, name, cluster.list(&Query::all(kind)).await);
    }
    captured
}

impl Verb for CaptureEnvironmentSpec {
    fn name(&self) -> VerbName {
        VerbName::new("cluster", "capture_environment")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("cluster capture_environment");
        let captured = steps(&mut plan, &env.cluster, After::nothing());
        plan.answer(&captured, |captured| Report {
            text: captured.files.join("\n"),
            json: json!({"files": captured.files, "missing": captured.missing}),
        });
        Ok(plan)
    }
}
