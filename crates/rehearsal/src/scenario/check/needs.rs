//! What a verb needs of a cluster, and whether a scenario could ever give it.

use serde_json::Value;

use super::known;
use crate::scenario::{InstanceType, Platform, Scenario};

/// NFD's package, whose workers set the labels.
const NFD: &str = "nfd";
/// A label by which nodes with GPUs are found.
const GPU_LABEL: &str = "feature.node.kubernetes.io/pci-10de.present";

/// What a verb needs so that it can pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// It waits for nodes that are labelled as having a GPU.
    pub gpu_labels: bool,
    /// It makes machines of this type.
    pub instance_type: Option<String>,
    /// It installs these packages.
    pub packages: Vec<String>,
}

impl Scenario {
    /// Whether the scenario says itself that its run does not pass, or has something go wrong.
    pub fn is_meant_to_fail(&self) -> bool {
        !self.faults.is_empty() || self.expect.as_ref().is_some_and(super::super::Expect::is_failure)
    }

    /// Why a verb with these needs could never pass: the field, and what is wrong. Nothing where it is meant to fail.
    pub fn denies(&self, needs: &Needs) -> Option<(&'static str, String)> {
        if self.is_meant_to_fail() || self.recorded.is_some() {
            return None;
        }
        if let Some(kind) = &needs.instance_type
            && self.platform != Platform::None
            && !self.has_gpu_node()
        {
            match self.instance_types.get(kind) {
                None => {
                    let names = known(self.instance_types.keys().map(String::as_str));
                    return Some((
                        "instanceTypes",
                        format!("`{kind}`, which the verb makes machines of, is not sold; {names}"),
                    ));
                }
                Some(offer) if !self.can_make(offer) => {
                    return Some((
                        "instanceTypes",
                        format!(
                            "`{kind}`, which the verb makes machines of, is in stock in no zone that has a machine set"
                        ),
                    ));
                }
                Some(_) => {}
            }
        }
        let packages: Vec<&str> = self.packages().collect();
        for package in &needs.packages {
            if !self.openshift.is_empty() && !packages.contains(&package.as_str()) {
                let text =
                    format!("no catalog has the package `{package}`, which the verb installs; {}", known(packages));
                return Some(("catalogs", text));
            }
        }
        if needs.gpu_labels && !self.has_labelled_node() {
            if !self.instance_types.values().any(|kind| kind.gpus > 0) {
                let text =
                    "the verb waits for nodes that are labelled as having a GPU, and no instance type has `gpus`";
                return Some(("instanceTypes", text.to_owned()));
            }
            if !packages.contains(&NFD) {
                let text = "the verb waits for GPU labels, and nothing sets them: no catalog has the package `nfd`";
                return Some(("catalogs", text.to_owned()));
            }
        }
        None
    }

    /// Whether a machine set could make machines of a type: new sets are made after those that are there.
    fn can_make(&self, offer: &InstanceType) -> bool {
        let stock = |zone: &str| offer.zones.get(zone).is_some_and(|stock| *stock > 0);
        self.machine_sets.iter().any(|set| stock(&set.zone))
    }

    /// Whether a node with GPUs is there from the start, so that none has to be made.
    fn has_gpu_node(&self) -> bool {
        let gpus = |kind: &str| self.instance_types.get(kind).is_some_and(|kind| kind.gpus > 0);
        self.nodes.iter().any(|node| gpus(&node.instance_type))
            || self.machine_sets.iter().any(|set| set.replicas != Some(0) && gpus(&set.instance_type))
    }

    fn packages(&self) -> impl Iterator<Item = &str> {
        self.catalogs.iter().flat_map(|catalog| &catalog.packages).map(|package| package.name.as_str())
    }

    /// Whether a node among the further objects has the label from the start.
    fn has_labelled_node(&self) -> bool {
        let label = |object: &Value| object["metadata"]["labels"].get(GPU_LABEL).is_some();
        self.objects.iter().any(|object| object["kind"] == "Node" && label(object))
    }
}
