//! Server-side apply: who owns which field.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Fact, fact, map, maps};
use crate::{Answer, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("applying creates with 201, and the same again changes nothing", "cluster::apply", twice),
    fact!("a field of another manager is a conflict that names manager and field", "cluster::apply", conflict),
    fact!("force takes a field over", "--force-conflicts", forced),
    fact!("what a manager no longer says goes, unless another one says it too", "cluster::apply", left_out),
    fact!("who changes an applied field without apply owns it", "cluster::apply", updated),
    fact!("apply needs a manager", "cluster::apply", nameless),
    fact!("what is applied must not carry managedFields", "manifests from users", managed),
    fact!("status is applied through its subresource only", "stand-ins", status),
];

async fn apply(target: &Target, namespace: &str, manager: &str, data: Value) -> Result<Answer> {
    let path = format!("{}/a?fieldManager={manager}", maps(namespace));
    target.patch("apply", &path, &map("a", &data)).await
}

async fn twice(target: &Target, namespace: &str) -> Result<()> {
    let first = apply(target, namespace, "one", json!({"k": "v"})).await?;
    first.expect(201)?;
    let second = apply(target, namespace, "one", json!({"k": "v"})).await?;
    second.expect(200)?;
    ensure!(first.version() == second.version(), "{first:?} {second:?}");
    let entry = &first.body["metadata"]["managedFields"][0];
    ensure!(entry["manager"] == "one" && entry["operation"] == "Apply", "{entry}");
    ensure!(entry["fieldsV1"] == json!({"f:data": {"f:k": {}}}), "{entry}");
    Ok(())
}

async fn conflict(target: &Target, namespace: &str) -> Result<()> {
    apply(target, namespace, "one", json!({"k": "1", "l": "1"})).await?.expect(201)?;
    let answer = apply(target, namespace, "two", json!({"k": "2", "l": "1"})).await?;
    let message = "Apply failed with 1 conflict: conflict with \"one\": .data.k";
    ensure!(answer.refusal() == (409, "Conflict", message), "{answer:?}");
    let cause = json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.k"}]);
    ensure!(answer.body["details"]["causes"] == cause, "{answer:?}");
    let both = apply(target, namespace, "two", json!({"k": "2", "l": "2"})).await?;
    let message = "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.k\n- .data.l";
    ensure!(both.text("/message") == message, "{both:?}");
    Ok(())
}

async fn forced(target: &Target, namespace: &str) -> Result<()> {
    apply(target, namespace, "one", json!({"k": "1"})).await?.expect(201)?;
    let path = format!("{}/a?fieldManager=two&force=true", maps(namespace));
    let taken = target.patch("apply", &path, &map("a", &json!({"k": "2"}))).await?;
    taken.expect(200)?;
    let managers: Vec<&str> = taken.body["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    ensure!(managers == ["two"], "{taken:?}");
    Ok(())
}

async fn left_out(target: &Target, namespace: &str) -> Result<()> {
    apply(target, namespace, "one", json!({"k": "1", "l": "1"})).await?.expect(201)?;
    apply(target, namespace, "two", json!({"l": "1"})).await?.expect(200)?;
    let answer = apply(target, namespace, "one", json!({})).await?;
    ensure!(answer.body["data"] == json!({"l": "1"}), "{answer:?}");
    Ok(())
}

async fn updated(target: &Target, namespace: &str) -> Result<()> {
    apply(target, namespace, "one", json!({"k": "1"})).await?.expect(201)?;
    let path = format!("{}/a?fieldManager=editor", maps(namespace));
    target.patch("merge", &path, &json!({"data": {"k": "2"}})).await?.expect(200)?;
    let answer = apply(target, namespace, "one", json!({"k": "1"})).await?;
    let message = "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.k";
    ensure!(answer.refusal() == (409, "Conflict", message), "{answer:?}");
    Ok(())
}

async fn nameless(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.patch("apply", &format!("{}/a", maps(namespace)), &map("a", &json!({}))).await?;
    ensure!(answer.code == 422, "{answer:?}");
    let message = "fieldManager: Required value: is required for apply patch";
    ensure!(answer.text("/message").contains(message), "{answer:?}");
    Ok(())
}

async fn managed(target: &Target, namespace: &str) -> Result<()> {
    let mut object = map("a", &json!({}));
    object["metadata"]["managedFields"] = json!([{
        "manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {},
    }]);
    let answer = target.patch("apply", &format!("{}/a?fieldManager=one", maps(namespace)), &object).await?;
    ensure!(answer.code == 400, "{answer:?}");
    ensure!(answer.text("/message") == "metadata.managedFields must be nil", "{answer:?}");
    Ok(())
}

async fn status(target: &Target, namespace: &str) -> Result<()> {
    let paths = format!("/apis/apps/v1/namespaces/{namespace}/deployments/d");
    let mut object = super::deployment("d", 0);
    object["spec"]["paused"] = json!(true);
    object["status"] = json!({"collisionCount": 3});
    let made = target.patch("apply", &format!("{paths}?fieldManager=one"), &object).await?;
    made.expect(201)?;
    ensure!(made.body["status"].get("collisionCount").is_none(), "{made:?}");
    let patch = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"collisionCount": 3},
    });
    let answer = target.patch("apply", &format!("{paths}/status?fieldManager=one"), &patch).await?;
    ensure!(answer.body["status"]["collisionCount"] == 3, "{answer:?}");
    Ok(())
}
