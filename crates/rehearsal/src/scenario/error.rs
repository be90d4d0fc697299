//! Why a scenario cannot be used.

use thiserror::Error;

use super::SCHEMA;
use super::yaml::Problem;

/// Why a scenario cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
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
    /// The file is written for a later program.
    #[error("`{file}`: it is written for version {version} of scenario files, and {SCHEMA} is the newest known here")]
    Newer {
        /// The file or the embedded scenario's name.
        file: String,
        /// The version it names.
        version: u64,
    },
    /// Something in the file is wrong: a field that does not exist, a value that cannot be, a thing that is missing.
    #[error("`{file}`: {}{problem}", place(*.line, .field))]
    Wrong {
        /// The file or the embedded scenario's name.
        file: String,
        /// Line, from 1; none when the file does not have the field.
        line: Option<usize>,
        /// Path of the field; empty when it is about the whole file.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn place(line: Option<usize>, field: &str) -> String {
    let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let field = if field.is_empty() { String::new() } else { format!("field `{field}`: ") };
    line + &field
}

impl ScenarioError {
    pub(super) fn wrong(file: &str, problem: Problem) -> Self {
        Self::Wrong {
            file: file.to_owned(),
            line: problem.line,
            field: problem.path.to_string(),
            problem: problem.text,
        }
    }
}
