//! The NFD operator: turns a NodeFeatureDiscovery into a master Deployment and a worker DaemonSet, and says in
//! its status how they are. The programs in their pods are the real ones.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::supervise::{Applier, resource, say};

/// Works like the operator as long as its pod runs.
pub(super) async fn operate(client: Client, namespace: String) {
    let kind = resource("nfd.openshift.io/v1", "NodeFeatureDiscovery");
    let instances: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &kind);
    let mut last_error = String::new();
    loop {
        // The operands' own state counts as well as the instance, so this looks at all of it twice a second.
        let error = match reconcile_all(&client, &instances).await {
            Ok(()) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        if error != last_error && !error.is_empty() {
            say(&format!("NFD operator in {namespace}: {error}"));
        }
        last_error = error;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn reconcile_all(client: &Client, instances: &Api<DynamicObject>) -> Result<()> {
    for instance in instances.list(&ListParams::default()).await? {
        if instance.metadata.deletion_timestamp.is_none() {
            reconcile(client, instances, &instance).await?;
        }
    }
    Ok(())
}

async fn reconcile(client: &Client, instances: &Api<DynamicObject>, instance: &DynamicObject) -> Result<()> {
    let namespace = instance.namespace().context("an instance without a namespace")?;
    let masters: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let workers: Api<DaemonSet> = Api::namespaced(client.clone(), &namespace);
    let (master, worker) = (masters.get_opt("nfd-master").await?, workers.get_opt("nfd-worker").await?);
    let applier = Applier::new(client);
    if master.is_none() {
        applier.apply(&operand(instance, &namespace, "Deployment", "nfd-master")).await?;
    }
    if worker.is_none() {
        applier.apply(&operand(instance, &namespace, "DaemonSet", "nfd-worker")).await?;
    }
    let master_ready =
        master.and_then(|object| object.status).is_some_and(|status| status.available_replicas.unwrap_or_default() > 0);
    let worker_ready = worker.and_then(|object| object.status).is_some_and(|status| {
        status.desired_number_scheduled > 0
            && status.number_available.unwrap_or_default() == status.desired_number_scheduled
    });
    report(instances, instance, master_ready && worker_ready).await
}

async fn report(instances: &Api<DynamicObject>, instance: &DynamicObject, ready: bool) -> Result<()> {
    let before = instance.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let wanted = [("Available", ready), ("Upgradeable", ready), ("Progressing", !ready), ("Degraded", false)];
    let mut changed = false;
    let conditions: Vec<Value> = wanted
        .iter()
        .map(|(name, holds)| {
            let status = if *holds { "True" } else { "False" };
            if let Some(old) = before.iter().find(|old| old["type"] == *name && old["status"] == status) {
                return old.clone();
            }
            changed = true;
            json!({
                "type": name, "status": status, "lastTransitionTime": now,
                "reason": if ready { "AllComponentsReady" } else { "ComponentsNotReady" },
                "message": if ready { "all operands are ready" } else { "operands are starting" },
            })
        })
        .collect();
    if changed {
        let patch = json!({ "status": { "conditions": conditions } });
        instances
            .patch_status(&instance.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .context("cannot report")?;
    }
    Ok(())
}

fn operand(instance: &DynamicObject, namespace: &str, kind: &str, name: &str) -> Value {
    let labels = json!({ "app": name });
    let image = instance.data["spec"]["operand"]["image"].as_str().unwrap_or("nfd");
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            // With the instance go its operands.
            "ownerReferences": [{
                "apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureDiscovery",
                "name": instance.name_any(), "uid": instance.uid(),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "tolerations": [{ "operator": "Exists" }],
                    "containers": [{
                        "name": name, "image": image, "command": [name],
                        "env": [{ "name": "NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }],
                    }],
                },
            },
        },
    });
    if kind == "Deployment" {
        object["spec"]["replicas"] = json!(1);
    }
    object
}
