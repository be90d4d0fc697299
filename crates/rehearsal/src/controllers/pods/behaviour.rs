//! What the programs in containers do: how long they run, when they are ready, what they print.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::Value;

use super::burn;
use crate::controllers::kit::{Cache, Context, NODE, POD, Read, identity, is_true};

/// The programme of one run of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Script {
    /// When and with which code it ends.
    pub(super) exit: Exit,
    /// From its start until it is ready.
    pub(super) ready_after: Duration,
    /// What it prints, with the time since its start.
    pub(super) log: Vec<(Duration, String)>,
    /// Its last words, printed when it ends.
    pub(super) last_words: Vec<String>,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Exit {
    /// It does not.
    Never,
    /// So long after its start, with this code.
    After(Duration, i32),
    /// Once what it looks for is there, and so long after that, with code 0.
    Once(bool, Duration),
}

impl Script {
    fn service(ready_after: Duration) -> Self {
        Self { exit: Exit::Never, ready_after, log: Vec::new(), last_words: Vec::new() }
    }

    pub(super) fn task(exit: Exit) -> Self {
        Self { exit, ready_after: Duration::ZERO, log: Vec::new(), last_words: Vec::new() }
    }

    fn says(mut self, line: &str) -> Self {
        self.log.push((Duration::ZERO, line.to_owned()));
        self
    }

    fn ends_with(mut self, line: &str) -> Self {
        self.last_words.push(line.to_owned());
        self
    }
}

/// Annotation that tells a pod's containers how long to run, in seconds.
const SECONDS: &str = "rehearsal/seconds";
/// Annotation that tells them how to exit.
const EXIT_CODE: &str = "rehearsal/exit-code";

/// What a container of a pod does.
pub(super) fn script(context: &Context, cache: &Cache, pod: &DynamicObject, container: &Value) -> Script {
    let name = container["name"].as_str().unwrap_or_default();
    let timings = &context.scenario.timings;
    let who = format!("{}/{name}", identity::of_pod(cache, pod));
    let usual = context.draw(timings.container_ready, "containerReady", &who);
    if pod.label("app") == Some("gpu-burn") {
        return burn::script(context, cache, pod, container);
    }
    if let Some(script) = operand(context, cache, pod, name, &who) {
        return script;
    }
    if fails_its_csv(context, pod) {
        // Its readiness probe asks the manager that does not start.
        return Script { ready_after: usual * 2, ..Script::task(Exit::After(usual, 1)) }
            .ends_with("panic: unable to start manager: no such file or directory");
    }
    let keeps_running = matches!(pod.text("/spec/restartPolicy"), "" | "Always");
    let seconds = pod.annotation(SECONDS).and_then(|text| text.parse().ok());
    if keeps_running && seconds.is_none() {
        return Script::service(usual).says(&format!("starting {name}"));
    }
    let code = pod.annotation(EXIT_CODE).and_then(|text| text.parse().ok()).unwrap_or(0);
    Script::task(Exit::After(seconds.map_or(usual, Duration::from_secs_f64), code)).says(&format!("starting {name}"))
}

/// The GPU stack's own containers.
fn operand(context: &Context, cache: &Cache, pod: &DynamicObject, name: &str, who: &str) -> Option<Script> {
    let timings = &context.scenario.timings;
    let quirks = &context.scenario.quirks;
    let owner = pod.owner("DaemonSet")?;
    let node = pod.text("/spec/nodeName");
    let look = context.draw(timings.validation, "validation", who);
    let workload = context.draw(timings.workload_validation, "workloadValidation", who);
    let found = cache.get(NODE, "", node);
    let concerned =
        |quirk: &str| found.as_ref().is_none_or(|node| quirks.concerns(quirk, identity::names_of_node(node)));
    if !quirks.validator_failure.is_empty()
        && quirks.validator_failure == name
        && owner.name == "nvidia-operator-validator"
        && concerned("validatorFailure")
    {
        let words = "Failed to allocate device vector A (error code initialization error)!";
        return Some(
            Script::task(Exit::After(workload, 1)).says("[Vector addition of 50000 elements]").ends_with(words),
        );
    }
    Some(match name {
        "nvidia-driver-ctr" if !quirks.driver_crash.is_empty() && concerned("driverCrash") => {
            let build = context.draw(timings.driver_build, "driverBuild", who);
            // Its startup probe asks the driver, so it is never ready.
            Script { ready_after: build, ..Script::task(Exit::After(build / 10, 1)) }
                .says("Installing Linux kernel headers...")
                .ends_with(&quirks.driver_crash)
        }
        "nvidia-driver-ctr" => {
            let build = context.draw(timings.driver_build, "driverBuild", who);
            let mut script = Script::service(build).says("Installing Linux kernel headers...");
            script.log.push((build, "Done, now waiting for signal".to_owned()));
            script
        }
        "k8s-driver-manager" => Script::task(Exit::After(look, 0)).says("Driver is not pre-installed on the host"),
        "driver-validation" => Script::task(Exit::Once(runs_on(cache, "nvidia-driver-daemonset", node), look))
            .says("waiting for the driver container")
            .ends_with("driver is ready"),
        "toolkit-validation" => {
            Script::task(Exit::Once(runs_on(cache, "nvidia-container-toolkit-daemonset", node), look))
                .says("waiting for nvidia container stack to be setup")
                .ends_with("toolkit is ready")
        }
        "cuda-validation" => {
            Script::task(Exit::After(workload, 0)).says("[Vector addition of 50000 elements]").ends_with("Test PASSED")
        }
        "plugin-validation" => {
            let announced = cache.get(NODE, "", node).is_some_and(|node| gpus(&node) > 0);
            Script::task(Exit::Once(announced, workload)).ends_with("device plugin workload validation is successful")
        }
        _ => return None,
    })
}

/// GPUs that a node announces.
pub(super) fn gpus(node: &DynamicObject) -> u64 {
    node.at("/status/allocatable")
        .get("nvidia.com/gpu")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// Whether a DaemonSet's pod is ready on a node.
pub(super) fn runs_on(cache: &Cache, daemon_set: &str, node: &str) -> bool {
    cache.all(POD).iter().any(|pod| {
        pod.text("/spec/nodeName") == node
            && !pod.is_deleted()
            && pod.owner("DaemonSet").is_some_and(|owner| owner.name == daemon_set)
            && is_true(pod, "Ready")
    })
}

/// Whether the pod is the operator of a package whose CSV is to fail.
fn fails_its_csv(context: &Context, pod: &DynamicObject) -> bool {
    let package = &context.scenario.quirks.csv_failure;
    if package.is_empty() {
        return false;
    }
    let packages = context.scenario.catalogs.iter().flat_map(|catalog| &catalog.packages);
    let mut bundles = packages.filter(|found| &found.name == package).flat_map(|found| &found.bundles);
    bundles.any(|bundle| {
        pod.owner("ReplicaSet")
            .is_some_and(|owner| owner.name.rsplit_once('-').is_some_and(|(name, _)| name == bundle.deployment))
    })
}
