//! What the tools rely on, one small test each. Every fact is run against the rehearsal and against real API servers.
//!
//! A fact states what a server does, names who relies on it, and fails with what it saw. It works in a namespace of its
//! own, so that facts can run side by side.

mod objects;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use futures::future::BoxFuture;

use crate::Target;

/// One fact.
#[derive(Clone, Copy)]
pub struct Fact {
    /// What holds, as a sentence.
    pub says: &'static str,
    /// Who relies on it.
    pub used_by: &'static str,
    /// The first minor version that it holds for.
    pub since: u32,
    check: for<'a> fn(&'a Target, &'a str) -> BoxFuture<'a, Result<()>>,
}

/// `fact!("what holds", "who relies on it", function)`, for `async fn function(target: &Target, namespace: &str)`.
macro_rules! fact {
    ($says:literal, $used_by:literal, $check:path) => {
        $crate::facts::fact!($says, $used_by, $check, since 0)
    };
    ($says:literal, $used_by:literal, $check:path, since $since:literal) => {
        $crate::facts::Fact {
            says: $says,
            used_by: $used_by,
            since: $since,
            check: |target, namespace| Box::pin($check(target, namespace)),
        }
    };
}
use fact;

/// All facts.
pub fn all() -> Vec<Fact> {
    [objects::FACTS].concat()
}

/// Proves every fact on a target. Returns how many there were.
pub async fn prove(target: &Target) -> Result<usize> {
    let facts: Vec<Fact> = all().into_iter().filter(|fact| target.minor >= fact.since).collect();
    let checks = facts.iter().enumerate().map(|(number, fact)| async move {
        let namespace = format!("fact-{number}");
        let check = async {
            target.namespace(&namespace).await?;
            (fact.check)(target, &namespace).await
        };
        check.await.with_context(|| format!("does not hold: {} (used by: {})", fact.says, fact.used_by)).err()
    });
    // One after the other in virtual time, where it costs nothing; side by side on real servers.
    let width = if target.is_rehearsal() { 1 } else { 8 };
    let wrong: Vec<String> = futures::stream::iter(checks)
        .buffered(width)
        .filter_map(async |error| error.map(|e| format!("{e:#}")))
        .collect()
        .await;
    if wrong.is_empty() {
        return Ok(facts.len());
    }
    bail!("{} of {} facts:\n{}", wrong.len(), facts.len(), wrong.join("\n"))
}
