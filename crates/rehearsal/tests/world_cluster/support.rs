//! A world, what a tool would apply to it, and tapes of what an observer sees.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, wait::await_condition, watcher};
use serde_json::{Value, json};
use toolbox_engine::Clock;
use toolbox_rehearsal::scenario::{Fault, Scenario};
use toolbox_rehearsal::{FloorRequest, World};

pub(crate) type Kind = (&'static str, &'static str, &'static str);

pub(crate) const POD: Kind = ("v1", "Pod", "pods");
pub(crate) const NODE: Kind = ("v1", "Node", "nodes");
pub(crate) const NAMESPACE: Kind = ("v1", "Namespace", "namespaces");
pub(crate) const DEPLOYMENT: Kind = ("apps/v1", "Deployment", "deployments");
pub(crate) const DAEMON_SET: Kind = ("apps/v1", "DaemonSet", "daemonsets");
pub(crate) const JOB: Kind = ("batch/v1", "Job", "jobs");
pub(crate) const EVENT: Kind = ("v1", "Event", "events");
pub(crate) const CRD: Kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");
pub(crate) const MACHINE_SET: Kind = ("machine.openshift.io/v1beta1", "MachineSet", "machinesets");
pub(crate) const MACHINE: Kind = ("machine.openshift.io/v1beta1", "Machine", "machines");
pub(crate) const CATALOG: Kind = ("operators.coreos.com/v1alpha1", "CatalogSource", "catalogsources");
pub(crate) const GROUP: Kind = ("operators.coreos.com/v1", "OperatorGroup", "operatorgroups");
pub(crate) const SUBSCRIPTION: Kind = ("operators.coreos.com/v1alpha1", "Subscription", "subscriptions");
pub(crate) const PLAN: Kind = ("operators.coreos.com/v1alpha1", "InstallPlan", "installplans");
pub(crate) const CSV: Kind = ("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "clusterserviceversions");
pub(crate) const PACKAGE: Kind = ("packages.operators.coreos.com/v1", "PackageManifest", "packagemanifests");
pub(crate) const NFD: Kind = ("nfd.openshift.io/v1", "NodeFeatureDiscovery", "nodefeaturediscoveries");
pub(crate) const POLICY: Kind = ("nvidia.com/v1", "ClusterPolicy", "clusterpolicies");

pub(crate) const MACHINES: &str = "openshift-machine-api";
pub(crate) const MARKET: &str = "openshift-marketplace";
pub(crate) const GPU_NS: &str = "nvidia-gpu-operator";
pub(crate) const GPU_CSV: &str = "gpu-operator-certified.v1.11.0";
pub(crate) const NFD_CSV: &str = "nfd.4.11.0-202212070335";
pub(crate) const GPU_LABEL: &str = "feature.node.kubernetes.io/pci-10de.present";

pub(crate) fn clock() -> Clock {
    Clock::starting_at("2023-02-01T12:00:00Z".parse().unwrap())
}

pub(crate) async fn world(scenario: &str, faults: &[Fault], seed: u64) -> World {
    let scenario = Scenario::embedded(scenario).unwrap().with_faults(faults);
    World::start(scenario, seed, clock()).await.unwrap()
}

pub(crate) fn resource((api_version, kind, plural): Kind) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// An Api in a namespace; an empty one means all, or cluster scope.
pub(crate) fn api(world: &World, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    match namespace {
        "" => Api::all_with(world.client(), &resource(kind)),
        namespace => Api::namespaced_with(world.client(), namespace, &resource(kind)),
    }
}

pub(crate) async fn create(world: &World, kind: Kind, namespace: &str, name: &str, body: Value) -> DynamicObject {
    let mut object = json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": name}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    for (key, value) in body.as_object().unwrap() {
        if key == "metadata" {
            for (key, value) in value.as_object().unwrap() {
                object["metadata"][key] = value.clone();
            }
        } else {
            object[key] = value.clone();
        }
    }
    let object = serde_json::from_value(object).unwrap();
    api(world, kind, namespace).create(&PostParams::default(), &object).await.unwrap()
}

pub(crate) async fn patch(world: &World, kind: Kind, namespace: &str, name: &str, patch: Value) {
    api(world, kind, namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

pub(crate) async fn delete(world: &World, kind: Kind, namespace: &str, name: &str) {
    api(world, kind, namespace).delete(name, &DeleteParams::default()).await.unwrap();
}

pub(crate) async fn get(world: &World, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
    let found = api(world, kind, namespace).get_opt(name).await.unwrap();
    found.map(|found| serde_json::to_value(found).unwrap())
}

pub(crate) async fn list(world: &World, kind: Kind, namespace: &str) -> Vec<Value> {
    let all = api(world, kind, namespace).list(&kube::api::ListParams::default()).await.unwrap();
    all.items.into_iter().map(|found| serde_json::to_value(found).unwrap()).collect()
}

/// Waits, by watching, until an object is there and fits; says when that was, in seconds after the start.
pub(crate) async fn until(
    world: &World,
    kind: Kind,
    namespace: &str,
    name: &str,
    fits: impl Fn(&Value) -> bool,
) -> (f64, Value) {
    let fits = |found: Option<&DynamicObject>| found.is_some_and(|found| fits(&serde_json::to_value(found).unwrap()));
    let found = await_condition(api(world, kind, namespace), name, fits).await.unwrap().unwrap();
    (elapsed(world), serde_json::to_value(found).unwrap())
}

/// Waits until some object of a kind fits.
pub(crate) async fn until_any(
    world: &World,
    kind: Kind,
    namespace: &str,
    fits: impl Fn(&Value) -> bool,
) -> (f64, Value) {
    let mut stream = watcher(api(world, kind, namespace), watcher::Config::default()).applied_objects().boxed();
    while let Some(event) = stream.next().await {
        let Ok(object) = event else {
            // Without a pause a refused connection would be tried again for ever at the same moment.
            world.api().clock().sleep(std::time::Duration::from_secs(1)).await;
            continue;
        };
        let object = serde_json::to_value(object).unwrap();
        if fits(&object) {
            return (elapsed(world), object);
        }
    }
    panic!("the watch of {} ended", kind.2);
}

pub(crate) fn elapsed(world: &World) -> f64 {
    world.api().clock().elapsed().as_secs_f64()
}

pub(crate) fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(key)?.as_str()
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// What an observer of a kind sees: (time, name, state), without repetitions of a state.
#[derive(Clone, Default)]
pub(crate) struct Tape(Arc<Mutex<Vec<(f64, String, String)>>>);

impl Tape {
    /// Watches a kind from now on.
    pub(crate) fn of(
        world: &World,
        kind: Kind,
        namespace: &str,
        state: impl Fn(&Value) -> String + Send + 'static,
    ) -> Self {
        let tape = Self::default();
        let (own, clock) = (tape.clone(), world.api().clock().clone());
        let mut stream = watcher(api(world, kind, namespace), watcher::Config::default()).touched_objects().boxed();
        tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                let Ok(object) = event else {
                    clock.sleep(std::time::Duration::from_secs(1)).await;
                    continue;
                };
                let object = serde_json::to_value(object).unwrap();
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let state = state(&object);
                let mut seen = own.0.lock().unwrap();
                let last = seen.iter().rev().find(|(_, other, _)| *other == name);
                if last.is_none_or(|(_, _, last)| *last != state) {
                    seen.push((clock.elapsed().as_secs_f64(), name, state));
                }
            }
        });
        tape
    }

    /// The states of the objects whose names start so, in order.
    pub(crate) fn states(&self, prefix: &str) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        seen.iter().filter(|(_, name, _)| name.starts_with(prefix)).map(|(_, _, state)| state.clone()).collect()
    }

    /// Everything.
    pub(crate) fn all(&self) -> Vec<(f64, String, String)> {
        self.0.lock().unwrap().clone()
    }
}

/// A GPU machine set like the first worker set, with replicas.
pub(crate) async fn scale(world: &World, base: &str, instance_type: &str, replicas: u32) -> String {
    let base = get(world, MACHINE_SET, MACHINES, base).await.unwrap();
    let name = format!("{}-{}", base["metadata"]["name"].as_str().unwrap(), instance_type.replace('.', "-"));
    let mut spec = base["spec"].clone();
    let key = "machine.openshift.io/cluster-api-machineset";
    spec["replicas"] = replicas.into();
    spec["selector"]["matchLabels"][key] = name.clone().into();
    spec["template"]["metadata"]["labels"][key] = name.clone().into();
    spec["template"]["spec"]["providerSpec"]["value"]["instanceType"] = instance_type.into();
    create(world, MACHINE_SET, MACHINES, &name, json!({"spec": spec})).await;
    name
}

/// Namespace, group and subscription of a package.
pub(crate) async fn subscribe(world: &World, package: &str, namespace: &str, channel: &str, csv: &str, approval: &str) {
    let catalog = if package == "nfd" { "redhat-operators" } else { "certified-operators" };
    if namespace != "openshift-operators" {
        create(world, NAMESPACE, "", namespace, json!({})).await;
        create(world, GROUP, namespace, "group", json!({"spec": {"targetNamespaces": [namespace]}})).await;
    }
    let spec = json!({"spec": {
        "channel": channel, "name": package, "source": catalog, "sourceNamespace": MARKET,
        "installPlanApproval": approval, "startingCSV": csv,
    }});
    create(world, SUBSCRIPTION, namespace, package, spec).await;
}

/// Waits for the plan with a CSV, and approves it.
pub(crate) async fn approve(world: &World, namespace: &str, csv: &str) {
    let holds = |plan: &Value| {
        plan["spec"]["clusterServiceVersionNames"][0] == csv && plan["status"]["phase"] == "RequiresApproval"
    };
    let (_, plan) = until_any(world, PLAN, namespace, holds).await;
    patch(world, PLAN, namespace, plan["metadata"]["name"].as_str().unwrap(), json!({"spec": {"approved": true}}))
        .await;
}

/// Creates the example of a CSV once its kind is served.
pub(crate) async fn create_example(world: &World, kind: Kind, namespace: &str, csv: &str) {
    let (_, csv) = until(world, CSV, namespace, csv, |_| true).await;
    let group = kind.0.split('/').next().unwrap();
    until(world, CRD, "", &format!("{}.{group}", kind.2), |crd| is_true(crd, "Established")).await;
    let examples: Value =
        serde_json::from_str(csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap()).unwrap();
    let example = examples[0].clone();
    let namespace = if kind == NFD { namespace } else { "" };
    create(world, kind, namespace, example["metadata"]["name"].as_str().unwrap(), json!({"spec": example["spec"]}))
        .await;
}

/// NFD from its catalog, as soon as may be.
pub(crate) async fn deploy_nfd(world: &World) {
    subscribe(world, "nfd", "openshift-nfd", "stable", "", "Automatic").await;
    create_example(world, NFD, "openshift-nfd", NFD_CSV).await;
}

/// The GPU Operator from its catalog, as soon as may be.
pub(crate) async fn deploy_gpu_operator(world: &World) {
    subscribe(world, "gpu-operator-certified", GPU_NS, "v1.11", GPU_CSV, "Manual").await;
    approve(world, GPU_NS, GPU_CSV).await;
    create_example(world, POLICY, GPU_NS, GPU_CSV).await;
}

/// A burn on one node; its pod's name.
pub(crate) async fn burn(world: &World, node: &str, seconds: u64) -> String {
    let name = format!("gpu-burn-{node}");
    let spec = json!({"metadata": {"labels": {"app": "gpu-burn"}}, "spec": {
        "restartPolicy": "Never", "nodeName": node,
        "containers": [{
            "name": "gpu-burn-ctr", "image": "nvcr.io/nvidia/cuda:11.2.2-devel-ubi8", "imagePullPolicy": "Always",
            "command": ["/bin/entrypoint.sh"], "env": [{"name": "GPU_BURN_TIME", "value": seconds.to_string()}],
            "resources": {"limits": {"nvidia.com/gpu": 0}},
        }],
    }});
    create(world, POD, "default", &name, spec).await;
    name
}

/// Scale, NFD and GPU Operator at once, then validation: a plan without any idle time. The GPU nodes' names.
pub(crate) async fn deploy_all(world: &World, request: &FloorRequest) -> Vec<String> {
    let scale = async {
        let present = list(world, MACHINE, MACHINES).await;
        let same = |machine: &&Value| {
            machine["spec"]["providerSpec"]["value"]["instanceType"] == request.instance_type.as_str()
        };
        let there = present.iter().filter(same).count() as u32;
        if there < request.replicas {
            scale(world, "demo-x7k2p-worker-a", &request.instance_type, request.replicas - there).await;
        }
    };
    tokio::join!(scale, deploy_nfd(world), deploy_gpu_operator(world));
    let counted = |node: &Value| label(node, "nvidia.com/gpu.count").is_some();
    let mut nodes = std::collections::BTreeSet::new();
    let mut stream = watcher(api(world, NODE, ""), watcher::Config::default()).applied_objects().boxed();
    while (nodes.len() as u32) < request.replicas {
        let node = serde_json::to_value(stream.next().await.unwrap().unwrap()).unwrap();
        if counted(&node) {
            nodes.insert(node["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    until(world, POLICY, "", "gpu-cluster-policy", |policy| policy["status"]["state"] == "ready").await;
    nodes.into_iter().collect()
}
