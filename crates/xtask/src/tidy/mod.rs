//! Checks what the compiler cannot: who may depend on whom, and what a reader would trip over.

mod dependencies;
mod sources;

use anyhow::{Result, bail};

use crate::cargo;

/// One thing that is not as it should be.
pub(crate) struct Finding {
    /// File or package.
    pub(crate) place: String,
    /// What is wrong and what would be right.
    pub(crate) text: String,
}

pub(crate) fn run() -> Result<()> {
    let mut findings = dependencies::check()?;
    findings.extend(sources::check()?);
    for finding in &findings {
        cargo::say(&format!("{}: {}", finding.place, finding.text));
    }
    if !findings.is_empty() {
        bail!("tidy found {} thing(s)", findings.len());
    }
    Ok(())
}
