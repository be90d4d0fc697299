//! The tools one by one on the real operators: plans, second runs, older versions, and what cleanup takes back.

mod support;

use anyhow::{Result, ensure};
use support::Bench;
use testing_stack::Fault;

const KINDS: &[&str] = &[
    "/api/v1/namespaces",
    "/apis/operators.coreos.com/v1/operatorgroups",
    "/apis/operators.coreos.com/v1alpha1/subscriptions",
    "/apis/operators.coreos.com/v1alpha1/clusterserviceversions",
    "/apis/nvidia.com/v1/clusterpolicies",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/machine.openshift.io/v1beta1/machinesets",
];

const MACHINES: &[&str] =
    &["/apis/machine.openshift.io/v1beta1/machinesets", "/apis/machine.openshift.io/v1beta1/machines"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tool_does_it_once_and_takes_it_back() -> Result<()> {
    let mut bench = Bench::new("tools").await?;
    machines_that_are_no_use(&mut bench).await?;
    machines_and_labels(&mut bench).await?;
    // In the namespace and for the scope that its bundle asks for.
    for (version, namespace, targets) in [
        ("1.8.2", "openshift-operators", ""),
        ("1.9.0", "nvidia-gpu-operator", "nvidia-gpu-operator"),
        ("1.10.1", "nvidia-gpu-operator", "nvidia-gpu-operator"),
    ] {
        an_older_version(&mut bench, version, namespace, targets).await?;
    }
    bench.finish().await
}

/// Each fault is named in the first line of error, and what was made for it can be taken back.
async fn machines_that_are_no_use(bench: &mut Bench) -> Result<()> {
    let empty = bench.objects(MACHINES).await?;
    let instance_type = "g4dn.xlarge".to_owned();
    let scale = "cluster scale g4dn.xlarge 1";
    for (fault, code, words, object, cause) in [
        (
            Fault::Quota { instance_type: instance_type.clone() },
            1,
            scale.to_owned(),
            "Machine/openshift-machine-api/demo-x7k2p-worker-us-test-1a--g4dn-xlarge-",
            ": the cloud account's quota allows no more g4dn.xlarge (InvalidConfiguration: ",
        ),
        (
            Fault::NodeNotReady { instance_type },
            5,
            format!("{scale} --deadline nodes=5s"),
            "Node/ip-10-0-",
            ": is not Ready: KubeletNotReady: container runtime network not ready",
        ),
    ] {
        bench.stack.break_(fault.clone()).await?;
        let (run, error) = bench.fail(code, "no-use", &words).await?;
        ensure!(error.starts_with(object) && error.contains(cause), "{fault:?}: {error}");
        bench.stack.mend(fault).await?;
        bench.pass("cleanup", &format!("cleanup {}", run.dir.display())).await?;
    }
    let left = bench.objects(MACHINES).await?;
    ensure!(left.keys().eq(empty.keys()), "{left:?}");
    Ok(())
}

async fn machines_and_labels(bench: &mut Bench) -> Result<()> {
    let empty = bench.objects(KINDS).await?;
    for plan in ["cluster scale g4dn.xlarge 1", "nfd deploy", "gpu-operator deploy-from-operatorhub --version 1.11.0"] {
        let planned = bench.pass("plan", &format!("--plan {plan}")).await?;
        ensure!(planned.stdout.contains("would create"), "{}", planned.stdout);
    }
    ensure!(bench.objects(KINDS).await? == empty, "a plan has changed something");

    let scaled = bench.pass("scale", "cluster scale g4dn.xlarge 1").await?;
    ensure!(scaled.steps("changed")? == ["cluster.scale"], "{}", scaled.first_lines());
    let again = bench.pass("scale", "cluster scale g4dn.xlarge 1").await?;
    ensure!(again.steps("changed")?.is_empty(), "{}", again.first_lines());

    let deployed = bench.pass("nfd", "nfd deploy").await?;
    let labelled = bench.pass("nfd", "nfd wait-gpu-nodes").await?;
    ensure!(labelled.stdout.trim() == scaled.stdout.trim(), "{} {}", labelled.stdout, scaled.stdout);
    let again = bench.pass("nfd", "nfd deploy").await?;
    ensure!(again.steps("changed")?.is_empty(), "{}", again.first_lines());

    for run in [deployed, scaled] {
        bench.pass("cleanup", &format!("cleanup {}", run.dir.display())).await?;
    }
    let left = bench.objects(KINDS).await?;
    let new: Vec<&String> = left.keys().filter(|key| !empty.contains_key(*key)).collect();
    // Definitions are OLM's: no Subscription that goes takes them along.
    ensure!(new.iter().all(|key| key.contains("/customresourcedefinitions: /") || key.contains("/nfd.")), "{new:?}");
    Ok(())
}

async fn an_older_version(bench: &mut Bench, version: &str, namespace: &str, targets: &str) -> Result<()> {
    let before = bench.objects(KINDS).await?;
    let words = format!("gpu-operator deploy-from-operatorhub --version {version}");
    let run = bench.pass(version, &words).await?;
    let made = bench.objects(KINDS).await?;
    let csv = format!(
        "/apis/operators.coreos.com/v1alpha1/clusterserviceversions: {namespace}/gpu-operator-certified.v{version}"
    );
    ensure!(made.contains_key(&csv), "{}", run.first_lines());
    ensure!(made.contains_key("/apis/nvidia.com/v1/clusterpolicies: /gpu-cluster-policy"), "{}", run.first_lines());
    let path = format!(
        "/apis/operators.coreos.com/v1alpha1/namespaces/{namespace}/clusterserviceversions/gpu-operator-certified.v{version}"
    );
    let csv: serde_json::Value = bench.client.request(http::Request::get(path).body(Vec::new())?).await?;
    ensure!(csv["status"]["phase"] == "Succeeded", "{:#}", csv["status"]);
    ensure!(csv["metadata"]["annotations"]["olm.targetNamespaces"] == targets, "{:#}", csv["metadata"]["annotations"]);
    let again = bench.pass(version, &words).await?;
    ensure!(again.steps("changed")?.is_empty(), "{}", again.first_lines());

    let away = bench.pass(version, "gpu-operator undeploy-from-operatorhub").await?;
    let after = bench.objects(KINDS).await?;
    let left: Vec<&String> = after.keys().filter(|key| !before.contains_key(*key)).collect();
    ensure!(left.is_empty(), "{version} leaves {left:?}:\n{}", away.first_lines());
    Ok(())
}
