//! The gpu-burn program: progress on one line, a verdict per GPU, and exit code 0 even for faulty ones.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::Value;

use super::behaviour::{Exit, Script, gpus, runs_on};
use crate::controllers::kit::{Cache, Context, NODE, Read, identity};

/// Seconds of a run that is not told otherwise: the entry point's own default.
const DEFAULT_SECONDS: u64 = 300;

/// A burn on the pod's node: compile, run, report.
pub(super) fn script(context: &Context, cache: &Cache, pod: &DynamicObject, container: &Value) -> Script {
    let node = pod.text("/spec/nodeName");
    let found = cache.get(NODE, "", node);
    let who = found.as_ref().map_or_else(|| node.to_owned(), |node| identity::of_node(node));
    let compile = compile_time(context, &who);
    let seconds = seconds(container);
    let count = found.as_ref().map_or(0, |node| gpus(node));
    if count == 0 || !runs_on(cache, "nvidia-driver-daemonset", node) {
        let mut script = Script::task(Exit::After(compile, 124));
        script
            .last_words
            .push("Couldn't init a GPU test: Error in \"init\": no CUDA-capable device is detected".to_owned());
        return script;
    }
    let mut script = Script::task(Exit::After(compile + Duration::from_secs(seconds), 0));
    for gpu in 0..count {
        script.log.push((
            compile,
            format!(
                "GPU {gpu}: Tesla T4 (UUID: GPU-{:08x})",
                context.dice.number("uuid", &format!("{who}/{gpu}")) as u32
            ),
        ));
    }
    let quirks = &context.scenario.quirks;
    let concerned = found.as_ref().is_none_or(|node| quirks.concerns("faultyGpu", identity::names_of_node(node)));
    let faulty = quirks.faulty_gpu.filter(|_| concerned).map(u64::from);
    let errors = |gpu: u64| if faulty == Some(gpu) { 4711 } else { 0 };
    for tenth in 1..=10 {
        let at = compile + Duration::from_secs(seconds) * tenth / 10;
        let progress = |step: u32| {
            let percent = f64::from(tenth * 10 - 10 + step * 5);
            let work = |gpu: u64| format!("{} (4025 Gflop/s)", u64::from(tenth) * 1200 + gpu);
            let join = |text: &dyn Fn(u64) -> String| (0..count).map(text).collect::<Vec<_>>().join(" - ");
            let numbers = join(&work);
            let wrong = join(&|gpu| errors(gpu).to_string());
            let heat = join(&|gpu| format!("{} C", 60 + gpu));
            format!("\r{percent:.1}%  proc'd: {numbers}   errors: {wrong}   temps: {heat} ")
        };
        script.log.push((at, progress(1) + &progress(2)));
    }
    script.last_words.push("Killing processes.. done".to_owned());
    script.last_words.push(String::new());
    script.last_words.push(format!("Tested {count} GPUs:"));
    for gpu in 0..count {
        let word = if faulty == Some(gpu) { "FAULTY" } else { "OK" };
        script.last_words.push(format!("\tGPU {gpu}: {word}"));
    }
    script
}

fn seconds(container: &Value) -> u64 {
    let env = container["env"].as_array().into_iter().flatten();
    let set = env.into_iter().find(|entry| entry["name"] == "GPU_BURN_TIME");
    set.and_then(|entry| entry["value"].as_str()).and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_SECONDS)
}

/// Time that the burn's compilation takes on a node.
pub(crate) fn compile_time(context: &Context, node: &str) -> Duration {
    context.draw(context.scenario.timings.burn_compile, "burnCompile", node)
}
