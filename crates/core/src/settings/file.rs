//! Configuration files: found, read and checked against what the program knows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Leaf, Schema};
use crate::EnvMap;
use crate::config::{ConfigError, read_file, with_seed};

/// The defaults that come with the program.
const DEFAULTS: &str = include_str!("../../../../config/defaults.yaml");

/// A file's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// The file as it is shown.
    pub name: String,
    /// Values by key.
    pub values: BTreeMap<String, Vec<String>>,
    text: String,
}

/// The settings that come with the program, as far as `schema` knows them.
pub fn defaults(schema: &Schema) -> Result<ConfigFile, ConfigError> {
    ConfigFile::parse("defaults.yaml", DEFAULTS, schema)
}

impl ConfigFile {
    /// The file to use: the one asked for, else `$TBX_CONFIG`, `./tbx.yaml`, `$XDG_CONFIG_HOME/tbx/config.yaml`. One that
    /// was named must exist.
    pub fn find(asked: Option<&Path>, env: &EnvMap, here: &Path) -> Option<PathBuf> {
        if let Some(asked) = asked {
            return Some(asked.to_owned());
        }
        if let Some(named) = env.get("TBX_CONFIG") {
            return Some(PathBuf::from(named));
        }
        let home = match env.first(&["XDG_CONFIG_HOME", "HOME"]) {
            Some(("HOME", home)) => Some(Path::new(home).join(".config")),
            Some((_, config)) => Some(PathBuf::from(config)),
            None => None,
        };
        if here.join("tbx.yaml").is_file() {
            return Some(PathBuf::from("./tbx.yaml"));
        }
        home.map(|home| home.join("tbx/config.yaml")).filter(|file| file.is_file())
    }

    /// Reads a file.
    pub fn read(path: &Path, schema: &Schema) -> Result<Self, ConfigError> {
        let text = read_file(path, "configuration file")?;
        Self::parse(&path.display().to_string(), &text, schema)
    }

    /// Reads text; `name` is the file's, for errors.
    pub fn parse(name: &str, text: &str, schema: &Schema) -> Result<Self, ConfigError> {
        let mut file = Self { name: name.to_owned(), values: BTreeMap::new(), text: text.to_owned() };
        if !is_empty(text) {
            let group = Group { schema, prefix: String::new(), found: &mut file.values, trip: None };
            with_seed(name, text, group)?;
        }
        Ok(file)
    }

    /// The line a key is on.
    pub fn line_of(&self, key: &str, schema: &Schema) -> Option<usize> {
        let group = Group { schema, prefix: String::new(), found: &mut BTreeMap::new(), trip: Some(key) };
        with_seed(&self.name, &self.text, group).err()?.line
    }
}

/// Nothing but comments and blank lines.
fn is_empty(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "---")
}

struct Group<'a> {
    schema: &'a Schema,
    prefix: String,
    found: &'a mut BTreeMap<String, Vec<String>>,
    /// Fail at this key, to learn its line.
    trip: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Group<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Group<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping of settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(given) = access.next_key::<String>()? {
            let name = given.replace('_', "-");
            let key = format!("{}{name}", self.prefix);
            if let Some(leaf) = self.schema.leaves.get(&name).or(self.schema.free.as_ref()) {
                let trip = self.trip == Some(key.as_str());
                let values = access.next_value_seed(Values { leaf, trip })?;
                if !values.is_empty() && self.found.insert(key, values).is_some() {
                    return Err(A::Error::custom(format!("`{given}` is given twice")));
                }
            } else if let Some(schema) = self.schema.groups.get(&name) {
                access.next_value_seed(Group {
                    schema,
                    prefix: format!("{key}."),
                    found: &mut *self.found,
                    trip: self.trip,
                })?;
            } else if self.schema.open {
                access.next_value::<IgnoredAny>()?;
            } else {
                return Err(A::Error::custom(unknown(&given, self.schema)));
            }
        }
        Ok(())
    }
}

fn unknown(name: &str, schema: &Schema) -> String {
    let names = schema.names();
    format!(
        "unknown setting `{name}`, allowed are {}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    )
}

/// The value or values of a setting; `null` unsets it.
struct Values<'a> {
    leaf: &'a Leaf,
    trip: bool,
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = Vec<String>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        if self.trip {
            return deserializer.deserialize_str(Trip);
        }
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.leaf.list { "a list of values" } else { "a plain value" })
    }
    fn visit_none<E: Error>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }
    fn visit_unit<E: Error>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        // As text, so that 4.10 stays 4.10.
        if self.leaf.list { deserializer.deserialize_seq(self) } else { deserializer.deserialize_str(self) }
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Vec<String>, E> {
        let allowed = &self.leaf.allowed;
        if !allowed.is_empty() && !allowed.iter().any(|word| word == value) {
            return Err(E::custom(format!("`{value}` is not allowed, allowed are {}", allowed.join(", "))));
        }
        Ok(vec![value.to_owned()])
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element::<String>()? {
            values.push(value);
        }
        Ok(values)
    }
}

/// Fails wherever it is: a list by its type, text by this.
struct Trip;

impl Visitor<'_> for Trip {
    type Value = Vec<String>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<Vec<String>, E> {
        Err(E::custom("here"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let leaf = Leaf::default;
        let verb = Schema { leaves: [("channel".to_owned(), leaf())].into(), ..Schema::default() };
        let noun = Schema { groups: [("deploy".to_owned(), verb)].into(), ..Schema::default() };
        let color = Leaf { allowed: vec!["auto".into(), "never".into()], ..leaf() };
        let list = Leaf { list: true, ..leaf() };
        Schema {
            leaves: [("artifact-dir".to_owned(), leaf()), ("color".to_owned(), color), ("fault".to_owned(), list)]
                .into(),
            groups: [
                ("nfd".to_owned(), noun),
                ("deadlines".to_owned(), Schema { free: Some(leaf()), ..Schema::default() }),
            ]
            .into(),
            ..Schema::default()
        }
    }

    fn wrong(text: &str) -> String {
        ConfigFile::parse("tbx.yaml", text, &schema()).unwrap_err().to_string()
    }

    #[test]
    fn values_are_text_and_underscores_are_accepted() {
        let text = "artifact_dir: /x\nnfd:\n  deploy: {channel: 4.10}\ndeadlines: {csv: 20m}\nfault: [a, b]\ncolor:\n";
        let file = ConfigFile::parse("tbx.yaml", text, &schema()).unwrap();
        let values: Vec<(&str, String)> =
            file.values.iter().map(|(key, values)| (key.as_str(), values.join("+"))).collect();
        assert_eq!(
            values,
            [
                ("artifact-dir", "/x".to_owned()),
                ("deadlines.csv", "20m".to_owned()),
                ("fault", "a+b".to_owned()),
                ("nfd.deploy.channel", "4.10".to_owned()),
            ]
        );
        assert_eq!(file.line_of("nfd.deploy.channel", &schema()), Some(3));
        assert_eq!(file.line_of("fault", &schema()), Some(5));
    }

    #[test]
    fn errors_name_line_field_and_what_is_allowed() {
        assert_eq!(
            wrong("artifact-dir: /x\nnfd:\n  deploy:\n    chanel: stable\n"),
            "tbx.yaml: line 4, `nfd.deploy`: unknown setting `chanel`, allowed are channel"
        );
        assert_eq!(
            wrong("colour: auto\n"),
            "tbx.yaml: line 1: unknown setting `colour`, allowed are artifact-dir, color, deadlines, fault, nfd"
        );
        assert_eq!(wrong("color: pink\n"), "tbx.yaml: line 1, `color`: `pink` is not allowed, allowed are auto, never");
        assert!(wrong("nfd: 3\n").contains("line 1"), "{}", wrong("nfd: 3\n"));
        assert!(wrong("fault: a\n").contains("a list of values"));
        assert!(wrong("- a\n").contains("a mapping of settings"));
        assert!(wrong("artifact-dir: {a: b}\n").contains("a plain value"));
    }

    #[test]
    fn a_file_of_comments_is_empty_and_other_programs_groups_are_ignored() {
        assert_eq!(ConfigFile::parse("x", "# a\n\n---\n", &schema()).unwrap().values.len(), 0);
        let open = Schema { open: true, ..schema() };
        assert_eq!(ConfigFile::parse("x", "fluence: {a: {b: 1}}\n", &open).unwrap().values.len(), 0);
    }

    #[test]
    fn the_file_that_was_named_wins() {
        let env = EnvMap::new([("TBX_CONFIG", "/e.yaml")]);
        let here = Path::new("/nowhere");
        assert_eq!(ConfigFile::find(Some(Path::new("/f.yaml")), &env, here), Some(PathBuf::from("/f.yaml")));
        assert_eq!(ConfigFile::find(None, &env, here), Some(PathBuf::from("/e.yaml")));
        assert_eq!(ConfigFile::find(None, &EnvMap::default(), here), None);
    }
}
