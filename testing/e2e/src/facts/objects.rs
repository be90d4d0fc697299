//! Objects: made, read, replaced, gone.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Fact, fact, map, maps};
use crate::{Ask, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("creating an object again is refused with AlreadyExists", "cluster::create", again),
    fact!("an object that is not there is NotFound, and the answer names it", "every wait", not_there),
    fact!("a generated name is the prefix and five characters", "cluster::create", generated),
    fact!("creating in a namespace that is not there is NotFound of the namespace", "cluster::apply", no_namespace),
    fact!("replacing from an old version is a Conflict that changes nothing", "cluster::hub", stale),
    fact!("a patch that changes nothing makes no new version", "a second run that changes nothing", same),
    fact!("a new generation comes with the spec only", "every wait that believes a status", generation),
    fact!("deleting another object of the same name is a Conflict that names both uids", "tbx cleanup", other_uid),
    fact!("an object with a finalizer stays, marked, until the finalizer goes", "cluster::delete", finalizer),
    fact!("creating over an object that is going is AlreadyExists that says so", "undo, then deploy again", going),
    fact!("a dry run answers as the real thing and stores nothing", "--plan", dry_run),
    fact!("a namespace that is going takes no new objects", "deploy after undeploy", terminating),
    fact!("metadata that only a server sets cannot be written", "manifests from users", server_side),
    fact!("a path of no kind is a plain 404", "cluster::serves", no_kind),
];

async fn again(target: &Target, namespace: &str) -> Result<()> {
    target.create(&maps(namespace), &map("a", &json!({}))).await?.expect(201)?;
    let answer = target.create(&maps(namespace), &map("a", &json!({}))).await?;
    ensure!(answer.refusal() == (409, "AlreadyExists", "configmaps \"a\" already exists"), "{answer:?}");
    Ok(())
}

async fn not_there(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("{}/none", maps(namespace))).await?;
    ensure!(answer.refusal() == (404, "NotFound", "configmaps \"none\" not found"), "{answer:?}");
    ensure!(answer.body["details"] == json!({"name": "none", "kind": "configmaps"}), "{answer:?}");
    Ok(())
}

async fn generated(target: &Target, namespace: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    let answer = target.create(&maps(namespace), &object).await?;
    answer.expect(201)?;
    let suffix = answer.text("/metadata/name").strip_prefix("made-").unwrap_or_default();
    ensure!(suffix.len() == 5 && suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{answer:?}");
    ensure!(answer.text("/metadata/generateName") == "made-", "{answer:?}");
    Ok(())
}

async fn no_namespace(target: &Target, _: &str) -> Result<()> {
    let answer = target.create(&maps("nowhere"), &map("a", &json!({}))).await?;
    ensure!(answer.refusal() == (404, "NotFound", "namespaces \"nowhere\" not found"), "{answer:?}");
    Ok(())
}

async fn stale(target: &Target, namespace: &str) -> Result<()> {
    let path = format!("{}/a", maps(namespace));
    let first = target.create(&maps(namespace), &map("a", &json!({"k": "1"}))).await?.body;
    target.patch("merge", &path, &json!({"data": {"k": "2"}})).await?.expect(200)?;
    let answer = target.replace(&path, &first).await?;
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    ensure!(answer.refusal() == (409, "Conflict", message), "{answer:?}");
    ensure!(target.get(&path).await?.text("/data/k") == "2", "the refused write changed something");
    Ok(())
}

async fn same(target: &Target, namespace: &str) -> Result<()> {
    let path = format!("{}/a", maps(namespace));
    let first = target.create(&maps(namespace), &map("a", &json!({"k": "1"}))).await?;
    let patched = target.patch("merge", &path, &json!({"data": {"k": "1"}})).await?;
    ensure!(first.version() == patched.version(), "{first:?} {patched:?}");
    Ok(())
}

async fn generation(target: &Target, namespace: &str) -> Result<()> {
    let paths = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let made = target.create(&paths, &super::deployment("d", 0)).await?;
    ensure!(made.body["metadata"]["generation"] == 1, "{made:?}");
    let path = format!("{paths}/d");
    let labelled = target.patch("merge", &path, &json!({"metadata": {"labels": {"x": "y"}}})).await?;
    ensure!(labelled.body["metadata"]["generation"] == 1, "a label made a new generation");
    let paused = target.patch("merge", &path, &json!({"spec": {"paused": true}})).await?;
    ensure!(paused.body["metadata"]["generation"] == 2, "a change of the spec made none: {paused:?}");
    let status = json!({"status": {"observedGeneration": 9}});
    let status = target.patch("merge", &format!("{path}/status"), &status).await?;
    ensure!(status.body["metadata"]["generation"] == 2, "a status made a new generation");
    Ok(())
}

async fn other_uid(target: &Target, namespace: &str) -> Result<()> {
    let made = target.create(&maps(namespace), &map("a", &json!({}))).await?;
    let path = format!("{}/a", maps(namespace));
    let uid = "00000000-0000-4000-8000-000000000000";
    let answer = target.delete(&path, Some(&json!({"preconditions": {"uid": uid}}))).await?;
    let (code, reason, message) = answer.refusal();
    ensure!((code, reason) == (409, "Conflict"), "{answer:?}");
    ensure!(message.contains(uid) && message.contains(made.text("/metadata/uid")), "{answer:?}");
    ensure!(target.get(&path).await?.code == 200, "the wrong object was deleted");
    let right = json!({"preconditions": {"uid": made.text("/metadata/uid")}});
    target.delete(&path, Some(&right)).await?.expect(200)?;
    ensure!(target.get(&path).await?.code == 404, "the right object was not deleted");
    Ok(())
}

async fn finalizer(target: &Target, namespace: &str) -> Result<()> {
    let mut object = map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    target.create(&maps(namespace), &object).await?.expect(201)?;
    let path = format!("{}/a", maps(namespace));
    let answer = target.delete(&path, None).await?;
    answer.expect(200)?;
    ensure!(answer.text("/kind") == "ConfigMap", "what stays is answered as the object: {answer:?}");
    let marked = target.get(&path).await?;
    ensure!(!marked.text("/metadata/deletionTimestamp").is_empty(), "{marked:?}");
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/late"]}});
    let late = target.patch("merge", &path, &more).await?;
    ensure!(late.code == 422 && late.text("/message").contains("no new finalizers can be added"), "{late:?}");
    target.patch("merge", &path, &json!({"metadata": {"finalizers": null}})).await?.expect(200)?;
    ensure!(target.get(&path).await?.code == 404, "it is still there");
    Ok(())
}

async fn going(target: &Target, namespace: &str) -> Result<()> {
    let mut object = map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    target.create(&maps(namespace), &object).await?.expect(201)?;
    target.delete(&format!("{}/a", maps(namespace)), None).await?.expect(200)?;
    let answer = target.create(&maps(namespace), &object).await?;
    let message = "object is being deleted: configmaps \"a\" already exists";
    ensure!(answer.refusal() == (409, "AlreadyExists", message), "{answer:?}");
    Ok(())
}

async fn dry_run(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.create(&format!("{}?dryRun=All", maps(namespace)), &map("a", &json!({"k": "v"}))).await?;
    answer.expect(201)?;
    ensure!(!answer.text("/metadata/uid").is_empty() && answer.version().is_empty(), "{answer:?}");
    ensure!(target.get(&format!("{}/a", maps(namespace))).await?.code == 404, "it was stored");
    let unknown = target.create(&format!("{}?dryRun=Some", maps(namespace)), &map("a", &json!({}))).await?;
    ensure!(unknown.code == 422, "{unknown:?}");
    Ok(())
}

async fn terminating(target: &Target, namespace: &str) -> Result<()> {
    let mut object = map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    target.create(&maps(namespace), &object).await?.expect(201)?;
    target.delete(&format!("/api/v1/namespaces/{namespace}"), None).await?.expect(200)?;
    let answer = target.create(&maps(namespace), &map("b", &json!({}))).await?;
    let message = format!(
        "configmaps \"b\" is forbidden: unable to create new content in namespace {namespace} because it is being \
         terminated"
    );
    ensure!(answer.refusal() == (403, "Forbidden", message.as_str()), "{answer:?}");
    let cause = answer.body.pointer("/details/causes/0/reason").and_then(Value::as_str);
    ensure!(cause == Some("NamespaceTerminating"), "{answer:?}");
    let free = json!({"metadata": {"finalizers": null}});
    target.patch("merge", &format!("{}/a", maps(namespace)), &free).await?.expect(200)?;
    target.until(&format!("/api/v1/namespaces/{namespace}"), "gone", |answer| answer.code == 404).await?;
    Ok(())
}

async fn server_side(target: &Target, namespace: &str) -> Result<()> {
    let mut object = map("a", &json!({}));
    object["metadata"]["uid"] = json!("11111111-0000-4000-8000-000000000000");
    object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    let made = target.create(&maps(namespace), &object).await?;
    made.expect(201)?;
    ensure!(made.text("/metadata/uid") != "11111111-0000-4000-8000-000000000000", "{made:?}");
    ensure!(!made.text("/metadata/creationTimestamp").starts_with("2001"), "{made:?}");
    Ok(())
}

async fn no_kind(target: &Target, _: &str) -> Result<()> {
    let answer = target.ask(Ask::get("/apis/example.org/v1/things")).await?;
    ensure!(
        answer.code == 404 && answer.body.as_str().is_some_and(|text| text == "404 page not found\n"),
        "{answer:?}"
    );
    let answer = target.ask(Ask::get("/apis/apps/v1/things")).await?;
    let expected = (404, "NotFound", "the server could not find the requested resource");
    ensure!(answer.refusal() == expected, "{answer:?}");
    Ok(())
}
