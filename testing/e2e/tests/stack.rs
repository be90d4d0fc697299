//! The stack itself: what the tools' tests stand on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DynamicObject, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use testing_stack::{Fault, Options, Stack};
use tokio::time::timeout;

const MACHINES: &str = "openshift-machine-api";
const NFD: &str = "openshift-nfd";
const GPU: &str = "nvidia-gpu-operator";
const OPERATORS: &str = "operators.coreos.com/v1alpha1";
const CSV: &str = "gpu-operator-certified.v1.11.0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_machine_to_a_burnt_gpu() -> Result<()> {
    let stack = Stack::up(Options::test("stack")).await?;
    let cluster = Cluster { client: stack.client().await? };
    nobody_may_do_nothing(&stack).await?;
    machines_fail_as_the_cloud_says(&stack, &cluster).await?;
    catalogs_list_every_channel(&cluster).await?;

    cluster.scale("demo-x7k2p-gpu-us-test-1b", "us-test-1b", "g4dn.xlarge").await?;
    cluster.subscribe(NFD, "nfd", "stable", "redhat-operators").await?;
    cluster.subscribe(GPU, "gpu-operator-certified", "v1.11", "certified-operators").await?;

    cluster.make_example(NFD, "nfd.4.11.0-202210041459", "nfd.openshift.io/v1", "NodeFeatureDiscovery").await?;
    let labelled = watcher::Config::default().labels("feature.node.kubernetes.io/pci-10de.present=true");
    cluster.until_listed::<Node>("a labelled GPU node", Api::all(cluster.client.clone()), labelled).await?;

    cluster.make_example(GPU, CSV, "nvidia.com/v1", "ClusterPolicy").await?;
    let policies = cluster.api("nvidia.com/v1", "ClusterPolicy", None);
    let ready = |object: Option<&DynamicObject>| object.is_some_and(|policy| policy.data["status"]["state"] == "ready");
    cluster.until("the ClusterPolicy to be ready", policies.clone(), "gpu-cluster-policy", ready).await?;

    // The API server may go at any time: nothing that was there is lost.
    stack.kill_part("kube-apiserver").await?;
    cluster.until("the ClusterPolicy to be there again", policies, "gpu-cluster-policy", ready).await?;
    // And what comes later is not missed: NFD's watches have expired with the API server.
    cluster.scale("demo-x7k2p-gpu-us-test-1c", "us-test-1c", "g4dn.xlarge").await?;
    let labelled = watcher::Config::default()
        .labels("feature.node.kubernetes.io/pci-10de.present=true,topology.kubernetes.io/zone=us-test-1c");
    cluster
        .until_listed::<Node>("a GPU node that is labelled later", Api::all(cluster.client.clone()), labelled)
        .await?;

    let log = cluster.burn().await?;
    ensure!(log.contains("\r100.0%") && log.ends_with("\tGPU 0: OK\n"), "unexpected log: {log:?}");

    let logs = stack.logs();
    stack.finish().await?;
    ensure!(!logs.exists(), "files are left behind");
    Ok(())
}

async fn nobody_may_do_nothing(stack: &Stack) -> Result<()> {
    let config = kube::Config::from_custom_kubeconfig(
        kube::config::Kubeconfig::read_from(stack.kubeconfig_without_rights())?,
        &kube::config::KubeConfigOptions::default(),
    )
    .await?;
    let answer = Api::<Node>::all(Client::try_from(config)?).list(&ListParams::default()).await;
    ensure!(matches!(&answer, Err(kube::Error::Api(status)) if status.code == 403), "{answer:?}");
    Ok(())
}

async fn machines_fail_as_the_cloud_says(stack: &Stack, cluster: &Cluster) -> Result<()> {
    let fault = Fault::NoStock { instance_type: "g4dn.xlarge".into(), zone: "us-test-1a".into() };
    stack.break_(fault.clone()).await?;
    let set = "demo-x7k2p-gpu-us-test-1a";
    cluster.scale(set, "us-test-1a", "g4dn.xlarge").await?;
    let machines = cluster.api("machine.openshift.io/v1beta1", "Machine", Some(MACHINES));
    let of_set = watcher::Config::default().labels(&format!("machine.openshift.io/cluster-api-machineset={set}"));
    let machine = cluster.until_listed("its machine", machines.clone(), of_set).await?;
    let name = machine.name_any();
    let failed =
        |object: Option<&DynamicObject>| object.is_some_and(|machine| machine.data["status"]["phase"] == "Failed");
    let machine = cluster.until("the machine to fail", machines, &name, failed).await?.context("it is there")?;
    ensure!(machine.data["status"]["errorReason"] == "InsufficientResources", "{}", machine.data["status"]);
    stack.mend(fault).await
}

async fn catalogs_list_every_channel(cluster: &Cluster) -> Result<()> {
    let manifests = cluster.api("packages.operators.coreos.com/v1", "PackageManifest", Some("openshift-marketplace"));
    let manifest = manifests.get("gpu-operator-certified").await?;
    let channels = manifest.data["status"]["channels"].as_array().context("no channels")?;
    let mut names: Vec<&str> = channels.iter().filter_map(|channel| channel["name"].as_str()).collect();
    names.sort_unstable();
    ensure!(names == ["beta", "stable", "v1.10", "v1.11", "v1.8", "v1.9.0"], "{names:?}");
    Ok(())
}

/// What this test does by hand and the tools do by themselves.
struct Cluster {
    client: Client,
}

impl Cluster {
    fn api(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = match kind {
            "NodeFeatureDiscovery" => ApiResource::from_gvk_with_plural(&gvk, "nodefeaturediscoveries"),
            _ => ApiResource::from_gvk(&gvk),
        };
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn create(&self, object: Value) -> Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let object: DynamicObject = serde_json::from_value(object)?;
        self.api(&version, &kind, namespace.as_deref())
            .create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("cannot make {kind} {}", object.name_any()))?;
        Ok(())
    }

    async fn until(
        &self,
        what: &str,
        api: Api<DynamicObject>,
        name: &str,
        holds: impl Fn(Option<&DynamicObject>) -> bool,
    ) -> Result<Option<DynamicObject>> {
        // Errors are no end: the API server may be away for a while.
        let seen = watcher::watch_object(api, name).default_backoff().filter_map(async |seen| seen.ok());
        let fits = seen.filter(|object| std::future::ready(holds(object.as_ref())));
        let first = async { std::pin::pin!(fits).next().await };
        let found = timeout(Duration::from_secs(90), first).await.with_context(|| format!("waited 90 s for {what}"))?;
        found.with_context(|| format!("the watch for {what} ended"))
    }

    /// The first object of a watch.
    async fn until_listed<K>(&self, what: &str, api: Api<K>, config: watcher::Config) -> Result<K>
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let objects = watcher::watcher(api, config).default_backoff().applied_objects();
        let first = async { std::pin::pin!(objects).try_next().await };
        let found =
            timeout(Duration::from_secs(90), first).await.with_context(|| format!("waited 90 s for {what}"))??;
        found.with_context(|| format!("the watch for {what} ended"))
    }

    /// A machine set like the worker's one of the same zone, for another type of machine.
    async fn scale(&self, name: &str, zone: &str, instance_type: &str) -> Result<()> {
        let sets = self.api("machine.openshift.io/v1beta1", "MachineSet", Some(MACHINES));
        let base = sets.get(&format!("demo-x7k2p-worker-{zone}")).await?;
        let mut set = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
            "metadata": { "name": name, "namespace": MACHINES }, "spec": base.data["spec"],
        });
        let label = "machine.openshift.io/cluster-api-machineset";
        set["spec"]["selector"]["matchLabels"][label] = json!(name);
        set["spec"]["template"]["metadata"]["labels"][label] = json!(name);
        set["spec"]["template"]["spec"]["providerSpec"]["value"]["instanceType"] = json!(instance_type);
        self.create(set).await
    }

    async fn subscribe(&self, namespace: &str, package: &str, channel: &str, source: &str) -> Result<()> {
        self.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } })).await?;
        self.create(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": { "name": namespace, "namespace": namespace }, "spec": { "targetNamespaces": [namespace] },
        }))
        .await?;
        self.create(json!({
            "apiVersion": OPERATORS, "kind": "Subscription", "metadata": { "name": package, "namespace": namespace },
            "spec": {
                "name": package, "channel": channel, "source": source, "sourceNamespace": "openshift-marketplace",
                "installPlanApproval": "Automatic",
            },
        }))
        .await
    }

    /// Waits for an operator and makes the object that its own examples show.
    async fn make_example(&self, namespace: &str, csv: &str, api_version: &str, kind: &str) -> Result<()> {
        let csvs = self.api(OPERATORS, "ClusterServiceVersion", Some(namespace));
        let succeeded =
            |object: Option<&DynamicObject>| object.is_some_and(|csv| csv.data["status"]["phase"] == "Succeeded");
        let found = self.until("the CSV to succeed", csvs, csv, succeeded).await?.context("it is there")?;
        let examples: Vec<Value> = serde_json::from_str(&found.annotations()["alm-examples"])?;
        let example = examples.into_iter().find(|example| example["kind"] == kind).context("no example")?;
        ensure!(example["apiVersion"] == api_version, "{example}");
        self.create(example).await
    }

    /// Runs gpu-burn on a GPU that the scheduler finds, and returns its log.
    async fn burn(&self) -> Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "gpu-burn", "namespace": "default", "labels": { "app": "gpu-burn" } },
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "gpu-burn-ctr", "image": "nvcr.io/nvidia/cuda:11.2.2-devel-ubi8",
                    "env": [{ "name": "GPU_BURN_TIME", "value": "2" }],
                    "resources": { "limits": { "nvidia.com/gpu": "1" } },
                }],
            },
        });
        let apply = PatchParams::apply("test");
        pods.patch("gpu-burn", &apply, &Patch::Apply(&pod)).await?;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let over = |pod: Option<&Pod>| pod.and_then(phase).is_some_and(|phase| phase == "Succeeded");
        timeout(Duration::from_secs(60), await_condition(pods.clone(), "gpu-burn", over))
            .await
            .context("waited 60 s for gpu-burn to succeed")??;
        Ok(pods.logs("gpu-burn", &LogParams::default()).await?)
    }
}
