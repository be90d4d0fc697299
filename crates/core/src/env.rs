//! The environment as a value: read once by the command line's `main`, handed to whoever needs it.

use std::collections::BTreeMap;

/// Environment variables. Empty ones count as unset, as scripts that write `X= tbx …` mean it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvMap(BTreeMap<String, String>);

impl EnvMap {
    /// From pairs; later ones win.
    pub fn new<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// The value, unless it is unset or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of several names that is set, with its value.
    pub fn first<'a>(&self, names: &[&'a str]) -> Option<(&'a str, &str)> {
        names.iter().find_map(|name| self.get(name).map(|value| (*name, value)))
    }

    /// All of it, for what has to look up variables by itself.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.0.clone()
    }

    /// All variables whose name starts with `prefix`, the prefix left out.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.0.iter().filter_map(move |(name, value)| {
            let rest = name.strip_prefix(prefix)?;
            (!value.is_empty()).then_some((rest, value.as_str()))
        })
    }
}

/// Names only: values may be secrets.
impl std::fmt::Debug for EnvMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_unset_and_values_are_never_printed() {
        let env = EnvMap::new([("A", ""), ("B", "secret"), ("TBX_X", "1")]);
        assert_eq!(env.get("A"), None);
        assert_eq!(env.first(&["A", "B"]), Some(("B", "secret")));
        assert_eq!(env.with_prefix("TBX_").collect::<Vec<_>>(), [("X", "1")]);
        assert!(!format!("{env:?}").contains("secret"));
    }
}
