//! Names of verbs and flows, as directories and test files carry them.

use std::fmt;

/// A verb by its group and command, spelled as in an artifacts directory: `gpu_operator`, `deploy_from_operatorhub`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerbName {
    /// `gpu_operator`.
    pub group: String,
    /// `deploy_from_operatorhub`.
    pub command: String,
}

impl VerbName {
    /// Dashes become underscores, so that both spellings of a verb give the same directory.
    pub fn new(group: &str, command: &str) -> Self {
        let spell = |text: &str| text.replace('-', "_");
        Self { group: spell(group), command: spell(command) }
    }

    /// `gpu_operator__deploy_from_operatorhub`.
    pub(super) fn directory(&self) -> String {
        format!("{}__{}", file_safe(&self.group), file_safe(&self.command))
    }

    /// `gpu-operator-deploy-from-operatorhub`: one word without underscores, which the strictest reader of JUnit file
    /// names takes for `junit_<word>.xml`.
    pub(super) fn word(&self) -> String {
        file_safe(&format!("{}-{}", self.group, self.command)).replace('_', "-")
    }
}

impl fmt::Display for VerbName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.group, self.command)
    }
}

/// The text as one component of a path that every file system and artifact store takes.
pub(super) fn file_safe(text: &str) -> String {
    let mut name: String =
        text.chars().map(|c| if c.is_alphanumeric() || "-_.,=+@".contains(c) { c } else { '_' }).collect();
    if name.trim_matches('.').is_empty() {
        "_".clone_into(&mut name);
    }
    name.truncate(super::text::start(&name, 200).len());
    name
}
