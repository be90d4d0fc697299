//! Versions of the operator, in the order in which they were published.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version as bundles spell it: `1.10.1`, `1.9.0-beta`, `21.9.29-git.3a2b1c`.
///
/// Numbers compare as numbers (1.10 is after 1.9), calendar versions are after all others because their year is the
/// larger number, and a version with a suffix that is no git snapshot is before the one without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorVersion {
    numbers: Vec<u64>,
    suffix: String,
    text: String,
}

/// The text is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version: expected numbers separated by dots, such as 1.10.1 or 1.9.0-beta")]
pub struct NotAVersion(pub String);

impl OperatorVersion {
    /// `1.9.0`.
    pub fn of(major: u64, minor: u64, patch: u64) -> Self {
        Self { numbers: vec![major, minor, patch], suffix: String::new(), text: format!("{major}.{minor}.{patch}") }
    }

    /// As it was written, without a leading `v`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this is `major.minor` or later; pre-releases of that version count.
    pub fn is_at_least(&self, major: u64, minor: u64) -> bool {
        let own = (self.numbers.first().copied().unwrap_or(0), self.numbers.get(1).copied().unwrap_or(0));
        own >= (major, minor)
    }

    /// From 1.9 on the operator lives in a namespace of its own and labels it for monitoring itself.
    pub fn has_own_namespace(&self) -> bool {
        self.is_at_least(1, 9)
    }

    /// From 1.7 on a DaemonSet validates each node; before, a single pod does.
    pub fn has_validator(&self) -> bool {
        self.is_at_least(1, 7)
    }

    fn rank(&self) -> u8 {
        // A snapshot (`-git.…`) is built after the version it carries; any other suffix is a pre-release.
        match self.suffix.as_str() {
            "" => 1,
            suffix if suffix.starts_with("git") => 2,
            _ => 0,
        }
    }
}

impl FromStr for OperatorVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (numbers, suffix) = bare.split_once(['-', '+']).map_or((bare, ""), |(numbers, suffix)| (numbers, suffix));
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse::<u64>().ok()).collect();
        let odd = suffix.chars().any(|c| !c.is_ascii_alphanumeric() && c != '.' && c != '-');
        match numbers {
            Some(numbers) if numbers.len() >= 2 && !odd => {
                Ok(Self { numbers, suffix: suffix.to_owned(), text: bare.to_owned() })
            }
            _ => Err(NotAVersion(text.to_owned())),
        }
    }
}

impl Ord for OperatorVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let longest = self.numbers.len().max(other.numbers.len());
        let number = |version: &Self, at: usize| version.numbers.get(at).copied().unwrap_or(0);
        (0..longest)
            .map(|at| number(self, at).cmp(&number(other, at)))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or_else(|| (self.rank(), &self.suffix, &self.text).cmp(&(other.rank(), &other.suffix, &other.text)))
    }
}

impl PartialOrd for OperatorVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for OperatorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> OperatorVersion {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_in_the_order_of_their_publication() {
        let sorted =
            ["1.3.1", "1.8.2", "1.9.0-beta", "1.9.0", "1.9.1", "1.10.0", "1.11.0", "21.9.29-git.abc", "22.9.0"];
        let mut shuffled: Vec<OperatorVersion> = sorted.iter().rev().map(|text| version(text)).collect();
        shuffled.sort();
        assert_eq!(shuffled.iter().map(OperatorVersion::as_str).collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn what_depends_on_the_version_is_decided_by_number() {
        assert!(!version("1.8.2").has_own_namespace());
        for text in ["1.9.0-beta", "1.10.1", "v22.9.0", "21.9.29-git.abc"] {
            assert!(version(text).has_own_namespace(), "{text}");
        }
        assert!(!version("1.6.2").has_validator());
        assert_eq!(version("v1.9.0").as_str(), "1.9.0");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "latest", "1", "1.x", "1.9.0 beta", "stable"] {
            assert_eq!(text.parse::<OperatorVersion>(), Err(NotAVersion(text.to_owned())));
        }
    }
}
