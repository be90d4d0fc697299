//! The part of a kubelet that kwok does not do: programs that really run while their pod does, and container logs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::hardware::{self, NodeFiles};
use super::watch::{Change, watch};
use super::{burn, nfd};
use crate::crilog;
use crate::supervise::{ACCOUNT, Applier, Part, PrivateRoot, Shared, account, resource, say};

/// By default the master asks for NodeFeatures in pages, and that leaves it deaf after a watch that has expired: the
/// next list asks for a page at the revision that it knows, which the API server answers with the state of exactly
/// that revision, so that its watch has expired again, and so on until etcd has compacted that revision minutes later.
/// A watch expires when the API server's cache of NodeFeatures is younger than the revision: when the API server was
/// started again, or when the master's first list is the first request for them and something else is written meanwhile.
/// A list without pages is answered with the present state. The flag of this name is not looked at, the option is.
const NFD_MASTER_OPTIONS: &str = r#"{"informerPageSize":0}"#;

/// What a pod stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    GpuOperator,
    NfdOperator,
    NfdMaster,
    NfdWorker,
    DevicePlugin,
    FeatureDiscovery,
    Burn,
    /// Nothing runs: its containers are stages of kwok.
    Idle,
}

impl Role {
    fn of(pod: &Pod) -> Self {
        let container = pod.spec.as_ref().and_then(|spec| spec.containers.first()).map(|first| first.name.as_str());
        let label = |name: &str| pod.labels().get(name).map(String::as_str);
        match (container, label("app")) {
            (Some("gpu-operator"), Some("gpu-operator")) => Self::GpuOperator,
            (Some("nfd-master"), _) => Self::NfdMaster,
            (Some("nfd-worker"), _) => Self::NfdWorker,
            (Some("manager"), _) if label("control-plane") == Some("controller-manager") => Self::NfdOperator,
            (_, Some("nvidia-device-plugin-daemonset")) => Self::DevicePlugin,
            (_, Some("gpu-feature-discovery")) => Self::FeatureDiscovery,
            (_, Some("gpu-burn")) => Self::Burn,
            _ => Self::Idle,
        }
    }
}

/// A pod that is there, and what runs for it.
struct Run {
    role: Role,
    node: String,
    started: bool,
    task: Option<tokio::task::JoinHandle<()>>,
}

struct Kubelet {
    shared: Shared,
    client: Client,
    applier: Applier,
    runs: BTreeMap<String, Run>,
    /// Metrics and health ports, one pair per operator process.
    next_port: u16,
}

pub(super) async fn run(shared: Shared, client: Client) {
    let mut kubelet = Kubelet {
        applier: Applier::new(&client),
        shared,
        client: client.clone(),
        runs: BTreeMap::new(),
        next_port: 20000,
    };
    let mut changes = watch(Api::<Pod>::all(client), "pods");
    while let Some(change) = changes.recv().await {
        let (result, pod) = match change {
            Change::Seen(pod) => (kubelet.seen(&pod).await, pod),
            Change::Gone(pod) => (kubelet.gone(&pod).await, pod),
        };
        if let Err(error) = result {
            say(&format!("pod {}/{}: {error:#}", pod.namespace().unwrap_or_default(), pod.name_any()));
        }
    }
}

impl Kubelet {
    async fn seen(&mut self, pod: &Pod) -> Result<()> {
        let uid = pod.uid().context("a pod without a uid")?;
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else { return Ok(()) };
        if !self.runs.contains_key(&uid) {
            self.admit(pod, &uid).await?;
            let run = Run { role: Role::of(pod), node, started: false, task: None };
            self.runs.insert(uid.clone(), run);
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let Some(run) = self.runs.get(&uid) else { return Ok(()) };
        if phase == Some("Running") && !run.started && pod.metadata.deletion_timestamp.is_none() {
            let (role, node) = (run.role, run.node.clone());
            let task = self.start(role, pod, &uid, &node).await?;
            if let Some(run) = self.runs.get_mut(&uid) {
                run.started = true;
                run.task = task;
            }
        }
        Ok(())
    }

    /// Its log file, and where the API server finds it.
    async fn admit(&self, pod: &Pod, uid: &str) -> Result<()> {
        let log = self.log(uid);
        let spec = pod.spec.iter().flat_map(|spec| &spec.containers);
        let lines: Vec<String> = match Role::of(pod) {
            Role::Burn => vec!["GPU burn starts".to_owned()],
            _ => spec.map(|one| format!("container {} of {}", one.name, one.image.as_deref().unwrap_or("?"))).collect(),
        };
        crilog::append(&log, &lines.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.applier
            .apply(&json!({
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterLogs",
                "metadata": { "name": uid },
                "spec": {
                    "selector": { "matchNamespaces": [pod.namespace()], "matchNames": [pod.name_any()] },
                    "logs": [{ "logsFile": log, "previousLogsFile": log, "follow": true }],
                },
            }))
            .await
    }

    async fn start(
        &mut self,
        role: Role,
        pod: &Pod,
        uid: &str,
        node: &str,
    ) -> Result<Option<tokio::task::JoinHandle<()>>> {
        let files = NodeFiles::of(&self.shared, node)?;
        match role {
            Role::Idle => Ok(None),
            Role::GpuOperator => self.gpu_operator(pod, uid).await.map(|()| None),
            Role::NfdMaster => {
                let port = self.port();
                let part = self
                    .part("nfd-master", pod, uid)?
                    .arg("-kubeconfig")
                    .arg(self.shared.dir.kubeconfig_inside())
                    .arg("-port")
                    .arg(port.to_string())
                    .arg("-options")
                    .arg(NFD_MASTER_OPTIONS)
                    .env("KUBERNETES_NAMESPACE", pod.namespace().unwrap_or_default())
                    .env("NODE_NAME", node);
                self.shared.parts.start(part);
                Ok(None)
            }
            Role::NfdWorker => self.nfd_worker(pod, uid, node, &files).await.map(|()| None),
            Role::NfdOperator => {
                let namespace = pod.namespace().unwrap_or_default();
                Ok(Some(tokio::spawn(nfd::operate(self.client.clone(), namespace))))
            }
            Role::DevicePlugin => {
                let gpus = u32::from(self.has_gpu(node).await?);
                hardware::set_gpus(&self.client, node, gpus).await.map(|()| None)
            }
            Role::FeatureDiscovery => files.gpu_features(true).map(|()| None),
            Role::Burn => {
                let faulty = self.shared.faults.all().contains(&crate::control::Fault::GpuFaulty);
                Ok(Some(tokio::spawn(burn::burn(self.client.clone(), pod.clone(), self.log(uid), faulty))))
            }
        }
    }

    async fn gone(&mut self, pod: &Pod) -> Result<()> {
        let Some(run) = pod.uid().and_then(|uid| self.runs.remove(&uid)) else { return Ok(()) };
        let uid = pod.uid().unwrap_or_default();
        self.shared.parts.forget(&part_name(run.role, pod));
        if let Some(task) = run.task {
            task.abort();
        }
        match run.role {
            Role::DevicePlugin if run.started => hardware::set_gpus(&self.client, &run.node, 0).await?,
            Role::FeatureDiscovery => NodeFiles::of(&self.shared, &run.node)?.gpu_features(false)?,
            _ => {}
        }
        let logs: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &resource("kwok.x-k8s.io/v1alpha1", "ClusterLogs"));
        match logs.delete(&uid, &DeleteParams::default()).await {
            Err(error) if !super::cloud::is_missing(&error) => Err(error).context("cannot remove its logs"),
            _ => Ok(()),
        }
    }

    fn log(&self, uid: &str) -> PathBuf {
        self.shared.dir.logs().join("pods").join(format!("{uid}.log"))
    }

    fn port(&mut self) -> u16 {
        self.next_port += 1;
        self.next_port
    }

    async fn has_gpu(&self, node: &str) -> Result<bool> {
        let node = Api::<Node>::all(self.client.clone()).get_opt(node).await?;
        Ok(node.is_some_and(|node| hardware::node_has_gpu(&node)))
    }

    /// A program that runs while the pod does, and whose output is the pod's log.
    fn part(&self, binary: &str, pod: &Pod, uid: &str) -> Result<Part> {
        Ok(Part {
            container_log: Some(self.log(uid)),
            ..Part::new(&part_name(Role::of(pod), pod), self.shared.built.binary(binary)?)
        })
    }

    async fn nfd_worker(&mut self, pod: &Pod, uid: &str, node: &str, files: &NodeFiles) -> Result<()> {
        if self.has_gpu(node).await? {
            files.announce_gpu()?;
        }
        let port = self.port();
        let part = self.part("nfd-worker", pod, uid)?;
        let root = PrivateRoot::default()
            .bind("/dev", "/dev")
            .bind("/proc", "/proc")
            .bind("/sys", "/sys")
            .bind(files.kernel(), "/proc/sys/kernel/osrelease")
            .bind(files.etc(), "/etc")
            .keep(part.program.parent().context("a program has a folder")?)
            .keep(self.shared.dir.path());
        let part = Part { root: Some(root), ..part }
            .arg("-kubeconfig")
            .arg(self.shared.dir.kubeconfig_inside())
            .arg("-port")
            .arg(port.to_string())
            // The example's own 60 s would only slow every test down.
            .arg("-options")
            .arg(r#"{"core":{"sleepInterval":"2s"},"sources":{"pci":{"deviceLabelFields":["vendor"]}}}"#)
            .env("KUBERNETES_NAMESPACE", pod.namespace().unwrap_or_default())
            .env("NODE_NAME", node)
            .env("POD_NAME", pod.name_any())
            .env("POD_UID", uid);
        self.shared.parts.start(part);
        Ok(())
    }

    async fn gpu_operator(&mut self, pod: &Pod, uid: &str) -> Result<()> {
        let namespace = pod.namespace().unwrap_or_default();
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &namespace);
        let owner = deployments.get("gpu-operator").await?.labels().get("olm.owner").cloned().unwrap_or_default();
        // The program is 1.11.1; older bundles describe another ClusterPolicy and other manifests.
        if !owner.contains(".v1.11.") {
            crilog::append(&self.log(uid), &["the stack has no program for this version: nothing reconciles"])?;
            return Ok(());
        }
        // Operators of later versions begin their log like this; this one does not say what it is.
        crilog::append(&self.log(uid), &["INFO\tsetup\tversion: 1.11.1 (run by the stack in place of the image)"])?;
        let (metrics, health) = (self.port(), self.port());
        let part = self.part("gpu-operator", pod, uid)?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("any");
        let etc = NodeFiles::of(&self.shared, node)?.etc();
        let root = PrivateRoot::default()
            .bind("/dev", "/dev")
            .bind("/proc", "/proc")
            .bind(self.shared.built.modules.gpu_operator.join("assets"), "/opt/gpu-operator")
            .bind(etc, "/host-etc")
            // It looks there for the namespace of its leader election.
            .bind(account(&self.shared.dir, &namespace)?, ACCOUNT)
            .keep(part.program.parent().context("a program has a folder")?)
            .keep(self.shared.dir.path());
        let mut part = Part { root: Some(root), ..part };
        if let Some(container) = pod.spec.as_ref().and_then(|spec| spec.containers.first()) {
            for variable in container.env.iter().flatten() {
                // The only reference in use is the namespace.
                part = part.env(&variable.name, variable.value.clone().unwrap_or_else(|| namespace.clone()));
            }
            for arg in container.args.iter().flatten() {
                part = part.arg(arg);
            }
        }
        let kubeconfig = self.shared.dir.kubeconfig_inside().to_string_lossy().into_owned();
        let part = part
            .env("KUBECONFIG", kubeconfig)
            .env("OPERATOR_NAMESPACE", &namespace)
            .flag("metrics-bind-address", format!("127.0.0.1:{metrics}"))
            .flag("health-probe-bind-address", format!("127.0.0.1:{health}"));
        self.shared.parts.start(part);
        Ok(())
    }
}

fn part_name(role: Role, pod: &Pod) -> String {
    let kind = match role {
        Role::GpuOperator => "gpu-operator",
        Role::NfdMaster => "nfd-master",
        Role::NfdWorker => "nfd-worker",
        _ => "pod",
    };
    format!("{kind}/{}", pod.name_any())
}
