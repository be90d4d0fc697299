//! What a scenario file says about the cluster: platform, machines, catalogs, images and what is wrong with them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ApiFault, Dist, Expect, PlannedFault, Recording, Timings};

/// A whole simulated cluster, before anything has happened to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// Version of this format; absent means the newest.
    pub schema: Option<u32>,
    /// The scenario's name.
    pub name: String,
    /// One line that says what is special about it.
    pub description: String,
    /// Version of Kubernetes.
    pub kubernetes: String,
    /// Version of OpenShift; empty means plain Kubernetes without OLM's and the Machine API's kinds.
    pub openshift: String,
    /// The cloud underneath.
    pub platform: Platform,
    /// The infrastructure name, prefix of all machine names.
    pub infra: String,
    /// The cloud's region.
    pub region: String,
    /// Nodes that no machine set made, such as the control plane.
    pub nodes: Vec<FixedNode>,
    /// Machine sets that exist at the start.
    pub machine_sets: Vec<MachineSet>,
    /// What the cloud sells.
    pub instance_types: BTreeMap<String, InstanceType>,
    /// Catalogs of operators.
    pub catalogs: Vec<Catalog>,
    /// Images that matter, by a short name that controllers use.
    pub images: BTreeMap<String, Image>,
    /// How long things take.
    pub timings: Timings,
    /// What goes wrong inside the cluster.
    pub quirks: Quirks,
    /// What goes wrong at the API server.
    pub api_faults: Vec<ApiFault>,
    /// The faults this scenario has: from the start, or at their moment.
    pub faults: Vec<PlannedFault>,
    /// Seed of the times that are spread, unless the command line gives one.
    pub seed: Option<u64>,
    /// What a run has to end with.
    pub expect: Option<Expect>,
    /// Further objects that exist at the start, as manifests.
    pub objects: Vec<Value>,
    /// What was seen on a real cluster, and is shown again.
    pub recorded: Option<Recording>,
}

/// The cloud a cluster runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Amazon Web Services.
    #[default]
    Aws,
    /// Microsoft Azure.
    Azure,
    /// Google Cloud.
    Gcp,
    /// VMware vSphere, whose machines have sizes but no type.
    Vsphere,
    /// No cloud and no Machine API.
    None,
}

/// A node that is there from the start and belongs to no machine set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FixedNode {
    /// Name of the node.
    pub name: String,
    /// `master` or `worker`.
    pub role: String,
    /// Zone it is in.
    pub zone: String,
    /// Instance type, which gives its capacity.
    pub instance_type: String,
}

/// A machine set that exists at the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct MachineSet {
    /// Its name.
    pub name: String,
    /// Zone of its machines.
    pub zone: String,
    /// Instance type of its machines.
    pub instance_type: String,
    /// How many machines; absent leaves `spec.replicas` out, as manifests kept in Git often do.
    pub replicas: Option<u32>,
    /// Taints of its nodes, as `key=value:Effect`.
    pub taints: Vec<String>,
    /// Annotations on the machine set.
    pub annotations: BTreeMap<String, String>,
}

/// What the cloud sells under one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct InstanceType {
    /// Virtual CPUs.
    pub cpu: u32,
    /// Memory in MiB.
    pub memory_mi_b: u64,
    /// NVIDIA GPUs.
    pub gpus: u32,
    /// Product name of the GPU, as GPU feature discovery spells it.
    pub gpu_product: String,
    /// PCI class of the GPU (`0302` or `0300`).
    pub pci_class: String,
    /// Zones that offer it, with how many are in stock.
    pub zones: BTreeMap<String, u32>,
    /// How many the account may have; absent means no limit.
    pub quota: Option<u32>,
}

impl InstanceType {
    /// Whether its GPUs can be partitioned, which gives their nodes one more operand.
    pub fn has_mig(&self) -> bool {
        self.gpu_product.contains("A100") || self.gpu_product.contains("A30")
    }
}

/// A catalog of operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Catalog {
    /// Name of the CatalogSource.
    pub name: String,
    /// Name shown to people.
    pub display_name: String,
    /// Connection state it never gets out of; empty means that it becomes READY.
    pub stuck_at: String,
    /// Whether it was there, and READY, before the run.
    pub settled: bool,
    /// What it offers.
    pub packages: Vec<Package>,
}

/// A package: channels of versions of one operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Package {
    /// Package name.
    pub name: String,
    /// Channel used when none is asked for.
    pub default_channel: String,
    /// Channels, each with its CSVs from the newest to the oldest.
    pub channels: BTreeMap<String, Vec<String>>,
    /// What each CSV contains.
    pub bundles: Vec<Bundle>,
}

/// One published version of an operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Bundle {
    /// Name of the CSV.
    pub csv: String,
    /// Version of the operator.
    pub version: String,
    /// Name shown to people.
    pub display_name: String,
    /// The bundle's suggested namespace; empty means that it has no such annotation.
    pub suggested_namespace: String,
    /// Install modes that are supported.
    pub install_modes: Vec<String>,
    /// CSV it replaces.
    pub replaces: String,
    /// Kinds it owns.
    pub owned: Vec<OwnedCrd>,
    /// Deployment of the operator.
    pub deployment: String,
    /// Service account of the operator.
    pub service_account: String,
    /// Short name of the operator's image in `images`.
    pub image: String,
    /// Labels of the operator's pods.
    pub pod_labels: BTreeMap<String, String>,
    /// The `alm-examples` annotation, as objects.
    pub examples: Vec<Value>,
}

/// A kind that an operator owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OwnedCrd {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// An image, and what happens when it is pulled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Image {
    /// Full reference.
    pub reference: String,
    /// Time of the pull.
    pub pull: Dist,
    /// Message of a pull that fails for ever; empty means that it works.
    pub trouble: String,
}

/// What goes wrong inside the cluster. Faults set these; a scenario file may as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Quirks {
    /// Last log line of a driver container that crashes at each start.
    pub driver_crash: String,
    /// Nodes with GPUs whose NFD worker does not report the GPU.
    pub no_gpu_label: bool,
    /// New nodes never become Ready.
    pub node_never_ready: bool,
    /// Index of a GPU that burns badly on every GPU node.
    pub faulty_gpu: Option<u32>,
    /// Init container of the validator that fails, such as `cuda-validation`.
    pub validator_failure: String,
    /// A CSV of this package (any version) ends Failed because its Deployment cannot run.
    pub csv_failure: String,
    /// Package whose Subscriptions cannot be resolved.
    pub resolution_failure: String,
    /// Package whose bundle cannot be unpacked.
    pub unpack_failure: String,
    /// Namespaces that already hold an OperatorGroup of somebody else when they are created.
    pub second_operator_group: Vec<String>,
    /// Kind (plural) of objects that get a finalizer nobody removes.
    pub stuck_finalizer: String,
    /// The nodes that a quirk is about, by the quirk's name: each a node's name, its zone or its instance type. A quirk
    /// that is not named here is about every node.
    pub only: BTreeMap<String, Vec<String>>,
}

/// The quirks that can be about some nodes only.
pub(super) const NODE_QUIRKS: [&str; 5] =
    ["driverCrash", "noGpuLabel", "nodeNeverReady", "faultyGpu", "validatorFailure"];

impl Quirks {
    /// Whether a quirk, if it is set, is about a node of that name, zone and instance type.
    pub(crate) fn concerns(&self, quirk: &str, names: [&str; 3]) -> bool {
        self.only.get(quirk).is_none_or(|only| only.iter().any(|one| names.contains(&one.as_str())))
    }
}
