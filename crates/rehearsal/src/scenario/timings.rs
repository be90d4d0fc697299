//! The names of everything that takes time in a simulated cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Dist;

/// How long the cluster's own causes take, in seconds. The embedded default scenario names the source of each value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timings {
    /// From a Machine's creation until the cloud has made the instance (phase Provisioned), or has refused it.
    pub machine_provision: Dist,
    /// From Provisioned until the Node object exists.
    pub node_boot: Dist,
    /// From the Node's registration until it is Ready.
    pub node_ready: Dist,
    /// From a Machine's deletion until its Node and the Machine itself are gone.
    pub machine_delete: Dist,
    /// From a pod's binding until its first image pull or container start.
    pub pod_sandbox: Dist,
    /// From an image being there until its container runs.
    pub container_start: Dist,
    /// From a pod's deletion until it is gone.
    pub pod_termination: Dist,
    /// The pull of an image that the scenario gives no time of its own.
    pub image_pull: Dist,
    /// From a container's start until its readiness probe passes, when nothing else is said.
    pub container_ready: Dist,
    /// First back-off of a failed image pull or a crashed container; doubled each time.
    pub back_off: Dist,
    /// The longest back-off.
    pub back_off_limit: Dist,
    /// From a catalog's creation until its connection is READY.
    pub catalog_ready: Dist,
    /// From a Subscription until its InstallPlan exists.
    pub subscription_resolve: Dist,
    /// From a Subscription until its bundle is unpacked.
    pub bundle_unpack: Dist,
    /// From an InstallPlan's creation until OLM has written its status.
    pub plan_written: Dist,
    /// From an InstallPlan's existence until the Subscription's status names it.
    pub subscription_status: Dist,
    /// From an InstallPlan's approval until it is Complete.
    pub plan_install: Dist,
    /// From a CSV's creation until its requirements are met (phase InstallReady).
    pub csv_requirements: Dist,
    /// From InstallReady until the Deployment is created.
    pub csv_install: Dist,
    /// From the Deployment being available until the CSV is Succeeded.
    pub csv_health: Dist,
    /// How often OLM looks again at what it could not resolve.
    pub olm_resync: Dist,
    /// From the NFD worker's start until the node carries its labels.
    pub nfd_label: Dist,
    /// From a custom resource's creation until its operator has made the workloads.
    pub operator_reconcile: Dist,
    /// How often the GPU Operator looks again while no node carries NFD labels.
    pub gpu_operator_resync: Dist,
    /// From the driver container's start until the driver is built and loaded.
    pub driver_build: Dist,
    /// From the start of a container that must find the driver, until it has.
    pub validation: Dist,
    /// The run of the CUDA sample and of the device-plugin sample, each.
    pub workload_validation: Dist,
    /// From the device plugin's start until the node announces its GPUs.
    pub device_plugin_register: Dist,
    /// From GPU feature discovery's start until the node carries its labels.
    pub gfd_label: Dist,
    /// The compilation of the burn program inside its pod.
    pub burn_compile: Dist,
    /// From a namespace's deletion until its content is deleted.
    pub namespace_delete: Dist,
}

impl Timings {
    /// Every timing with the name it has in a scenario file.
    pub fn named(&self) -> Vec<(String, Dist)> {
        let value = serde_json::to_value(self).unwrap_or_default();
        let Some(map) = value.as_object() else {
            return Vec::new();
        };
        map.iter()
            .filter_map(|(name, value)| Some((name.clone(), serde_json::from_value(value.clone()).ok()?)))
            .collect()
    }
}
