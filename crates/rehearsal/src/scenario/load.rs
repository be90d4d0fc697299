//! Reading scenarios: the embedded ones by name, others from text, both laid over the default scenario.

use serde_json::Value;

use super::yaml::{self, Document, Lines, Path, Problem};
use super::{Fault, PlannedFault, SCHEMA, Scenario, ScenarioError, check};

/// Scenarios that come with the product, by name.
const EMBEDDED: &[(&str, &str)] = &[
    ("default", include_str!("../../../../config/scenarios/default.yaml")),
    ("gpu-node", include_str!("../../../../config/scenarios/gpu-node.yaml")),
    ("azure", include_str!("../../../../config/scenarios/azure.yaml")),
    ("no-machine-api", include_str!("../../../../config/scenarios/no-machine-api.yaml")),
];

/// What a file does not take over from the default scenario: it says something about that file itself.
const OWN: [&str; 6] = ["schema", "name", "description", "seed", "faults", "expect"];

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
        let wrong = |problem| ScenarioError::wrong(file, problem);
        let Document { value, lines } = yaml::read(text).map_err(wrong)?;
        version(file, &value, &lines)?;
        let mut whole = yaml::read(EMBEDDED[0].1).map_err(wrong)?.value;
        if let Some(map) = whole.as_object_mut() {
            map.retain(|key, _| !OWN.contains(&key.as_str()));
        }
        if !value.is_object() {
            let text = "a scenario is a mapping, such as `name: mine`".to_owned();
            return Err(wrong(Problem { line: Some(1), path: Path::default(), text }));
        }
        merge(&mut whole, value);
        let mut scenario = typed(whole, &lines).map_err(wrong)?;
        check::check(&scenario).map_err(|objection| wrong(objection.on(&lines)))?;
        for fault in scenario.faults.clone() {
            if fault.is_from_start() {
                fault.apply(&mut scenario);
            }
        }
        Ok(scenario)
    }

    /// The scenario with further faults.
    #[must_use]
    pub fn with_faults(mut self, faults: &[Fault]) -> Self {
        for fault in faults {
            fault.apply(&mut self);
            self.faults.push(PlannedFault::new(*fault));
        }
        self
    }
}

/// Refuses a file that a later program was meant for, before its unknown fields are complained about.
fn version(file: &str, value: &Value, lines: &Lines) -> Result<(), ScenarioError> {
    let Some(version) = value.get("schema").filter(|version| !version.is_null()) else { return Ok(()) };
    match version.as_u64() {
        Some(version) if version > u64::from(SCHEMA) => Err(ScenarioError::Newer { file: file.to_owned(), version }),
        Some(1..) => Ok(()),
        _ => {
            let path = Path::default().key("schema");
            let text = format!("`{version}` is no version; the newest is {SCHEMA}");
            Err(ScenarioError::wrong(file, Problem { line: lines.near(&path), path, text }))
        }
    }
}

/// Lays `own` over `base`. A null takes a key away; where there is none it stays, so that a slip in its name is seen.
fn merge(base: &mut Value, own: Value) {
    match (base, own) {
        (Value::Object(base), Value::Object(own)) => {
            for (key, value) in own {
                if value.is_null() && base.contains_key(&key) {
                    base.remove(&key);
                } else {
                    match base.get_mut(&key) {
                        Some(present) => merge(present, value),
                        None => {
                            base.insert(key, value);
                        }
                    }
                }
            }
        }
        (base, own) => *base = own,
    }
}

/// The value as a scenario. A null that stands for nothing in particular is as good as no field.
fn typed(mut whole: Value, lines: &Lines) -> Result<Scenario, Problem> {
    loop {
        let error = match serde_path_to_error::deserialize::<_, Scenario>(&whole) {
            Ok(scenario) => return Ok(scenario),
            Err(error) => error,
        };
        let path = Path::from(error.path());
        let mut text = error.into_inner().to_string();
        let unknown = text.starts_with("unknown field");
        let null = path.find(&whole).is_some_and(Value::is_null);
        if null && !unknown && path.take_out(&mut whole) {
            continue;
        }
        if text.ends_with("expected a string") {
            text.push_str("; quote it");
        }
        return Err(Problem { line: lines.near(&path), path, text });
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
        let read = |text: &str| Scenario::from_yaml("mine.yaml", text).unwrap();
        let scenario = read("schema: 1\ntimings: {nodeBoot: 60}\n");
        assert_eq!(scenario.timings.node_boot, super::super::Dist::Fixed(60.0));
        assert_eq!(scenario.infra, "demo-x7k2p");
        assert_eq!((scenario.name.as_str(), scenario.expect), ("", None));
        assert_eq!(read("").infra, "demo-x7k2p");
        let spread = super::super::Spread { min: 222.0, mode: 300.0, max: 310.0 };
        let read_spread = read("timings: {nodeBoot: {mode: 300}}").timings.node_boot;
        assert_eq!(read_spread, super::super::Dist::Spread(spread));
        let without = read(
            "instanceTypes:\n  p2.xlarge: null\n  mine: {cpu: 1, memoryMiB: 1, quota: null, zones: {z: 1}}\nquirks: {driverCrash: null}\n",
        );
        assert!(!without.instance_types.contains_key("p2.xlarge"));
        assert_eq!(without.instance_types["mine"].quota, None);
    }

    /// What a file's error says, after the file's name.
    fn wrong(text: &str) -> String {
        let error = Scenario::from_yaml("mine.yaml", text).unwrap_err().to_string();
        error.strip_prefix("`mine.yaml`: ").expect("the file is named").to_owned()
    }

    #[test]
    fn every_error_names_line_and_field() {
        for (text, begin, part) in [
            (
                "name: mine\ntimings:\n  nodeBoots: 3\n",
                "line 3: field `timings.nodeBoots`: unknown field",
                "`nodeBoot`",
            ),
            ("name: mine\ntiming: null\n", "line 2: field `timing`: unknown field", "`timings`"),
            (
                "instanceTypes:\n  p2.xlarge: null\n  x: {gpu: 1}\n",
                "line 3: field `instanceTypes.x.gpu`: unknown field",
                "`gpus`",
            ),
            ("name: [a]\n", "line 1: field `name`: invalid type: sequence", "expected a string"),
            ("openshift: 4.11\n", "line 1: field `openshift`: invalid type: floating point `4.11`", "quote it"),
            ("\nplatform: awss\n", "line 2: field `platform`: unknown variant `awss`", "`azure`"),
            (
                "machineSets:\n- name: a\n  replicas: -1\n",
                "line 3: field `machineSets[0].replicas`: invalid value",
                "-1",
            ),
            (
                "timings:\n  nodeBoot: soon\n",
                "line 2: field `timings.nodeBoot`: invalid type: string \"soon\"",
                "seconds, or",
            ),
            ("timings:\n  nodeBoot:\n    most: 4\n", "line 3: field `timings.nodeBoot.most`: unknown field", "`mode`"),
            ("faults: [nonsense]\n", "line 1: field `faults[0]`: unknown variant `nonsense`", "`quota-exhausted`"),
            ("faults:\n- {name: csv-failed, whn: x}\n", "line 2: field `faults[0].whn`: unknown field", "`when`"),
            ("expect:\n  verdict: mine\n", "line 2: field `expect.verdict`: unknown variant", "`product`"),
            ("expect: {exitCode: 256}\n", "line 1: field `expect.exitCode`: invalid value: integer `256`", "u8"),
            (
                "timings: {nodeBoot: null, nodeReady: null, nodeBoots: null}\n",
                "line 1: field `timings.nodeBoots`",
                "unknown",
            ),
            ("a: 1\na: 2\n", "line 2: field `a`: the key `a` is given twice", ""),
            ("a: 1\nb: [\n", "line 2: unclosed bracket", ""),
            ("- a\n", "line 1: a scenario is a mapping", ""),
            ("just words\n", "line 1: a scenario is a mapping", ""),
            ("schema: one\n", "line 1: field `schema`: `\"one\"` is no version", ""),
            ("schema: 0\n", "line 1: field `schema`: `0` is no version", ""),
        ] {
            let text = wrong(text);
            assert!(text.starts_with(begin) && text.contains(part), "{text}\nwanted {begin} … {part}");
        }
    }

    #[test]
    fn what_is_wrong_only_together_with_the_default_has_its_line_too() {
        let order = wrong("name: mine\ntimings:\n  nodeBoot: {min: 400}\n");
        assert!(
            order.starts_with("line 3: field `timings.nodeBoot`: ") && order.contains("min 400, mode 265"),
            "{order}"
        );
        let gone = wrong("name: mine\ninstanceTypes:\n  m5.xlarge: null\n");
        assert!(gone.contains("field `machineSets[0].instanceType`") && gone.contains("m5.xlarge"), "{gone}");
    }

    #[test]
    fn a_file_of_a_later_program_is_refused_by_its_version() {
        let later = wrong("schema: 9\nwhatever: {is: new}\n");
        assert_eq!(
            later,
            format!("it is written for version 9 of scenario files, and {SCHEMA} is the newest known here")
        );
    }
}
