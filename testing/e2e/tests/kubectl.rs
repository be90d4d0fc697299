//! kubectl cannot tell the rehearsal from a real cluster: a session's output is the same on both, but for the list below.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde_json::json;
use testing_e2e::{Target, kubectl};
use testing_stack::Version;
use toolbox_engine::Clock;
use toolbox_rehearsal::serve::{ServeOptions, serve};
use toolbox_rehearsal::{Scenario, World};

/// Plain Kubernetes with two workers.
const SCENARIO: &str = "
name: plain
description: Plain Kubernetes with two workers.
kubernetes: 1.34.4
openshift: ''
platform: none
machineSets: []
catalogs: []
nodes:
- {name: worker-0, role: worker, zone: rack-1, instanceType: metal}
- {name: worker-1, role: worker, zone: rack-1, instanceType: metal}
instanceTypes:
  metal: {cpu: 32, memoryMiB: 131072, zones: {rack-1: 0}}
";

/// Commands whose output differs, and why that is right. A command that is listed and does not differ is an error.
const ACCEPTED: &[(&str, &str)] = &[
    ("kubectl api-versions", FEWER),
    ("kubectl api-resources --api-group= --no-headers", FEWER),
    ("kubectl api-resources --namespaced=false --api-group=storage.k8s.io", FEWER),
    ("kubectl auth whoami", "the administrators have different names, and the stack's shows a certificate's number"),
    ("kubectl describe namespace demo", "what a quota counts is not counted"),
    (
        "kubectl get deployment web --show-managed-fields -o jsonpath='{.metadata.managedFields[*].manager}'",
        "all simulated controllers write as one field manager",
    ),
    ("kubectl describe deployment web", EVENTS),
    ("kubectl describe replicaset -l app=web", EVENTS),
    ("kubectl get events --field-selector involvedObject.kind=Deployment", EVENTS),
    ("kubectl events --for deployment/web", EVENTS),
    ("kubectl describe job sum", EVENTS),
    ("kubectl describe pods -l app=web", "kwok's events of a pod are not a kubelet's"),
    ("kubectl describe service web", "there is no controller of endpoints"),
    ("kubectl exec single -- true", "both refuse, each for its own reason: no program runs in either's containers"),
    (
        "kubectl patch pod single -p '{\"spec\":{\"nodeName\":\"other\"}}'",
        "the real refusal goes on with a comparison of Go structures",
    ),
    (
        "kubectl patch widget one --type=merge -p '{\"spec\":{\"size\":\"five\"}}'",
        "the real server refuses a size of a wrong type twice, by the schema and by the scale's path",
    ),
];

const FEWER: &str = "the rehearsal serves the groups and kinds that somebody asks for";
const EVENTS: &str = "the simulated controllers of workloads tell no events";

#[tokio::test]
async fn a_session_reads_the_same_on_both() -> Result<()> {
    let target = Target::real("kubectl-1-34", Version::V1_34).await?;
    workers(&target).await?;
    let stack = target.stack().expect("invariant: it was made as one");
    let world = World::start(Scenario::from_yaml("plain", SCENARIO)?, 1, Clock::scaled(now(), 1.0)).await?;
    let served = serve(world.api().clone(), ServeOptions::default()).await?;
    let steps = kubectl::session();
    let program = stack.kubectl()?;
    let (real_config, config) = (std::fs::read_to_string(stack.kubeconfig())?, served.kubeconfig());
    let (real, simulated) =
        tokio::try_join!(kubectl::play(&program, &real_config, &steps), kubectl::play(&program, &config, &steps),)?;
    served.shutdown().await;
    target.finish().await?;
    let differences = kubectl::compare(&steps, &real, &simulated)?;
    let mut wrong = String::new();
    for difference in &differences {
        if !ACCEPTED.iter().any(|(command, _)| *command == difference.command) {
            writeln!(wrong, "$ {}\n  {}", difference.command, difference.lines.join("\n  "))?;
        }
    }
    for (command, reason) in ACCEPTED {
        if !differences.iter().any(|difference| difference.command == *command) {
            writeln!(wrong, "$ {command}\n  is the same on both, and listed as different: {reason}")?;
        }
    }
    ensure!(wrong.is_empty(), "real (-) and rehearsal (+):\n{wrong}");
    Ok(())
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Two nodes that kwok plays, and logs of containers that print nothing.
async fn workers(target: &Target) -> Result<()> {
    for name in ["worker-0", "worker-1"] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"node-role.kubernetes.io/worker": ""},
        }});
        target.create("/api/v1/nodes", &node).await?.expect(201)?;
        let path = format!("/api/v1/nodes/{name}");
        target
            .until(&path, "ready", |answer| {
                let conditions = answer.body.pointer("/status/conditions").and_then(|list| list.as_array());
                conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
            })
            .await?;
    }
    let logs = json!({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "silent"},
        "spec": {"logs": [{"logsFile": "/dev/null", "follow": false}]}});
    target.create("/apis/kwok.x-k8s.io/v1alpha1/clusterlogs", &logs).await?.expect(201)?;
    Ok(())
}
