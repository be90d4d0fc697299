//! Where each platform keeps a machine's size and zone.

use serde_json::Value;

use super::MachineCause;
use crate::Object;

const PROVIDER: &str = "/spec/template/spec/providerSpec/value";
const MACHINE_PROVIDER: &str = "/spec/providerSpec/value";

/// Fields of a platform's provider configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeField {
    /// The field with the instance type.
    pub size: &'static str,
    /// Pointer to the zone.
    pub zone: &'static str,
}

/// The fields for `providerSpec.value.kind`, or a refusal that names the kind.
pub fn size_field(kind: &str) -> Result<SizeField, MachineCause> {
    let field = |size, zone| Ok(SizeField { size, zone });
    match kind {
        "AWSMachineProviderConfig" => field("instanceType", "/placement/availabilityZone"),
        "AzureMachineProviderSpec" => field("vmSize", "/zone"),
        "GCPMachineProviderSpec" => field("machineType", "/zone"),
        "OpenstackProviderSpec" => field("flavor", "/availabilityZone"),
        "IBMCloudMachineProviderSpec" => field("profile", "/zone"),
        "AlibabaCloudMachineProviderConfig" => field("instanceType", "/zoneId"),
        // These have CPUs and memory, or nothing: vSphere, Nutanix, KubeVirt, oVirt, libvirt, PowerVS, bare metal.
        _ => Err(MachineCause::NoSizeField { kind: if kind.is_empty() { "an unnamed kind" } else { kind }.to_owned() }),
    }
}

fn provider(object: &Object) -> Option<&Value> {
    // A machine set's template, or a Machine's own.
    object.at(PROVIDER).or_else(|| object.at(MACHINE_PROVIDER))
}

/// The platform's fields for a machine set or Machine.
pub(super) fn field_of(object: &Object) -> Result<SizeField, MachineCause> {
    let kind = provider(object).and_then(|value| value["kind"].as_str());
    size_field(kind.unwrap_or_default())
}

/// The instance type of a machine set or Machine, as it is written.
pub fn instance_type(object: &Object) -> Option<&str> {
    let field = field_of(object).ok()?;
    provider(object)?.get(field.size)?.as_str()
}

/// The zone of a machine set or Machine.
pub fn zone(object: &Object) -> Option<&str> {
    let field = field_of(object).ok()?;
    provider(object)?.pointer(field.zone)?.as_str().filter(|zone| !zone.is_empty())
}
