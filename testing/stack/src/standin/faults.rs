//! Faults of pods and nodes: stages that outweigh the ordinary ones. Faults of machines are read where machines are made.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::control::Fault;
use crate::supervise::{Applier, resource};

/// The instance type of a node.
const TYPE: &str = "node.kubernetes.io/instance-type";

pub(super) async fn set(client: &Client, fault: &Fault) -> Result<()> {
    // Nodes that are there already stay as they are.
    if let Fault::NodeNotReady { instance_type } = fault {
        return Applier::new(client).apply(&not_ready(instance_type)).await;
    }
    let Some((stage, label)) = stage(fault)? else { return Ok(()) };
    Applier::new(client).apply(&stage).await?;
    nudge(client, label).await
}

pub(super) async fn clear(client: &Client, fault: &Fault) -> Result<()> {
    if let Fault::NodeNotReady { instance_type } = fault {
        remove(client, &not_ready(instance_type)).await?;
        return recover(client, instance_type).await;
    }
    let Some((stage, label)) = stage(fault)? else { return Ok(()) };
    remove(client, &stage).await?;
    // Their controllers make new ones, which nothing keeps from starting.
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default().labels(label)).await? {
        let namespaced: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        match namespaced.delete(&pod.name_any(), &DeleteParams::default()).await {
            Err(error) if !super::cloud::is_missing(&error) => return Err(error).context("cannot restart a pod"),
            _ => {}
        }
    }
    Ok(())
}

async fn remove(client: &Client, stage: &Value) -> Result<()> {
    let stages: Api<DynamicObject> = Api::all_with(client.clone(), &resource("kwok.x-k8s.io/v1alpha1", "Stage"));
    let name = stage["metadata"]["name"].as_str().context("a stage has a name")?;
    match stages.delete(name, &DeleteParams::default()).await {
        Err(error) if !super::cloud::is_missing(&error) => Err(error).context("cannot remove the stage"),
        _ => Ok(()),
    }
}

/// Touches the nodes, so that kwok's own stage makes them Ready.
async fn recover(client: &Client, instance_type: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for node in nodes.list(&ListParams::default().labels(&format!("{TYPE}={instance_type}"))).await? {
        let patch = json!({ "metadata": { "annotations": { "toolbox-stack/fault": "cleared" } } });
        match nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(error) if !super::cloud::is_missing(&error) => return Err(error).context("cannot touch a node"),
            _ => {}
        }
    }
    Ok(())
}

/// A node whose network never comes up, as its kubelet words it.
fn not_ready(instance_type: &str) -> Value {
    // Nothing in it depends on the time: a status that stays the same makes kwok play the stage no more.
    let template = "\
        {{ $since := .metadata.creationTimestamp }}\n\
        conditions:\n\
        - type: Ready\n\
        \x20 status: \"False\"\n\
        \x20 reason: KubeletNotReady\n\
        \x20 message: 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady'\n\
        \x20 lastHeartbeatTime: {{ $since | Quote }}\n\
        \x20 lastTransitionTime: {{ $since | Quote }}\n";
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": { "name": format!("fault-node-not-ready-{instance_type}") },
        "spec": {
            "resourceRef": { "apiGroup": "v1", "kind": "Node" },
            "selector": {
                "matchLabels": { TYPE: instance_type },
                "matchExpressions": [{
                    "key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status",
                    "operator": "NotIn",
                    "values": ["True"],
                }],
            },
            "weight": 1_000_000,
            "next": { "statusTemplate": template },
        },
    })
}

/// A stage is played when an object changes: pods that are there already are touched.
async fn nudge(client: &Client, label: &str) -> Result<()> {
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default().labels(label)).await? {
        let namespaced: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        let patch = json!({ "metadata": { "annotations": { "toolbox-stack/fault": "set" } } });
        match namespaced.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(error) if !super::cloud::is_missing(&error) => return Err(error).context("cannot touch a pod"),
            _ => {}
        }
    }
    Ok(())
}

fn stage(fault: &Fault) -> Result<Option<(Value, &str)>> {
    let (name, label, phase, state) = match fault {
        Fault::ImagePull { label } => (
            "image-pull",
            label,
            "Pending",
            "waiting:\n      reason: ImagePullBackOff\n      message: 'Back-off pulling image \"{{ .image }}\"'",
        ),
        Fault::CrashLoop { label } => (
            "crash-loop",
            label,
            "Running",
            "waiting:\n      reason: CrashLoopBackOff\n      message: 'back-off 5m0s restarting failed container={{ .name }}'\n  \
             lastState:\n    terminated:\n      exitCode: 1\n      reason: Error\n      startedAt: {{ $now | Quote }}\n      finishedAt: {{ $now | Quote }}",
        ),
        Fault::Quota { .. } | Fault::NoStock { .. } | Fault::NodeNotReady { .. } | Fault::GpuFaulty => return Ok(None),
    };
    let (key, value) = label.split_once('=').context("a fault of pods needs a label `key=value`")?;
    let restarts = if name == "crash-loop" { 5 } else { 0 };
    let template = format!(
        "{{{{ $now := Now }}}}\n\
         phase: {phase}\n\
         hostIP: {{{{ NodeIPWith .spec.nodeName | Quote }}}}\n\
         podIP: {{{{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid \"\" ) ( or .metadata.name \"\" ) ( or .metadata.namespace \"\" ) | Quote }}}}\n\
         conditions:\n\
         - {{type: Initialized, status: \"True\", lastTransitionTime: {{{{ $now | Quote }}}}}}\n\
         - {{type: Ready, status: \"False\", reason: ContainersNotReady, lastTransitionTime: {{{{ $now | Quote }}}}}}\n\
         - {{type: ContainersReady, status: \"False\", reason: ContainersNotReady, lastTransitionTime: {{{{ $now | Quote }}}}}}\n\
         containerStatuses:\n\
         {{{{ range .spec.containers }}}}\n\
         - image: {{{{ .image | Quote }}}}\n\
         \x20 name: {{{{ .name | Quote }}}}\n\
         \x20 ready: false\n\
         \x20 restartCount: {restarts}\n\
         \x20 started: false\n\
         \x20 state:\n\
         \x20   {state}\n\
         {{{{ end }}}}\n"
    );
    let stage = json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": { "name": format!("fault-{name}-{}", value.to_lowercase().replace(['_', '/'], "-")) },
        "spec": {
            "resourceRef": { "apiGroup": "v1", "kind": "Pod" },
            "selector": {
                "matchLabels": { key: value },
                "matchExpressions": [
                    { "key": ".metadata.deletionTimestamp", "operator": "DoesNotExist" },
                    { "key": ".status.phase", "operator": "NotIn", "values": ["Succeeded", "Failed"] },
                    // Once is enough: the ordinary stages are outweighed each time they would match.
                    {
                        "key": ".status.containerStatuses.[].state.waiting.reason",
                        "operator": "NotIn",
                        "values": [if name == "image-pull" { "ImagePullBackOff" } else { "CrashLoopBackOff" }],
                    },
                ],
            },
            "weight": 1_000_000,
            "delay": { "durationMilliseconds": 100 },
            "next": { "statusTemplate": template },
        },
    });
    Ok(Some((stage, label)))
}
