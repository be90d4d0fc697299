//! gpu-burn: a pod that runs for a while, prints its progress as the real program does, and ends.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::crilog;
use crate::supervise::say;

const STEPS: u32 = 10;

/// How long a log may take to be readable.
const LOG_LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn burn(client: Client, pod: Pod, log: PathBuf, faulty: bool) {
    if let Err(error) = run(&client, &pod, &log, faulty).await {
        say(&format!("gpu-burn pod {}: {error:#}", pod.name_any()));
    }
}

async fn run(client: &Client, pod: &Pod, log: &Path, faulty: bool) -> Result<()> {
    let runtime = runtime(pod);
    crilog::append(log, &["GPU 0: Tesla T4 (UUID: GPU-5f6c3d0e-7a52-4b2d-9c1e-0d6b3f2f8a11)"])?;
    for step in 1..=STEPS {
        tokio::time::sleep(runtime / STEPS).await;
        let percent = step * 100 / STEPS;
        let errors = if faulty { step * 7 } else { 0 };
        // Progress overwrites itself: no line ends until the last one.
        partial(
            log,
            &format!("{percent}.0%  proc'd: {} (4113 Gflop/s)   errors: {errors}   temps: 62 C \r", step * 656),
        )?;
    }
    let verdict = if faulty { "\tGPU 0: FAULTY" } else { "\tGPU 0: OK" };
    crilog::append(log, &["Killing processes.. done", "", "Tested 1 GPUs:", verdict])?;
    readable(client, pod).await?;
    finish(client, pod).await
}

/// A kubelet that has run a pod has its log. The program that plays the kubelet learns of it by a watch of its own,
/// which takes some seconds to come back after the API server was away.
async fn readable(client: &Client, pod: &Pod) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let read = LogParams { tail_lines: Some(1), ..LogParams::default() };
    let limit = tokio::time::Instant::now() + LOG_LIMIT;
    loop {
        match pods.logs(&pod.name_any(), &read).await {
            Ok(_) => return Ok(()),
            Err(error) if tokio::time::Instant::now() > limit => {
                return Err(error).context("its log cannot be read");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

/// `GPU_BURN_TIME`, as the pod has it.
fn runtime(pod: &Pod) -> Duration {
    let seconds = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .flat_map(|container| container.env.iter().flatten())
        .find(|variable| variable.name == "GPU_BURN_TIME")
        .and_then(|variable| variable.value.as_deref()?.trim().parse::<u32>().ok())
        .unwrap_or(10);
    Duration::from_secs(seconds.into())
}

/// A piece of a line that goes on.
fn partial(log: &Path, text: &str) -> Result<()> {
    let stamp = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%9fZ");
    let mut file = File::options().append(true).open(log).context("its log is gone")?;
    file.write_all(format!("{stamp} stdout P {text}\n").as_bytes()).context("cannot write its log")
}

async fn finish(client: &Client, pod: &Pod) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let containers: Vec<_> = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "", "ready": false, "restartCount": 0,
                "started": false,
                "state": { "terminated": {
                    "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now,
                }},
            })
        })
        .collect();
    let patch = json!({ "status": {
        "phase": "Succeeded",
        "conditions": [
            { "type": "Initialized", "status": "True", "reason": "PodCompleted", "lastTransitionTime": now },
            { "type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now },
            { "type": "ContainersReady", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now },
        ],
        "containerStatuses": containers,
    }});
    match pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
        Err(error) if !super::cloud::is_missing(&error) => Err(error).context("cannot end it"),
        _ => Ok(()),
    }
}
