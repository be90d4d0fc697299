//! Owners and what goes with them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Fact, fact, map, maps};
use crate::{Answer, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("what an object owns goes after it", "undeploy", background),
    fact!("foreground deletion keeps the owner until what it owns is gone", "undeploy", foreground),
    fact!("orphaning leaves what is owned, without the owner's name", "cleanup", orphan),
    fact!("an owner that is not there takes its objects along", "cleanup", absent),
];

fn owned(name: &str, owner: &Answer, blocks: bool) -> Value {
    let mut object = map(name, &json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner.text("/metadata/name"),
        "uid": owner.text("/metadata/uid"), "blockOwnerDeletion": blocks,
    }]);
    object
}

async fn pair(target: &Target, namespace: &str) -> Result<(String, String)> {
    let maps = maps(namespace);
    let owner = target.create(&maps, &map("owner", &json!({}))).await?;
    owner.expect(201)?;
    target.create(&maps, &owned("own", &owner, true)).await?.expect(201)?;
    Ok((format!("{maps}/owner"), format!("{maps}/own")))
}

async fn background(target: &Target, namespace: &str) -> Result<()> {
    let (owner, own) = pair(target, namespace).await?;
    target.delete(&owner, Some(&json!({"propagationPolicy": "Background"}))).await?.expect(200)?;
    ensure!(target.get(&owner).await?.code == 404, "the owner is still there");
    target.until(&own, "gone", |answer| answer.code == 404).await?;
    Ok(())
}

async fn foreground(target: &Target, namespace: &str) -> Result<()> {
    let (owner, own) = pair(target, namespace).await?;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    target.patch("merge", &own, &hold).await?.expect(200)?;
    target.delete(&owner, Some(&json!({"propagationPolicy": "Foreground"}))).await?.expect(200)?;
    let marked = target.get(&owner).await?;
    ensure!(marked.body["metadata"]["finalizers"] == json!(["foregroundDeletion"]), "{marked:?}");
    target.until(&own, "marked", |answer| !answer.text("/metadata/deletionTimestamp").is_empty()).await?;
    ensure!(target.get(&owner).await?.code == 200, "the owner did not wait");
    target.patch("merge", &own, &json!({"metadata": {"finalizers": null}})).await?.expect(200)?;
    target.until(&owner, "gone", |answer| answer.code == 404).await?;
    Ok(())
}

async fn orphan(target: &Target, namespace: &str) -> Result<()> {
    let (owner, own) = pair(target, namespace).await?;
    target.delete(&owner, Some(&json!({"propagationPolicy": "Orphan"}))).await?.expect(200)?;
    target.until(&owner, "gone", |answer| answer.code == 404).await?;
    let left = target.get(&own).await?;
    ensure!(left.code == 200 && left.body["metadata"].get("ownerReferences").is_none(), "{left:?}");
    Ok(())
}

async fn absent(target: &Target, namespace: &str) -> Result<()> {
    let maps = maps(namespace);
    let mut object = map("own", &json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "00000000-0000-4000-8000-000000000001",
    }]);
    target.create(&maps, &object).await?.expect(201)?;
    target.until(&format!("{maps}/own"), "gone", |answer| answer.code == 404).await?;
    Ok(())
}
