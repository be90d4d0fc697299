//! The whole job on the real operators: killed and resumed, run again, interrupted, and taken back to nothing.

mod support;

use std::fs;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use support::{Bench, Run};
use testing_stack::Fault;

const JOB: &str = "prow gpu-operator test_operatorhub 1.11.0 --burn-runtime 3";
const PULL_SECRET: &str = "cGxhbnRlZC1wdWxsLXNlY3JldC0wMQ";
const ENTITLEMENT: &str = "MIIplantedEntitlementKeyIsNoKeyAtAll01";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_job_from_nothing_to_a_burnt_gpu_and_back() -> Result<()> {
    let mut bench = Bench::new("flow").await?;
    let token = plant_secrets(&mut bench).await?;

    let first = killed_and_resumed(&mut bench).await?;
    names_what_was_tested(&first)?;
    a_second_run_changes_nothing(&mut bench).await?;
    names_a_faulty_gpu(&mut bench).await?;
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        stops_when_asked(&mut bench, signal, code).await?;
    }
    goes_without_a_trace(&mut bench).await?;

    let secrets = [("token", token.as_str()), ("pull secret", PULL_SECRET), ("entitlement", ENTITLEMENT)];
    bench.has_none_of(&secrets)?;
    bench.finish().await
}

/// Secrets where a run comes by: in its kubeconfig, and in namespaces that it looks at.
async fn plant_secrets(bench: &mut Bench) -> Result<String> {
    let token = bench.stack.token().to_owned();
    let mut config: Value = serde_json::to_value(kube::config::Kubeconfig::read_from(bench.stack.kubeconfig())?)?;
    config["users"][0]["user"] = json!({"token": token});
    // Out of the folder that is searched.
    let path = bench.folder.with_extension("kubeconfig");
    fs::write(&path, config.to_string())?;
    bench.kubeconfig(path);

    let docker = json!({"auths": {"quay.io": {"auth": PULL_SECRET}}}).to_string();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{ENTITLEMENT}\n-----END PRIVATE KEY-----\n");
    for (namespace, name, key, value) in [
        ("default", "planted-pull-secret", ".dockerconfigjson", docker),
        ("openshift-operators", "planted-entitlement", "entitlement.pem", pem),
    ] {
        let secret = json!({
            "metadata": {"name": name},
            "type": if key.starts_with('.') { "kubernetes.io/dockerconfigjson" } else { "Opaque" },
            "stringData": {key: value},
        });
        let secrets = Api::<Secret>::namespaced(bench.client.clone(), namespace);
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    }
    Ok(token)
}

/// `kill -9` after a number of lines that nobody chose, then `--resume`.
async fn killed_and_resumed(bench: &mut Bench) -> Result<Run> {
    let at = 8 + u64::from(std::process::id()) % 40;
    let mut running = bench.start("first", JOB)?;
    running.lines(at).await?;
    running.signal("KILL").await?;
    let killed = bench.end(running).await?;
    ensure!(killed.code == -1, "killed after {at} lines, and ended with {}", killed.code);
    let before = killed.steps("changed")?;

    let words = format!("{JOB} --resume {}", killed.dir.display());
    let run = bench.run("first", &words).await?;
    ensure!(run.code == 0, "killed after {at} lines; the resumed run ended with {}:\n{}", run.code, run.first_lines());
    // What was done is looked at again, and found done.
    let again = run.steps("changed")?;
    for step in before.iter().filter(|step| !step.contains("burn")) {
        // Skipped: the machine is there, so none has to be made.
        let proven = run.steps("already-so")?.contains(step) || run.steps("skipped")?.contains(step);
        ensure!(proven, "killed after {at} lines; {step} was not proven again:\n{}", run.first_lines());
        ensure!(again.iter().filter(|one| *one == step).count() <= 1, "{step} was done twice");
    }
    Ok(run)
}

fn names_what_was_tested(run: &Run) -> Result<()> {
    let summary = run.summary()?;
    ensure!(summary["exit_code"] == 0 && summary["result"] == "passed", "{summary:#}");
    ensure!(run.file("operator.version")?.trim() == "1.11.0");
    let part = "gpu_operator__capture_deployment_state";
    let versions = run.part(part, "gpu_operator.versions.txt")?;
    ensure!(
        versions.contains("asked: 1.11.0") && versions.contains("image: nvcr.io/nvidia/gpu-operator"),
        "{versions}"
    );
    // The one expected mismatch: the stack's operator process is of the next patch level.
    ensure!(versions.contains("1.11.1"), "{versions}");
    let warned = summary["versions"].to_string();
    ensure!(warned.contains("1.11.1"), "{warned}");
    let csv = run.part(part, "gpu_operator_csv.yaml")?;
    ensure!(csv.contains("gpu-operator-certified.v1.11.0"), "{csv}");
    let images = run.part(part, "gpu_operator_pod.images.list")?;
    ensure!(images.contains("nvcr.io/nvidia/driver") && images.contains("k8s-device-plugin"), "{images}");
    Ok(())
}

/// All that the job makes, but for what a burn makes and takes away.
const KINDS: &[&str] = &[
    "/api/v1/namespaces",
    "/apis/operators.coreos.com/v1/operatorgroups",
    "/apis/operators.coreos.com/v1alpha1/subscriptions",
    "/apis/operators.coreos.com/v1alpha1/installplans",
    "/apis/operators.coreos.com/v1alpha1/clusterserviceversions",
    "/apis/nvidia.com/v1/clusterpolicies",
    "/apis/nfd.openshift.io/v1/nodefeaturediscoveries",
    "/apis/machine.openshift.io/v1beta1/machinesets",
    "/apis/machine.openshift.io/v1beta1/machines",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
];

async fn a_second_run_changes_nothing(bench: &mut Bench) -> Result<()> {
    let names = |found: &std::collections::BTreeMap<String, String>| found.keys().cloned().collect::<Vec<_>>();
    let before = bench.objects(KINDS).await?;
    let run = bench.pass("second", JOB).await?;
    let changed = run.steps("changed")?;
    let only_burns = changed.iter().all(|step| step.starts_with("gpu-operator.burn"));
    ensure!(only_burns, "the second run changed {changed:?}:\n{}", run.first_lines());
    let after = bench.objects(KINDS).await?;
    ensure!(names(&before) == names(&after), "before: {:?}\nafter: {:?}", names(&before), names(&after));
    ensure!(!run.part("cluster__set_scale", "_ansible.log")?.is_empty());
    Ok(())
}

async fn names_a_faulty_gpu(bench: &mut Bench) -> Result<()> {
    bench.stack.break_(Fault::GpuFaulty).await?;
    let (run, error) = bench.fail(1, "faulty", "gpu-operator run-gpu-burn --runtime 1").await?;
    let named = error.starts_with("Node/ip-10-0-") && error.contains(": GPU 0 of 1 tested is FAULTY");
    ensure!(named, "{error}\n{}", run.first_lines());
    bench.stack.mend(Fault::GpuFaulty).await
}

/// Held in the middle and asked to stop: captures are taken, within the grace time, and the summary is true.
async fn stops_when_asked(bench: &mut Bench, signal: &str, code: i32) -> Result<()> {
    let mut running = bench.start(signal, &format!("{JOB} --hold-at gpu-operator.burn-pods --grace 20s"))?;
    running.says("held here").await?;
    let asked = std::time::Instant::now();
    running.signal(signal).await?;
    let run = bench.end(running).await?;
    ensure!(run.code == code, "SIG{signal} ended it with {}:\n{}", run.code, run.first_lines());
    ensure!(asked.elapsed().as_secs() < 20, "it took {:?} to stop", asked.elapsed());
    let summary = run.summary()?;
    ensure!(summary["exit_code"] == code && summary["result"] == "interrupted", "{summary:#}");
    ensure!(summary["leftovers"].as_array().is_some_and(Vec::is_empty), "{:#}", summary["leftovers"]);
    let capture = run.part("gpu_operator__capture_deployment_state", "capture.json")?;
    let capture: Value = serde_json::from_str(&capture)?;
    ensure!(capture["files"].as_array().is_some_and(|files| files.len() > 20), "{capture:#}");
    Ok(())
}

async fn goes_without_a_trace(bench: &mut Bench) -> Result<()> {
    bench.pass("away", "gpu-operator undeploy-from-operatorhub").await?;
    bench.pass("away", "nfd undeploy").await?;
    let left = bench.objects(KINDS).await?;
    let traces: Vec<&String> = left
        .keys()
        .filter(|key| ["nvidia", "gpu-operator", "openshift-nfd", "nfd.openshift.io"].iter().any(|it| key.contains(it)))
        .collect();
    ensure!(traces.is_empty(), "left behind: {traces:?}");
    for again in ["gpu-operator undeploy-from-operatorhub", "nfd undeploy"] {
        let run = bench.pass("away", again).await?;
        ensure!(run.steps("changed")?.is_empty(), "{again} changed something:\n{}", run.first_lines());
    }
    let cleaned = bench.pass("away", &format!("cleanup {}", bench.folder.join("first").display())).await?;
    cleaned.summary().context("cleanup has a summary")?;
    let sets = bench.objects(&["/apis/machine.openshift.io/v1beta1/machinesets"]).await?;
    ensure!(sets.keys().all(|name| !name.contains("g4dn")), "{sets:?}");
    Ok(())
}
