//! Custom resource definitions and their objects.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{DEFINITIONS, Fact, definition, fact};
use crate::Target;

pub(super) const FACTS: &[Fact] = &[
    fact!("a definition is established, and its kind is served", "cluster::olm, wait for ClusterPolicy", established),
    fact!("a schema's defaults are filled in, unknown fields go", "manifests from alm-examples", defaults),
    fact!("what a schema forbids is Invalid and names the field", "ClusterPolicy patches", invalid),
    fact!("status is written through its subresource only", "every operator", status),
    fact!("a replacement without a version is refused", "cluster::apply", versionless),
    fact!("with the definition go the objects", "undeploy", removal),
];

async fn kind(target: &Target, namespace: &str, schema: Value) -> Result<String> {
    let plural = format!("things{}", namespace.replace('-', ""));
    let group = "custom.example.com";
    target.create(DEFINITIONS, &definition(group, &plural, &schema)).await?.expect(201)?;
    let things = format!("/apis/{group}/v1/namespaces/{namespace}/{plural}");
    target.until(&things, "served", |answer| answer.code == 200).await?;
    Ok(things)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {
            "type": "object", "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            },
        },
        "status": {"type": "object", "properties": {"state": {"type": "string"}}},
    }})
}

fn thing(namespace: &str, spec: Value) -> Value {
    let plural = format!("things{}", namespace.replace('-', ""));
    json!({
        "apiVersion": "custom.example.com/v1", "kind": format!("T{plural}"), "metadata": {"name": "a"}, "spec": spec,
    })
}

async fn established(target: &Target, namespace: &str) -> Result<()> {
    kind(target, namespace, schema()).await?;
    let plural = format!("things{}", namespace.replace('-', ""));
    let definition = target.get(&format!("{DEFINITIONS}/{plural}.custom.example.com")).await?;
    let conditions = definition.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let reasons: Vec<(&str, &str)> = conditions
        .iter()
        .filter_map(|condition| Some((condition["type"].as_str()?, condition["reason"].as_str()?)))
        .collect();
    let expected = [("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted")];
    ensure!(reasons == expected, "{reasons:?}");
    let listed = target.get("/apis/custom.example.com/v1").await?;
    let names = listed.body["resources"].as_array().cloned().unwrap_or_default();
    ensure!(names.iter().any(|entry| entry["name"] == plural.as_str()), "{listed:?}");
    Ok(())
}

async fn defaults(target: &Target, namespace: &str) -> Result<()> {
    let things = kind(target, namespace, schema()).await?;
    let made = target.create(&things, &thing(namespace, json!({"size": 1, "colour": "red"}))).await?;
    made.expect(201)?;
    ensure!(made.body["spec"] == json!({"size": 1, "mode": "fast"}), "{made:?}");
    ensure!(made.body["metadata"]["generation"] == 1, "{made:?}");
    Ok(())
}

async fn invalid(target: &Target, namespace: &str) -> Result<()> {
    let things = kind(target, namespace, schema()).await?;
    let plural = things.rsplit('/').next().unwrap_or_default();
    for (spec, message) in [
        (json!({}), "spec.size: Required value"),
        (json!({"size": 0}), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1, "mode": "odd"}),
            "spec.mode: Unsupported value: \"odd\": supported values: \"fast\", \"slow\"",
        ),
    ] {
        let answer = target.create(&things, &thing(namespace, spec)).await?;
        let expected = format!("T{plural}.custom.example.com \"a\" is invalid: {message}");
        ensure!(answer.refusal() == (422, "Invalid", expected.as_str()), "{answer:?}");
    }
    Ok(())
}

async fn status(target: &Target, namespace: &str) -> Result<()> {
    let things = kind(target, namespace, schema()).await?;
    let mut object = thing(namespace, json!({"size": 1}));
    object["status"] = json!({"state": "ready"});
    let made = target.create(&things, &object).await?;
    ensure!(made.body.get("status").is_none(), "{made:?}");
    let path = format!("{things}/a");
    let patch = json!({"status": {"state": "ready"}, "spec": {"size": 2}});
    let answer = target.patch("merge", &format!("{path}/status"), &patch).await?;
    ensure!(answer.body["status"]["state"] == "ready" && answer.body["spec"]["size"] == 1, "{answer:?}");
    ensure!(answer.body["metadata"]["generation"] == 1, "{answer:?}");
    let answer = target.patch("merge", &path, &json!({"status": {"state": "other"}, "spec": {"size": 2}})).await?;
    ensure!(answer.body["status"]["state"] == "ready" && answer.body["metadata"]["generation"] == 2, "{answer:?}");
    Ok(())
}

async fn versionless(target: &Target, namespace: &str) -> Result<()> {
    let things = kind(target, namespace, schema()).await?;
    target.create(&things, &thing(namespace, json!({"size": 1}))).await?.expect(201)?;
    let answer = target.replace(&format!("{things}/a"), &thing(namespace, json!({"size": 2}))).await?;
    let zero = if target.minor >= 32 { "0" } else { "0x0" };
    let message = format!("metadata.resourceVersion: Invalid value: {zero}: must be specified for an update");
    ensure!(answer.code == 422 && answer.text("/message").ends_with(&message), "{answer:?}");
    Ok(())
}

async fn removal(target: &Target, namespace: &str) -> Result<()> {
    let things = kind(target, namespace, schema()).await?;
    target.create(&things, &thing(namespace, json!({"size": 1}))).await?.expect(201)?;
    let plural = things.rsplit('/').next().unwrap_or_default();
    let path = format!("{DEFINITIONS}/{plural}.custom.example.com");
    target.delete(&path, None).await?.expect(200)?;
    target.until(&path, "gone", |answer| answer.code == 404).await?;
    target.until(&things, "no longer served", |answer| answer.code == 404).await?;
    Ok(())
}
