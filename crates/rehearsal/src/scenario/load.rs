//! Reading scenarios: the embedded ones by name, others from text, both laid over the default scenario.

use serde_json::Value;
use thiserror::Error;

use super::{Fault, Scenario};

/// Scenarios that come with the product, by name.
const EMBEDDED: &[(&str, &str)] = &[
    ("default", include_str!("../../../../config/scenarios/default.yaml")),
    ("gpu-node", include_str!("../../../../config/scenarios/gpu-node.yaml")),
    ("azure", include_str!("../../../../config/scenarios/azure.yaml")),
    ("no-machine-api", include_str!("../../../../config/scenarios/no-machine-api.yaml")),
];

/// Why a scenario cannot be used.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// No scenario of that name comes with the product.
    #[error("no scenario is called `{name}`; known are {known}")]
    UnknownScenario {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No fault of that name exists.
    #[error("no fault is called `{name}`; known are {known}")]
    UnknownFault {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The text is not a scenario. The source names the field, and line and column.
    #[error("`{file}` is not a scenario")]
    Malformed {
        /// The file or the embedded scenario's name.
        file: String,
        /// What the parser says.
        #[source]
        source: serde_yaml::Error,
    },
    /// A field has a value that makes no sense.
    #[error("`{file}`: field `{field}`: {reason}")]
    Senseless {
        /// The file or the embedded scenario's name.
        file: String,
        /// Path of the field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Scenario {
    /// Names and descriptions of the scenarios that come with the product.
    pub fn embedded_names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// The scenario of that name that comes with the product.
    pub fn embedded(name: &str) -> Result<Self, ScenarioError> {
        let Some((_, text)) = EMBEDDED.iter().find(|(known, _)| *known == name) else {
            return Err(ScenarioError::UnknownScenario {
                name: name.to_owned(),
                known: Self::embedded_names().collect::<Vec<_>>().join(", "),
            });
        };
        Self::from_yaml(name, text)
    }

    /// Reads a scenario. What `text` leaves out is as in the default scenario: mappings are merged, lists replace
    /// lists, and `null` takes a key away. `file` is only named in errors.
    pub fn from_yaml(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let malformed = |source| ScenarioError::Malformed { file: file.to_owned(), source };
        // The text alone first: only then do errors have lines.
        let own: Value = serde_yaml::from_str(text).map_err(malformed)?;
        let own = if own.is_null() { Value::Object(serde_json::Map::new()) } else { own };
        if !own.is_null() && !contains_null(&own) {
            serde_yaml::from_str::<Option<Self>>(text).map_err(malformed)?;
        }
        let mut whole: Value = serde_yaml::from_str(EMBEDDED[0].1).map_err(malformed)?;
        json_patch::merge(&mut whole, &own);
        let mut scenario: Self = serde_json::from_value(whole).map_err(|source| ScenarioError::Senseless {
            file: file.to_owned(),
            field: "(merged with the default scenario)".to_owned(),
            reason: source.to_string(),
        })?;
        for name in scenario.faults.clone() {
            name.parse::<Fault>()?.apply(&mut scenario);
        }
        scenario.validate(file)?;
        Ok(scenario)
    }

    /// The scenario with further faults.
    #[must_use]
    pub fn with_faults(mut self, faults: &[Fault]) -> Self {
        for fault in faults {
            fault.apply(&mut self);
            self.faults.push(fault.name().to_owned());
        }
        self
    }

    /// Checks what types cannot say: distributions in order, references that lead somewhere.
    pub(crate) fn validate(&self, file: &str) -> Result<(), ScenarioError> {
        let senseless =
            |field: String, reason: String| ScenarioError::Senseless { file: file.to_owned(), field, reason };
        for (name, dist) in self.timings.named() {
            if !dist.is_valid() {
                return Err(senseless(
                    format!("timings.{name}"),
                    "wants 0 <= min <= mode <= max, all finite".to_owned(),
                ));
            }
        }
        for (n, set) in self.machine_sets.iter().enumerate() {
            if !self.instance_types.contains_key(&set.instance_type) {
                return Err(senseless(
                    format!("machineSets[{n}].instanceType"),
                    format!("`{}` is not among instanceTypes", set.instance_type),
                ));
            }
        }
        for (n, node) in self.nodes.iter().enumerate() {
            if !self.instance_types.contains_key(&node.instance_type) {
                return Err(senseless(
                    format!("nodes[{n}].instanceType"),
                    format!("`{}` is not among instanceTypes", node.instance_type),
                ));
            }
        }
        for package in self.catalogs.iter().flat_map(|catalog| &catalog.packages) {
            for csv in package.channels.values().flatten() {
                if !package.bundles.iter().any(|bundle| &bundle.csv == csv) {
                    return Err(senseless(
                        format!("catalogs: package {}: channels", package.name),
                        format!("`{csv}` is not among its bundles"),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn contains_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(contains_null),
        Value::Object(map) => map.values().any(contains_null),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_embedded_scenarios_are_read_and_named() {
        for name in Scenario::embedded_names() {
            let scenario = Scenario::embedded(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(!scenario.description.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_overlay_changes_only_what_it_says() {
        let scenario = Scenario::from_yaml("mine.yaml", "name: mine\ntimings: {nodeBoot: 60}\n").unwrap();
        assert_eq!(scenario.timings.node_boot, super::super::Dist::Fixed(60.0));
        assert_eq!(scenario.infra, "demo-x7k2p");
        assert_eq!(Scenario::from_yaml("empty.yaml", "").unwrap().infra, "demo-x7k2p");
    }

    #[test]
    fn err_names_file_field_and_line() {
        let chain = |text: &str| {
            let error = Scenario::from_yaml("mine.yaml", text).unwrap_err();
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            format!("{error}: {source}")
        };
        let unknown = chain("name: mine\ntimings:\n  nodeBoots: 3\n");
        assert!(
            unknown.contains("mine.yaml") && unknown.contains("nodeBoots") && unknown.contains("line 3"),
            "{unknown}"
        );
        let order = chain("timings: {nodeBoot: {min: 3, mode: 2, max: 1}}");
        assert!(order.contains("timings.nodeBoot"), "{order}");
        let absent = chain("machineSets: [{name: a, zone: z, instanceType: x9.huge}]");
        assert!(absent.contains("machineSets[0].instanceType") && absent.contains("x9.huge"), "{absent}");
        assert!(chain("faults: [nonsense]").contains("no fault is called `nonsense`"));
    }
}
