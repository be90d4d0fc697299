//! What the tools rely on, one small test each. Every fact is run against the rehearsal and against real API servers.
//!
//! A fact states what a server does, names who relies on it, and fails with what it saw. It works in a namespace of its
//! own, so that facts can run side by side.

mod apply;
mod custom;
mod lists;
mod objects;
mod owners;
mod pods;
mod quotas;
mod rights;
mod roles;
mod watches;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::Target;

/// Longer than any fact takes.
const PATIENCE: Duration = Duration::from_secs(90);

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
    [
        objects::FACTS,
        lists::FACTS,
        watches::FACTS,
        apply::FACTS,
        custom::FACTS,
        owners::FACTS,
        rights::FACTS,
        roles::FACTS,
        quotas::FACTS,
        pods::FACTS,
    ]
    .concat()
}

/// Proves every fact on a target. Returns how many there were.
pub async fn prove(target: &Target) -> Result<usize> {
    let facts: Vec<Fact> = all().into_iter().filter(|fact| target.minor >= fact.since).collect();
    let checks = facts.iter().enumerate().map(|(number, fact)| async move {
        let namespace = format!("fact-{number}-{}", std::process::id());
        let check = async {
            target.namespace(&namespace).await?;
            tokio::time::timeout(PATIENCE, (fact.check)(target, &namespace)).await.context("no answer came")?
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

/// Where the config maps of a namespace are.
fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// A config map.
fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A deployment.
fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "quay.io/demo/main:1"}]},
            },
        },
    })
}

/// Where custom resource definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of a namespaced kind `Thing…` with one version `v1` and a status subresource.
fn definition(group: &str, plural: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": format!("T{plural}"), "listKind": format!("T{plural}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}
