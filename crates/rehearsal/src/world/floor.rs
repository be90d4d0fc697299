//! The floor: the least time that the scenario's own causes allow for a job, whoever plans it and however.
//!
//! Two chains start at once, machines and operators. Where they meet, on a labelled GPU node, the operands follow one
//! another as their init containers demand; then GPUs burn.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::controllers::{Context, identity};
use crate::scenario::{Dist, InstanceType};

/// A job whose floor is wanted: GPU nodes from the cloud, NFD, the GPU Operator, validation, a burn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorRequest {
    /// Type of the GPU machines.
    pub instance_type: String,
    /// How many of them there have to be.
    pub replicas: u32,
    /// Seconds of the burn.
    pub burn_seconds: u64,
    /// Package of the GPU Operator.
    pub gpu_package: String,
    /// Package of NFD.
    pub nfd_package: String,
}

impl Default for FloorRequest {
    fn default() -> Self {
        Self {
            instance_type: "g4dn.xlarge".to_owned(),
            replicas: 1,
            burn_seconds: 300,
            gpu_package: "gpu-operator-certified".to_owned(),
            nfd_package: "nfd".to_owned(),
        }
    }
}

/// A floor in its parts, each in seconds after the start, for the node that is last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// NFD's operator has made its workers.
    pub nfd_deployed: f64,
    /// The GPU Operator would make its operands.
    pub gpu_operator_deployed: f64,
    /// The last GPU node is Ready.
    pub node_ready: f64,
    /// It carries NFD's GPU label.
    pub gpu_label: f64,
    /// Its driver is loaded.
    pub driver_ready: f64,
    /// All operands of all nodes are ready, GPU feature discovery's labels included.
    pub validated: f64,
    /// The burn has ended on the last node.
    pub burned: f64,
}

impl Floor {
    /// The whole job, in seconds.
    pub fn total(&self) -> f64 {
        self.burned
    }

    pub(super) fn of(context: &Context, request: &FloorRequest) -> Self {
        let sum = Sum { context };
        let nfd = sum.operator(&request.nfd_package);
        let gpu = sum.operator(&request.gpu_package);
        let nodes = sum.nodes(request);
        let mut floor = Self { nfd_deployed: seconds(nfd), gpu_operator_deployed: seconds(gpu), ..Self::default() };
        let mut validated = Duration::ZERO;
        for (node, ready) in &nodes {
            let label = sum.label(node, (*ready).max(nfd));
            let operands = sum.operands(node, label.max(gpu));
            validated = validated.max(operands.all);
            floor.node_ready = floor.node_ready.max(seconds(*ready));
            floor.gpu_label = floor.gpu_label.max(seconds(label));
            floor.driver_ready = floor.driver_ready.max(seconds(operands.driver));
        }
        floor.validated = seconds(validated);
        let burns = nodes.iter().map(|(node, _)| validated + sum.burn(node, request.burn_seconds));
        floor.burned = seconds(burns.max().unwrap_or(validated));
        floor
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

struct Operands {
    driver: Duration,
    all: Duration,
}

struct Sum<'a> {
    context: &'a Context,
}

impl Sum<'_> {
    fn draw(&self, dist: Dist, concern: &str, who: &str) -> Duration {
        self.context.draw(dist, concern, who)
    }

    fn pull(&self, image: &str) -> Duration {
        let timings = &self.context.scenario.timings;
        match self.context.scenario.images.get(image) {
            Some(found) => self.draw(found.pull, "pull", image),
            None => self.draw(timings.image_pull, "imagePull", image),
        }
    }

    fn start(&self, who: &str) -> Duration {
        self.draw(self.context.scenario.timings.container_start, "containerStart", who)
    }

    fn ready(&self, who: &str) -> Duration {
        self.draw(self.context.scenario.timings.container_ready, "containerReady", who)
    }

    fn sandbox(&self, pod: &str) -> Duration {
        self.draw(self.context.scenario.timings.pod_sandbox, "podSandbox", pod)
    }

    /// From nothing to an operator that has seen its custom resource. The resource can be made as soon as its definition
    /// is there, which is long before the operator runs.
    fn operator(&self, package: &str) -> Duration {
        let timings = &self.context.scenario.timings;
        let packages = self.context.scenario.catalogs.iter().flat_map(|catalog| {
            let wait = if catalog.settled {
                Duration::ZERO
            } else {
                self.draw(timings.catalog_ready, "catalogReady", &catalog.name)
            };
            catalog.packages.iter().map(move |package| (wait, package))
        });
        let Some((catalog, found)) = packages.into_iter().find(|(_, found)| found.name == package) else {
            return Duration::ZERO;
        };
        let Some(bundle) = found.bundles.first() else { return Duration::ZERO };
        let deployment = &bundle.deployment;
        let who = format!("{deployment}/{deployment}");
        catalog
            + self.draw(timings.subscription_resolve, "subscriptionResolve", package)
            + self.draw(timings.bundle_unpack, "bundleUnpack", package)
            + self.draw(timings.plan_written, "planWritten", package)
            + self.draw(timings.plan_install, "planInstall", package)
            + self.draw(timings.csv_requirements, "csvRequirements", deployment)
            + self.draw(timings.csv_install, "csvInstall", deployment)
            + self.sandbox(deployment)
            + self.pull(&bundle.image)
            + self.start(&who)
            + self.ready(&who)
            + self.draw(timings.operator_reconcile, "operatorReconcile", deployment)
    }

    /// The GPU nodes of the job by identity, with the moment at which each is Ready.
    fn nodes(&self, request: &FloorRequest) -> Vec<(String, Duration)> {
        let scenario = &self.context.scenario;
        let timings = &scenario.timings;
        let is_gpu = |kind: &str| scenario.instance_types.get(kind).is_some_and(|kind| kind.gpus > 0);
        let mut nodes: Vec<(String, Duration)> = scenario
            .nodes
            .iter()
            .filter(|node| is_gpu(&node.instance_type))
            .map(|node| (node.name.clone(), Duration::ZERO))
            .collect();
        let mut there: BTreeMap<&str, u32> = BTreeMap::new();
        for set in &scenario.machine_sets {
            *there.entry(&set.instance_type).or_default() += set.replicas.unwrap_or(1);
        }
        for (kind, count) in there.iter().filter(|(kind, _)| is_gpu(kind)) {
            nodes.extend((0..*count).map(|place| (format!("{kind}/{place}"), Duration::ZERO)));
        }
        let kind = &request.instance_type;
        for place in there.get(kind.as_str()).copied().unwrap_or_default()..request.replicas {
            let who = format!("{kind}/{place}");
            let ready = self.draw(timings.machine_provision, "machineProvision", &who)
                + self.draw(timings.node_boot, "nodeBoot", &who)
                + self.draw(timings.node_ready, "nodeReady", &who);
            nodes.push((who, ready));
        }
        nodes
    }

    /// The moment of NFD's label on a node that can run the worker from `from` on.
    fn label(&self, node: &str, from: Duration) -> Duration {
        let pod = identity::on_node("nfd-worker", node);
        let who = format!("{pod}/nfd-worker");
        from + self.sandbox(&pod)
            + self.pull("nfd")
            + self.start(&who)
            + self.ready(&who)
            + self.draw(self.context.scenario.timings.nfd_label, "nfdLabel", node)
    }

    /// The operands of a node whose pods are bound at `from`.
    fn operands(&self, node: &str, from: Duration) -> Operands {
        let timings = &self.context.scenario.timings;
        let pod = |set: &str| identity::on_node(set, node);
        let ctr = |set: &str, name: &str| format!("{}/{name}", pod(set));
        let look = |set: &str, name: &str| self.draw(timings.validation, "validation", &ctr(set, name));
        let work =
            |set: &str, name: &str| self.draw(timings.workload_validation, "workloadValidation", &ctr(set, name));
        let begun = |set: &str| from + self.sandbox(&pod(set));
        let (driver, toolkit, plugin, validator, gfd) = (
            "nvidia-driver-daemonset",
            "nvidia-container-toolkit-daemonset",
            "nvidia-device-plugin-daemonset",
            "nvidia-operator-validator",
            "gpu-feature-discovery",
        );
        let mut others = vec![
            ("nvidia-dcgm", "nvidia-dcgm-ctr", "dcgm"),
            ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter", "dcgm-exporter"),
        ];
        if self.has_mig(node) {
            others.push(("nvidia-mig-manager", "nvidia-mig-manager", "mig-manager"));
        }
        let status = "nvidia-node-status-exporter";
        // All these pods want the validator's image; the first to ask starts its pull.
        let asking =
            [driver, toolkit, plugin, validator, gfd, status].into_iter().chain(others.iter().map(|(set, ..)| *set));
        let image = asking.map(begun).min().unwrap_or(from) + self.pull("validator");
        let started = |set: &str, name: &str, from: Duration| from.max(image) + self.start(&ctr(set, name));
        let main =
            |set: &str, name: &str, image: &str, from: Duration| from + self.pull(image) + self.start(&ctr(set, name));

        let manager = started(driver, "k8s-driver-manager", begun(driver)) + look(driver, "k8s-driver-manager");
        let driver_ready = main(driver, "nvidia-driver-ctr", "driver", manager)
            + self.draw(timings.driver_build, "driverBuild", &ctr(driver, "nvidia-driver-ctr"));

        let waited = |set: &str, name: &str, from: Duration, wanted: Duration| {
            started(set, name, from).max(wanted) + look(set, name)
        };
        let toolkit_ready = main(
            toolkit,
            "nvidia-container-toolkit-ctr",
            "toolkit",
            waited(toolkit, "driver-validation", begun(toolkit), driver_ready),
        ) + self.ready(&ctr(toolkit, "nvidia-container-toolkit-ctr"));
        let after_toolkit = |set: &str, name: &str, image: &str| {
            main(set, name, image, waited(set, "toolkit-validation", begun(set), toolkit_ready))
                + self.ready(&ctr(set, name))
        };
        let plugin_ready = after_toolkit(plugin, "nvidia-device-plugin", "device-plugin");
        let announced = plugin_ready + self.draw(timings.device_plugin_register, "devicePluginRegister", node);

        let found = waited(validator, "driver-validation", begun(validator), driver_ready);
        let found = waited(validator, "toolkit-validation", found, toolkit_ready);
        let computed = started(validator, "cuda-validation", found) + work(validator, "cuda-validation");
        let allocated =
            started(validator, "plugin-validation", computed).max(announced) + work(validator, "plugin-validation");
        let validator_ready =
            allocated + self.start(&ctr(validator, validator)) + self.ready(&ctr(validator, validator));

        let gfd_ready = after_toolkit(gfd, gfd, "gfd");
        let labelled = gfd_ready + self.draw(timings.gfd_label, "gfdLabel", node);
        let exported = started(status, status, begun(status)) + self.ready(&ctr(status, status));
        let rest = others.iter().map(|(set, name, image)| after_toolkit(set, name, image));
        let all = [plugin_ready, validator_ready, labelled, exported].into_iter().chain(rest).max().unwrap_or(from);
        Operands { driver: driver_ready, all }
    }

    fn has_mig(&self, node: &str) -> bool {
        let scenario = &self.context.scenario;
        let fixed = scenario.nodes.iter().find(|fixed| fixed.name == node).map(|fixed| fixed.instance_type.as_str());
        let kind = fixed.or_else(|| node.rsplit_once('/').map(|(kind, _)| kind)).unwrap_or_default();
        scenario.instance_types.get(kind).is_some_and(InstanceType::has_mig)
    }

    /// From a burn pod's creation on a validated node to its end.
    fn burn(&self, node: &str, runtime: u64) -> Duration {
        let pod = identity::on_node(identity::BURN, node);
        self.sandbox(&pod)
            + self.pull("burn")
            + self.start(&format!("{pod}/gpu-burn-ctr"))
            + self.draw(self.context.scenario.timings.burn_compile, "burnCompile", node)
            + Duration::from_secs(runtime)
    }
}
