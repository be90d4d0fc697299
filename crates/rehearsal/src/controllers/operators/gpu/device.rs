//! What operands do to their node: the device plugin announces GPUs, feature discovery labels them.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controllers::kit::{Cache, Context, Controller, Kind, NODE, POD, Read, Timers, identity, is_true};
use crate::scenario::InstanceType;

/// Device plugin and GPU feature discovery on all nodes.
pub(crate) struct DevicePlugins;

impl Controller for DevicePlugins {
    const KINDS: &'static [Kind] = &[POD, NODE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        let timings = &context.scenario.timings;
        for node in cache.all(NODE) {
            let Some(kind) = kind(context, &node).filter(|kind| kind.gpus > 0) else { continue };
            let who = identity::of_node(&node);
            let announced = node.at("/status/allocatable").get("nvidia.com/gpu").is_some_and(|count| count != "0");
            match ready_pod(cache, "nvidia-device-plugin-daemonset", node.name()) {
                Some(pod) => {
                    let wait = context.draw(timings.device_plugin_register, "devicePluginRegister", &who);
                    if timers.passed(format!("{}/register", pod.uid()), wait) {
                        announce(cache, &node, kind.gpus).await?;
                    }
                }
                // The kubelet keeps the capacity of a plugin that has gone, and allocates nothing of it.
                None if announced => announce(cache, &node, 0).await?,
                None => {}
            }
            if let Some(pod) = ready_pod(cache, "gpu-feature-discovery", node.name()) {
                let wait = context.draw(timings.gfd_label, "gfdLabel", &who);
                if timers.passed(format!("{}/label", pod.uid()), wait) {
                    cache.patch(NODE, &node, json!({"metadata": {"labels": labels(kind)}})).await?;
                }
            }
        }
        Ok(())
    }
}

async fn announce(cache: &mut Cache, node: &DynamicObject, gpus: u32) -> Result<(), kube::Error> {
    let mut status = json!({"allocatable": {"nvidia.com/gpu": gpus.to_string()}});
    if gpus > 0 {
        status["capacity"] = json!({"nvidia.com/gpu": gpus.to_string()});
    }
    cache.status(NODE, node, status).await
}

fn kind<'a>(context: &'a Context, node: &DynamicObject) -> Option<&'a InstanceType> {
    context.scenario.instance_types.get(node.label("node.kubernetes.io/instance-type")?)
}

fn ready_pod(cache: &Cache, daemon_set: &str, node: &str) -> Option<std::sync::Arc<DynamicObject>> {
    cache.all(POD).into_iter().find(|pod| {
        pod.text("/spec/nodeName") == node
            && !pod.is_deleted()
            && pod.owner("DaemonSet").is_some_and(|owner| owner.name == daemon_set)
            && is_true(pod, "Ready")
    })
}

/// What GPU feature discovery says about a node.
fn labels(kind: &InstanceType) -> Value {
    let family = if kind.gpu_product.contains("T4") { "turing" } else { "ampere" };
    json!({
        "nvidia.com/gpu.count": kind.gpus.to_string(),
        "nvidia.com/gpu.product": kind.gpu_product,
        "nvidia.com/gpu.memory": "15360",
        "nvidia.com/gpu.family": family,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/cuda.driver.major": "510",
        "nvidia.com/cuda.runtime.major": "11",
        "nvidia.com/gfd.timestamp": "0",
    })
}
