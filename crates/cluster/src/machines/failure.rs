//! What a Machine that cannot be made says about its cloud.

use super::{instance_type, zone};
use crate::Object;

/// What kind of refusal a cloud gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The account may have no more of it.
    Quota,
    /// The zone has none left at the moment.
    OutOfStock,
    /// The zone does not sell it.
    NotOffered,
    /// There is no such type.
    BadType,
    /// The cluster's credentials do not allow it.
    Credentials,
    /// Something else.
    Other,
}

impl FailureClass {
    /// Stable name.
    pub fn code(self) -> &'static str {
        match self {
            FailureClass::Quota => "quota-exhausted",
            FailureClass::OutOfStock => "out-of-stock",
            FailureClass::NotOffered => "type-not-offered",
            FailureClass::BadType => "unknown-instance-type",
            FailureClass::Credentials => "cloud-credentials",
            FailureClass::Other => "machine-failed",
        }
    }

    /// Whether another zone may have what this one has not.
    pub fn is_of_the_zone(self) -> bool {
        matches!(self, FailureClass::OutOfStock | FailureClass::NotOffered)
    }
}

/// A Machine's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFailure {
    /// What kind.
    pub class: FailureClass,
    /// The instance type.
    pub instance_type: String,
    /// The zone, if the platform has zones.
    pub zone: Option<String>,
    /// `errorReason`, or the condition's reason.
    pub reason: String,
    /// `errorMessage`, or the condition's message.
    pub message: String,
    /// Other base machine sets to try, and what was tried: filled in by whoever knows.
    pub other_bases: Vec<String>,
}

impl MachineFailure {
    pub(super) fn text(&self) -> String {
        let place = self.zone.as_deref().map_or_else(|| "the cloud".to_owned(), |zone| format!("zone {zone}"));
        let size = &self.instance_type;
        let what = match self.class {
            FailureClass::Quota => format!("the cloud account's quota allows no more {size}"),
            FailureClass::OutOfStock => format!("{place} has no {size} left at the moment"),
            FailureClass::NotOffered => format!("{place} does not offer {size}"),
            FailureClass::BadType => format!("the cloud knows no instance type `{size}`"),
            FailureClass::Credentials => "the cluster's cloud credentials do not allow it".to_owned(),
            FailureClass::Other => "the machine failed".to_owned(),
        };
        let said = match (self.reason.as_str(), self.message.as_str()) {
            ("", message) => message.to_owned(),
            (reason, "") => reason.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        };
        if said.is_empty() { what } else { format!("{what} ({said})") }
    }

    pub(super) fn next(&self) -> String {
        let bases = if self.other_bases.is_empty() {
            "choose another instance type".to_owned()
        } else {
            format!("try another base: --base-machineset {}", self.other_bases.join(" | "))
        };
        match self.class {
            FailureClass::Quota => {
                "free machines of that family or have the account's quota raised, then delete the Machine and run again".to_owned()
            }
            FailureClass::OutOfStock => format!("run again later, or {bases}"),
            FailureClass::NotOffered => bases,
            FailureClass::BadType => "check the spelling of the instance type; capitals count".to_owned(),
            FailureClass::Credentials => {
                "repair the Machine API's credentials secret in openshift-machine-api, then delete the Machine".to_owned()
            }
            FailureClass::Other => {
                "see the machine-api-controllers log in openshift-machine-api; a Failed Machine is never replaced by itself".to_owned()
            }
        }
    }
}

/// Why the Machine is Failed, which it will not leave by itself; `None` while it is not.
pub fn failure(machine: &Object) -> Option<MachineFailure> {
    let reason = machine.text("/status/errorReason").unwrap_or_default();
    let message = machine.text("/status/errorMessage").unwrap_or_default();
    let failed = machine.text("/status/phase") == Some("Failed");
    // The phase follows the error within moments; either is final.
    if !failed && reason.is_empty() {
        return None;
    }
    if reason.is_empty() && message.is_empty() {
        return Some(trouble(machine).unwrap_or_else(|| describe(machine, "", "")));
    }
    Some(describe(machine, reason, message))
}

/// What a Machine's conditions say against it while it is still being made.
pub fn trouble(machine: &Object) -> Option<MachineFailure> {
    let own = machine.list("/status/conditions").iter();
    let provider = machine.list("/status/providerStatus/conditions").iter();
    own.chain(provider)
        .filter(|condition| {
            let kind = condition["type"].as_str().unwrap_or_default();
            matches!(kind, "MachineCreation" | "MachineCreated" | "InstanceExists" | "MachineUpdate")
                && condition["status"] == "False"
        })
        .map(|condition| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default();
            describe(machine, text("reason"), text("message"))
        })
        .find(|failure| !failure.message.is_empty())
}

fn describe(machine: &Object, reason: &str, message: &str) -> MachineFailure {
    MachineFailure {
        class: classify(reason, message),
        instance_type: instance_type(machine).unwrap_or_default().to_owned(),
        zone: zone(machine).map(str::to_owned),
        reason: reason.to_owned(),
        message: message.to_owned(),
        other_bases: Vec::new(),
    }
}

/// What clouds write: AWS, Azure, Google, OpenStack, IBM and Alibaba. The first class that fits, in this order, since
/// messages about quota speak of capacity too.
const WORDS: [(FailureClass, &[&str]); 5] = [
    (
        FailureClass::Credentials,
        &[
            "unauthorizedoperation",
            "not authorized to perform",
            "authfailure",
            "authorizationfailed",
            "invalidclienttokenid",
            "expiredtoken",
            "accessdenied",
            "access denied",
            "permission denied",
            "invalid_grant",
            "credential",
        ],
    ),
    (FailureClass::Quota, &["quota", "limitexceeded", "vcpu limit", "limit exceeded", "instance count exceeded"]),
    (
        FailureClass::NotOffered,
        &[
            "is not supported in zone",
            "not supported in your requested availability zone",
            "not supported in zone",
            "skunotavailable",
            "is not available in zone",
            "not available in location",
            "does not exist in zone",
            "not offered in",
            "operationdenied.zonenotsupported",
        ],
    ),
    (
        FailureClass::OutOfStock,
        &[
            "insufficientinstancecapacity",
            "insufficient capacity",
            "do not have sufficient",
            "no capacity for",
            "allocationfailed",
            "zone_resource_pool_exhausted",
            "does not have enough resources",
            "stockout",
            "no valid host was found",
            "operationdenied.nostock",
            "out of stock",
            "out of capacity",
            "overconstrained",
        ],
    ),
    (
        FailureClass::BadType,
        &[
            "invalid value",
            "instance type",
            "instancetype",
            "machine type",
            "machinetype",
            "vmsize",
            "vm size",
            "flavor",
            "profile",
        ],
    ),
];

fn classify(reason: &str, message: &str) -> FailureClass {
    let said = format!("{reason} {message}").to_ascii_lowercase();
    let found = WORDS.iter().find(|(_, words)| words.iter().any(|word| said.contains(word))).map(|(class, _)| *class);
    match (found, reason) {
        // The Machine API's own word for a lack of something, whatever the message says of the type.
        (None | Some(FailureClass::BadType), "InsufficientResources") => FailureClass::OutOfStock,
        (Some(FailureClass::BadType), reason) if reason != "InvalidConfiguration" && !said.contains("invalid") => {
            FailureClass::Other
        }
        (found, _) => found.unwrap_or(FailureClass::Other),
    }
}
