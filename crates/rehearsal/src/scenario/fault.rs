//! The faults a rehearsal can be asked for by name. Each one patches a scenario and nothing else.

use std::fmt;
use std::str::FromStr;

use super::{ApiFault, Scenario, ScenarioError};

macro_rules! faults {
    ($($variant:ident, $name:literal, $text:literal;)*) => {
        /// Something that goes wrong, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $(#[doc = $text] $variant,)*
        }

        impl Fault {
            /// All faults, in the order of the product's help.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used on the command line and in scenario files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line that says what happens.
            pub fn describe(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

faults! {
    QuotaExhausted, "quota-exhausted", "The cloud account may have no further GPU instance: every new Machine goes Failed.";
    ZoneOutOfStock, "zone-out-of-stock", "The first zone has no GPU instance left; another zone has.";
    TypeNotOffered, "type-not-offered", "The first zone does not sell the GPU instance type; another zone does.";
    ImagePullFailure, "image-pull-failure", "The driver's image does not exist in its registry.";
    DriverCrashLoop, "driver-crash-loop", "The driver container finds no kernel headers and crashes at each start.";
    CatalogNotReady, "catalog-not-ready", "The certified catalog's pod never answers.";
    PackageMissing, "package-missing", "The certified catalog does not contain the GPU Operator.";
    SecondOperatorGroup, "second-operator-group", "Somebody else's OperatorGroup appears beside ours in the GPU Operator's namespace.";
    ResolutionFailed, "resolution-failed", "OLM cannot resolve the GPU Operator's Subscription.";
    CsvFailed, "csv-failed", "The GPU Operator's own Deployment never becomes available, and its CSV fails.";
    NoGpuLabel, "no-gpu-label", "NFD labels every node but sees no GPU on any.";
    NodeNotReady, "node-not-ready", "New nodes register but never become Ready.";
    GpuFaulty, "gpu-faulty", "GPU 0 of every GPU node computes wrong results under load.";
    ValidatorFailed, "validator-failed", "The validator's CUDA sample fails although the driver looks healthy.";
    ApiRestart, "api-restart", "The API server is away for twenty seconds in the middle of the run.";
    ExpiredWatch, "expired-watch", "Running watches end with 410 Gone in the middle of the run.";
    Throttled, "throttled", "The API server answers 429 for a minute.";
    StuckFinalizer, "stuck-finalizer", "ClusterPolicies get a finalizer that nobody removes.";
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = ScenarioError;

    fn from_str(name: &str) -> Result<Self, ScenarioError> {
        Self::ALL
            .iter()
            .copied()
            .find(|fault| fault.name() == name)
            .ok_or_else(|| ScenarioError::UnknownFault { name: name.to_owned(), known: names() })
    }
}

fn names() -> String {
    Fault::ALL.iter().map(|fault| fault.name()).collect::<Vec<_>>().join(", ")
}

/// Name and one-line description of every fault.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    Fault::ALL.iter().map(|fault| (fault.name(), fault.describe()))
}

/// Package of the GPU Operator, which several faults are about.
const GPU_OPERATOR: &str = "gpu-operator-certified";

impl Fault {
    /// Changes `scenario` so that this goes wrong in it.
    pub fn apply(self, scenario: &mut Scenario) {
        match self {
            Self::QuotaExhausted => gpu_types(scenario, |kind, _| kind.quota = Some(0)),
            Self::ZoneOutOfStock => gpu_types(scenario, |kind, first| {
                kind.zones.entry(first.to_owned()).and_modify(|stock| *stock = 0);
            }),
            Self::TypeNotOffered => gpu_types(scenario, |kind, first| {
                kind.zones.remove(first);
            }),
            Self::ImagePullFailure => {
                if let Some(image) = scenario.images.get_mut("driver") {
                    "manifest unknown: manifest unknown".clone_into(&mut image.trouble);
                }
            }
            Self::DriverCrashLoop => {
                "Error: Unable to find a match: kernel-headers-4.18.0-372.40.1.el8_6 kernel-devel-4.18.0-372.40.1.el8_6"
                    .clone_into(&mut scenario.quirks.driver_crash);
            }
            Self::CatalogNotReady => {
                if let Some(catalog) = home(scenario) {
                    "TRANSIENT_FAILURE".clone_into(&mut catalog.stuck_at);
                }
            }
            Self::PackageMissing => {
                if let Some(catalog) = home(scenario) {
                    catalog.packages.retain(|package| package.name != GPU_OPERATOR);
                }
            }
            Self::SecondOperatorGroup => {
                scenario.quirks.second_operator_group = vec!["nvidia-gpu-operator".to_owned()];
            }
            Self::ResolutionFailed => GPU_OPERATOR.clone_into(&mut scenario.quirks.resolution_failure),
            Self::CsvFailed => GPU_OPERATOR.clone_into(&mut scenario.quirks.csv_failure),
            Self::NoGpuLabel => scenario.quirks.no_gpu_label = true,
            Self::NodeNotReady => scenario.quirks.node_never_ready = true,
            Self::GpuFaulty => scenario.quirks.faulty_gpu = Some(0),
            Self::ValidatorFailed => "cuda-validation".clone_into(&mut scenario.quirks.validator_failure),
            Self::ApiRestart => scenario.api_faults.push(ApiFault::Restart { at: 200.0, lasts: 20.0 }),
            Self::ExpiredWatch => scenario.api_faults.push(ApiFault::ExpiredWatch { at: 200.0 }),
            Self::Throttled => {
                scenario.api_faults.push(ApiFault::Throttled { at: 0.0, lasts: 60.0, retry_after: 5 });
            }
            Self::StuckFinalizer => "clusterpolicies".clone_into(&mut scenario.quirks.stuck_finalizer),
        }
    }
}

/// Changes every GPU instance type; the second argument is the zone of the first machine set.
fn gpu_types(scenario: &mut Scenario, change: impl Fn(&mut super::InstanceType, &str)) {
    let first = scenario.machine_sets.iter().map(|set| set.zone.clone()).min().unwrap_or_default();
    for kind in scenario.instance_types.values_mut().filter(|kind| kind.gpus > 0) {
        change(kind, &first);
    }
}

/// The catalog that offers the GPU Operator.
fn home(scenario: &mut Scenario) -> Option<&mut super::Catalog> {
    scenario.catalogs.iter_mut().find(|catalog| catalog.packages.iter().any(|package| package.name == GPU_OPERATOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_changes_the_default_scenario_and_is_found_by_name() {
        for fault in Fault::ALL.iter().copied() {
            let before = Scenario::embedded("default").unwrap();
            let mut after = before.clone();
            fault.apply(&mut after);
            assert_ne!(before, after, "{fault}");
            assert_eq!(fault.name().parse::<Fault>().unwrap(), fault);
            after.validate("default").unwrap();
        }
        let error = "nonsense".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("quota-exhausted"), "{error}");
    }
}
