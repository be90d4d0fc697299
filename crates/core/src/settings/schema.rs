//! Which settings there are: made from the options of the program's commands.

use std::collections::BTreeMap;

/// One setting, as options and files name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    /// Whether it takes several values.
    pub list: bool,
    /// Variables that set it besides its own `TBX_…`, the first one that is set wins.
    pub env: Vec<String>,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// The words that are allowed, when only some are.
    pub allowed: Vec<String>,
    /// What it is for, in one line.
    pub help: String,
}

/// Settings and groups of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Settings at this level.
    pub leaves: BTreeMap<String, Leaf>,
    /// Groups below it: nouns, their verbs.
    pub groups: BTreeMap<String, Schema>,
    /// Any further name is a setting of this kind: `deadlines`.
    pub free: Option<Leaf>,
    /// Groups that are not known belong to other programs over the same file.
    pub open: bool,
}

impl Schema {
    /// The names that are allowed at this level.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.leaves.keys().chain(self.groups.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Every setting with its whole key.
    pub fn all(&self) -> Vec<(String, &Leaf)> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect<'a>(&'a self, prefix: &str, found: &mut Vec<(String, &'a Leaf)>) {
        for (name, leaf) in &self.leaves {
            found.push((format!("{prefix}{name}"), leaf));
        }
        for (name, group) in &self.groups {
            group.collect(&format!("{prefix}{name}."), found);
        }
    }
}

/// The variable that sets a key: `TBX_CLUSTER_SCALE_BASE_MACHINESET`.
pub(super) fn variable(key: &str) -> String {
    format!("TBX_{}", key.replace(['.', '-'], "_").to_uppercase())
}
