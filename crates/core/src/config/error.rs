//! Why a file cannot be used: which file, where in it, what is wrong and what is allowed.

use thiserror::Error;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Why};

/// A file that cannot be used as configuration, manifest or template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.whole())]
pub struct ConfigError {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1, when known.
    pub line: Option<usize>,
    /// Path of the field, `nfd.deploy.channel`; empty when it is about the whole file.
    pub field: String,
    /// What is wrong, in words, with the value.
    pub problem: String,
    /// What to do about it; empty when the problem says it.
    pub help: String,
}

impl ConfigError {
    /// About a whole file.
    pub fn file(file: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, field: String::new(), problem: problem.into(), help: String::new() }
    }

    /// About one field.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>, line: Option<usize>) -> Self {
        self.field = field.into();
        self.line = line.or(self.line);
        self
    }

    /// Says what is allowed.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    fn place(&self) -> String {
        match (self.line, self.field.as_str()) {
            (None, "") => String::new(),
            (Some(line), "") => format!("line {line}: "),
            (None, field) => format!("`{field}`: "),
            (Some(line), field) => format!("line {line}, `{field}`: "),
        }
    }

    fn whole(&self) -> String {
        format!("{}: {}{}", self.file, self.place(), self.problem)
    }
}

struct Wrong<'a>(&'a ConfigError);

impl Cause for Wrong<'_> {
    fn code(&self) -> &'static str {
        "wrong-file"
    }
    fn text(&self) -> String {
        format!("{}{}", self.0.place(), self.0.problem)
    }
    fn next(&self) -> String {
        if self.0.help.is_empty() { format!("correct {}", self.0.file) } else { self.0.help.clone() }
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Configuration
    }
}

impl From<ConfigError> for Why {
    fn from(error: ConfigError) -> Self {
        let kind = match error.file.as_bytes() {
            [b'$', ..] => "variable",
            [b'-', b'-', ..] => "flag",
            _ => "file",
        };
        Why::new(ObjectRef::thing(kind, error.file.clone()), &Wrong(&error))
    }
}
