//! What types cannot say: values in range, references that lead somewhere, a cluster in which something can happen.
//!
//! A scenario is looked at as it was written, before its faults change it: what goes wrong on purpose is no slip.

mod catalogs;
mod machines;
mod needs;
mod rest;

use super::Scenario;
use super::yaml::{Lines, Path, Problem};

pub use needs::Needs;

/// Why a scenario cannot be, and which field says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    path: Path,
    /// Where to look when the field itself is the default scenario's: what the file took away, perhaps.
    see: Option<Path>,
    text: String,
}

impl Objection {
    fn new(path: Path, text: impl Into<String>) -> Self {
        Self { path, see: None, text: text.into() }
    }

    fn see(self, path: Path) -> Self {
        Self { see: Some(path), ..self }
    }

    /// With the line in the file.
    pub(super) fn on(self, lines: &Lines) -> Problem {
        let line = lines.near(&self.path).or_else(|| self.see.and_then(|path| lines.near(&path)));
        Problem { line, path: self.path, text: self.text }
    }
}

type Checked = Result<(), Objection>;

/// The first thing that is wrong.
pub(super) fn check(scenario: &Scenario) -> Checked {
    rest::versions(scenario)?;
    rest::timings(scenario)?;
    machines::instance_types(scenario)?;
    machines::nodes(scenario)?;
    machines::sets(scenario)?;
    catalogs::images(scenario)?;
    catalogs::catalogs(scenario)?;
    rest::quirks(scenario)?;
    rest::faults(scenario)?;
    rest::objects(scenario)?;
    rest::expect(scenario)?;
    // With everything in order by itself: can anything happen in such a cluster?
    machines::place_for_pods(scenario)?;
    machines::stock(scenario)
}

fn field(name: &str) -> Path {
    Path::default().key(name)
}

/// Names that objects can have.
fn object_name(path: &Path, name: &str) -> Checked {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let fits = name.len() <= 253
        && name.split('.').all(|part| {
            part.starts_with(plain)
                && part.ends_with(plain)
                && part.chars().all(|letter| plain(letter) || letter == '-')
        });
    if fits {
        return Ok(());
    }
    let what = if name.is_empty() { "it has no name".to_owned() } else { format!("`{name}` is no name of an object") };
    Err(Objection::new(path.key("name"), format!("{what}: lower-case letters, digits, `-` and `.`")))
}

/// No name twice.
fn unique<'a>(list: &Path, key: &str, names: impl IntoIterator<Item = &'a str>) -> Checked {
    let mut seen = std::collections::BTreeSet::new();
    for (n, name) in names.into_iter().enumerate() {
        if !seen.insert(name) {
            return Err(Objection::new(list.place(n).key(key), format!("`{name}` is there twice")));
        }
    }
    Ok(())
}

/// Some of the names that would have been right.
fn known<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => "there are none".to_owned(),
        names if names.len() > 12 => format!("there are {}, …", names[..12].join(", ")),
        names => format!("there are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
