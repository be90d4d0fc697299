//! Objects: made, read, replaced, gone.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Fact, fact};
use crate::Target;

pub(super) const FACTS: &[Fact] = &[
    fact!("creating an object again is refused with AlreadyExists", "cluster::create", again),
    fact!("an object that is not there is NotFound, and the answer names it", "every wait", not_there),
];

async fn again(target: &Target, namespace: &str) -> Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    target.create(&path, &object).await?.expect(201)?;
    let answer = target.create(&path, &object).await?;
    let expected = (409, "AlreadyExists", "configmaps \"a\" already exists");
    ensure!(answer.refusal() == expected, "{answer:?}");
    Ok(())
}

async fn not_there(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("/api/v1/namespaces/{namespace}/configmaps/none")).await?;
    ensure!(answer.refusal() == (404, "NotFound", "configmaps \"none\" not found"), "{answer:?}");
    ensure!(answer.body["details"] == json!({"name": "none", "kind": "configmaps"}), "{answer:?}");
    Ok(())
}
