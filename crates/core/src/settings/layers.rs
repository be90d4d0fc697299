//! Laying environment, file and defaults over each other. Flags come last, from the command line's parser.

use std::collections::BTreeMap;

use super::schema::variable;
use super::{ConfigFile, Origin, Schema, Setting};
use crate::EnvMap;
use crate::config::ConfigError;

/// What is set without looking at the command line.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The winning value of each key.
    pub settings: BTreeMap<String, Setting>,
    /// Variables that start with `TBX_` and set nothing: most likely misspelt.
    pub unknown: Vec<String>,
}

/// Variables of ours that are no settings.
const OTHER: &[&str] = &["CONFIG"];

impl Layers {
    /// Environment over file over defaults.
    pub fn new(
        schema: &Schema,
        env: &EnvMap,
        file: Option<&ConfigFile>,
        defaults: &ConfigFile,
    ) -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        let all = schema.all();
        let secret = |key: &str| all.iter().any(|(known, leaf)| known == key && leaf.secret);
        let files = [(Some(defaults), true), (file, false)];
        for (file, built_in) in files {
            let Some(file) = file else { continue };
            let origin = if built_in { Origin::Default } else { Origin::File(file.name.clone()) };
            for (key, values) in &file.values {
                layers.set(key, values.clone(), origin.clone(), secret(key));
            }
        }
        let mut known: Vec<String> = OTHER.iter().map(|name| format!("TBX_{name}")).collect();
        for (key, leaf) in &all {
            let own = variable(key);
            let names: Vec<&str> = std::iter::once(own.as_str()).chain(leaf.env.iter().map(String::as_str)).collect();
            if let Some((name, value)) = env.first(&names) {
                if !leaf.allowed.is_empty() && !leaf.allowed.iter().any(|word| word == value) {
                    let problem = format!("`{value}` is not allowed, allowed are {}", leaf.allowed.join(", "));
                    return Err(ConfigError::file(format!("${name}"), problem).help(format!("correct or unset {name}")));
                }
                let values = if leaf.list {
                    value.split(',').map(|part| part.trim().to_owned()).collect()
                } else {
                    vec![value.to_owned()]
                };
                layers.set(key, values, Origin::Env(name.to_owned()), leaf.secret);
            }
            known.push(own);
        }
        for (rest, value) in env.with_prefix("TBX_") {
            let name = format!("TBX_{rest}");
            if let Some(wait) = rest.strip_prefix("DEADLINE_").or(rest.strip_prefix("DEADLINES_")) {
                let key = format!("deadlines.{}", wait.to_lowercase().replace('_', "-"));
                layers.set(&key, vec![value.to_owned()], Origin::Env(name), false);
            } else if !known.contains(&name) {
                layers.unknown.push(name);
            }
        }
        layers.check_deadlines()?;
        Ok(layers)
    }

    fn set(&mut self, key: &str, values: Vec<String>, origin: Origin, secret: bool) {
        let setting = Setting { key: key.to_owned(), values, origin, secret };
        self.settings.insert(key.to_owned(), setting);
    }

    fn check_deadlines(&self) -> Result<(), ConfigError> {
        let deadlines = self.settings.values().filter(|setting| setting.key.starts_with("deadlines."));
        for setting in deadlines {
            let text = setting.values.first().map_or("", String::as_str);
            if let Err(problem) = toolbox_engine::plan::parse_duration(text) {
                return Err(ConfigError::file(setting.origin.to_string(), problem).at(&setting.key, None));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Leaf;

    fn schema() -> Schema {
        let artifact = Leaf { env: vec!["ARTIFACT_DIR".into(), "ARTIFACTS".into()], ..Leaf::default() };
        let token = Leaf { secret: true, ..Leaf::default() };
        Schema {
            leaves: [
                ("artifact-dir".to_owned(), artifact),
                ("grace".to_owned(), Leaf::default()),
                ("token".to_owned(), token),
            ]
            .into(),
            groups: [("deadlines".to_owned(), Schema { free: Some(Leaf::default()), ..Schema::default() })].into(),
            ..Schema::default()
        }
    }

    fn file(text: &str) -> ConfigFile {
        ConfigFile::parse("tbx.yaml", text, &schema()).unwrap()
    }

    #[test]
    fn environment_wins_over_file_and_file_over_default() {
        let env = EnvMap::new([
            ("ARTIFACTS", "/b"),
            ("ARTIFACT_DIR", "/a"),
            ("TBX_DEADLINE_CLUSTER_POLICY", "90s"),
            ("TBX_TOKEN", "hush"),
            ("TBX_GARCE", "1"),
        ]);
        let layers = Layers::new(
            &schema(),
            &env,
            Some(&file("grace: 20s\nartifact-dir: /f\n")),
            &file("grace: 15s\ndeadlines: {csv: 1m}\n"),
        )
        .unwrap();
        let shown: Vec<String> = layers.settings.values().map(|setting| format!("{setting:?}")).collect();
        assert_eq!(
            shown,
            [
                "artifact-dir=/a ($ARTIFACT_DIR)",
                "deadlines.cluster-policy=90s ($TBX_DEADLINE_CLUSTER_POLICY)",
                "deadlines.csv=1m (default)",
                "grace=20s (tbx.yaml)",
                "token=*** ($TBX_TOKEN)",
            ]
        );
        assert_eq!(layers.unknown, ["TBX_GARCE"]);
    }

    #[test]
    fn a_deadline_that_is_no_duration_is_refused_where_it_was_given() {
        let error =
            Layers::new(&schema(), &EnvMap::default(), Some(&file("deadlines: {csv: soon}\n")), &file("")).unwrap_err();
        assert!(error.to_string().starts_with("tbx.yaml: `deadlines.csv`: `soon` is no duration"), "{error}");
    }
}
