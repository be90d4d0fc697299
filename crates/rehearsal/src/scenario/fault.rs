//! The faults a rehearsal can be asked for by name. Each one patches a scenario and nothing else.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiFault, ApiFaultKind, Scenario, ScenarioError};

macro_rules! faults {
    ($($variant:ident, $name:literal, $text:literal;)*) => {
        /// Something that goes wrong, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Fault {
            $(#[doc = $text] #[serde(rename = $name)] $variant,)*
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
    ServerErrors, "server-errors", "One request in ten is answered with 503.";
    ConnectionResets, "connection-resets", "One connection in ten breaks before the request arrives.";
    AnswersLost, "answers-lost", "Every fourth write is done, but the connection breaks before its answer.";
    RequestsStall, "requests-stall", "One request in fifty is never answered.";
    SlowLists, "slow-lists", "Lists take twenty seconds.";
    HalfEvents, "half-events", "Watches break in the middle of an event for five minutes.";
    HistoryGone, "history-gone", "Every watch and every continue token is answered with 410 Gone for a minute.";
    CrashInWrite, "crash-in-write", "The API server restarts in the middle of the fifth write, which may be done or not.";
    WriteConflicts, "write-conflicts", "Every third write is refused with 409, because somebody else was faster.";
    TokenExpires, "token-expires", "The token expires in the middle of the run, and there is no other.";
    TokenRenewed, "token-renewed", "The token expires in the middle of the run; reading the credentials again gives a new one.";
    CertificateRotated, "certificate-rotated", "The API server gets a certificate of a new authority; reading the configuration again gives trust in it.";
    CertificateUntrusted, "certificate-untrusted", "The API server gets a certificate of an authority that nobody told us of.";
    ClockSkew, "clock-skew", "The cluster's clock is seven minutes ahead of this machine's.";
    ClockWrong, "clock-wrong", "The cluster's clock is three days ahead of this machine's, so that its certificate is not valid yet.";
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

/// What a fault can be about, where the scenario's `on` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing in particular.
    Nothing,
    /// An instance type.
    InstanceType,
    /// A zone.
    Zone,
    /// An image, by its short name.
    Image,
    /// Nodes: one by name, or those of a zone or an instance type.
    Node,
    /// A catalog.
    Catalog,
    /// A package.
    Package,
    /// A namespace.
    Namespace,
}

impl Target {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Nothing => "nothing in particular",
            Self::InstanceType => "an instance type",
            Self::Zone => "a zone",
            Self::Image => "an image",
            Self::Node => "a node, a zone or an instance type",
            Self::Catalog => "a catalog",
            Self::Package => "a package",
            Self::Namespace => "a namespace",
        }
    }
}

impl Fault {
    /// What `on` names for this fault.
    pub fn target(self) -> Target {
        match self {
            Self::QuotaExhausted => Target::InstanceType,
            Self::ZoneOutOfStock | Self::TypeNotOffered => Target::Zone,
            Self::ImagePullFailure => Target::Image,
            Self::DriverCrashLoop | Self::NoGpuLabel | Self::NodeNotReady | Self::GpuFaulty | Self::ValidatorFailed => {
                Target::Node
            }
            Self::CatalogNotReady => Target::Catalog,
            Self::PackageMissing | Self::ResolutionFailed | Self::CsvFailed => Target::Package,
            Self::SecondOperatorGroup => Target::Namespace,
            _ => Target::Nothing,
        }
    }

    /// Changes `scenario` so that this goes wrong in it.
    pub fn apply(self, scenario: &mut Scenario) {
        self.apply_on(scenario, None);
    }

    /// The same, for one object only.
    pub fn apply_on(self, scenario: &mut Scenario, on: Option<&str>) {
        let package = on.unwrap_or(GPU_OPERATOR).to_owned();
        match self {
            Self::QuotaExhausted => match on {
                Some(name) => {
                    scenario.instance_types.entry(name.to_owned()).and_modify(|kind| kind.quota = Some(0));
                }
                None => gpu_types(scenario, |kind, _| kind.quota = Some(0)),
            },
            Self::ZoneOutOfStock => gpu_types(scenario, |kind, first| {
                kind.zones.entry(on.unwrap_or(first).to_owned()).and_modify(|stock| *stock = 0);
            }),
            Self::TypeNotOffered => gpu_types(scenario, |kind, first| {
                kind.zones.remove(on.unwrap_or(first));
            }),
            Self::ImagePullFailure => {
                if let Some(image) = scenario.images.get_mut(on.unwrap_or("driver")) {
                    "manifest unknown: manifest unknown".clone_into(&mut image.trouble);
                }
            }
            Self::DriverCrashLoop => {
                "Error: Unable to find a match: kernel-headers-4.18.0-372.40.1.el8_6 kernel-devel-4.18.0-372.40.1.el8_6"
                    .clone_into(&mut scenario.quirks.driver_crash);
                only(scenario, "driverCrash", on);
            }
            Self::CatalogNotReady => {
                let catalog = match on {
                    Some(name) => scenario.catalogs.iter_mut().find(|catalog| catalog.name == name),
                    None => home(scenario, GPU_OPERATOR),
                };
                if let Some(catalog) = catalog {
                    "TRANSIENT_FAILURE".clone_into(&mut catalog.stuck_at);
                }
            }
            Self::PackageMissing => {
                if let Some(catalog) = home(scenario, &package) {
                    catalog.packages.retain(|found| found.name != package);
                }
            }
            Self::SecondOperatorGroup => {
                scenario.quirks.second_operator_group.push(on.unwrap_or("nvidia-gpu-operator").to_owned());
            }
            Self::ResolutionFailed => scenario.quirks.resolution_failure = package,
            Self::CsvFailed => scenario.quirks.csv_failure = package,
            Self::NoGpuLabel => {
                scenario.quirks.no_gpu_label = true;
                only(scenario, "noGpuLabel", on);
            }
            Self::NodeNotReady => {
                scenario.quirks.node_never_ready = true;
                only(scenario, "nodeNeverReady", on);
            }
            Self::GpuFaulty => {
                scenario.quirks.faulty_gpu = Some(0);
                only(scenario, "faultyGpu", on);
            }
            Self::ValidatorFailed => {
                "cuda-validation".clone_into(&mut scenario.quirks.validator_failure);
                only(scenario, "validatorFailure", on);
            }
            Self::StuckFinalizer => "clusterpolicies".clone_into(&mut scenario.quirks.stuck_finalizer),
            _ => scenario.api_faults.extend(self.of_the_api()),
        }
    }

    /// The fault of the API that this is, if it is one.
    fn of_the_api(self) -> Option<ApiFault> {
        use ApiFaultKind as Kind;
        // Every main job is still going on then.
        const MIDDLE: f64 = 200.0;
        let writes = || ["create", "update", "patch", "delete"].map(str::to_owned).to_vec();
        let new = ApiFault::new;
        Some(match self {
            Self::ApiRestart => new(Kind::Restart).at(MIDDLE).lasting(20.0),
            Self::ExpiredWatch => new(Kind::ExpiredWatch).at(MIDDLE),
            Self::Throttled => ApiFault { retry_after: Some(5), ..new(Kind::Throttled).lasting(60.0) },
            Self::ServerErrors => ApiFault { code: Some(503), rate: Some(0.1), ..new(Kind::ServerError) },
            Self::ConnectionResets => ApiFault { rate: Some(0.1), ..new(Kind::Reset) },
            Self::AnswersLost => ApiFault { every: Some(4), verbs: writes(), ..new(Kind::Unanswered) },
            Self::RequestsStall => ApiFault { rate: Some(0.02), ..new(Kind::Stalled) },
            Self::SlowLists => ApiFault { seconds: Some(20.0), verbs: vec!["list".to_owned()], ..new(Kind::Slow) },
            Self::HalfEvents => new(Kind::HalfEvent).lasting(300.0),
            Self::HistoryGone => new(Kind::Gone).at(MIDDLE).lasting(60.0),
            Self::CrashInWrite => {
                ApiFault { verbs: writes(), skip: 4, times: Some(1), ..new(Kind::Restart).lasting(20.0) }
            }
            Self::WriteConflicts => ApiFault { every: Some(3), ..new(Kind::Conflict) },
            Self::TokenExpires => new(Kind::ExpiredToken).at(MIDDLE),
            Self::TokenRenewed => ApiFault { renewable: true, ..new(Kind::ExpiredToken).at(MIDDLE) },
            Self::CertificateRotated => ApiFault { renewable: true, ..new(Kind::RotatedCertificate).at(MIDDLE) },
            Self::CertificateUntrusted => new(Kind::RotatedCertificate).at(MIDDLE),
            Self::ClockSkew => ApiFault { seconds: Some(420.0), ..new(Kind::ClockSkew) },
            Self::ClockWrong => ApiFault { seconds: Some(3.0 * 86_400.0), ..new(Kind::ClockSkew) },
            _ => return None,
        })
    }
}

/// Says which nodes a quirk is about; no `on` means all.
fn only(scenario: &mut Scenario, quirk: &str, on: Option<&str>) {
    match on {
        Some(on) => scenario.quirks.only.entry(quirk.to_owned()).or_default().push(on.to_owned()),
        None => {
            scenario.quirks.only.remove(quirk);
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

/// The catalog that offers a package.
fn home<'a>(scenario: &'a mut Scenario, name: &str) -> Option<&'a mut super::Catalog> {
    scenario.catalogs.iter_mut().find(|catalog| catalog.packages.iter().any(|package| package.name == name))
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
            assert_eq!(serde_json::to_value(fault).unwrap(), fault.name());
        }
        let about = |on: &str| {
            let mut scenario = Scenario::embedded("default").unwrap();
            Fault::DriverCrashLoop.apply_on(&mut scenario, Some(on));
            scenario.quirks
        };
        assert!(about("us-test-1a").concerns("driverCrash", ["n", "us-test-1a", "t"]));
        assert!(!about("us-test-1a").concerns("driverCrash", ["n", "us-test-1b", "t"]));
        assert!(about("us-test-1a").concerns("noGpuLabel", ["n", "us-test-1b", "t"]));
        let error = "nonsense".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("quota-exhausted"), "{error}");
    }
}
