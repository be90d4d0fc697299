//! Watches: where they start, what they send, how they end.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Fact, fact, map, maps};
use crate::Target;

pub(super) const FACTS: &[Fact] = &[
    fact!("a watch from a list's version tells what came after it", "cluster::hub", resumed),
    fact!("a watch without a version tells what is there first", "cluster::hub", initial),
    fact!("an object that leaves the selector is told as deleted", "every watch with a selector", left),
    fact!("a deletion is told with the last state and a version of its own", "cluster::hub", deleted),
    fact!("a watch ends without an error when its time is over", "cluster::hub", timed),
    fact!("a watch from a version that is gone is told 410 as an event", "cluster::hub", expired),
    fact!("initial events end with a bookmark that says so", "cluster::hub", streamed, since 32),
    fact!("initial events need resourceVersionMatch", "cluster::hub", streamed_badly, since 32),
];

const MINE: &str = "labelSelector=mine";

fn mine(name: &str, data: &Value) -> Value {
    let mut object = map(name, data);
    object["metadata"]["labels"] = json!({"mine": "yes"});
    object
}

async fn resumed(target: &Target, namespace: &str) -> Result<()> {
    let maps = maps(namespace);
    target.create(&maps, &mine("a", &json!({}))).await?.expect(201)?;
    let list = target.get(&format!("{maps}?{MINE}")).await?;
    target.create(&maps, &mine("b", &json!({}))).await?.expect(201)?;
    target.patch("merge", &format!("{maps}/a"), &json!({"data": {"k": "v"}})).await?.expect(200)?;
    target.delete(&format!("{maps}/b"), None).await?.expect(200)?;
    let mut events = target.watch(&format!("{maps}?{MINE}&watch=true&resourceVersion={}", list.version())).await?;
    for (kind, name) in [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")] {
        ensure!(events.step().await? == (kind.to_owned(), name.to_owned()), "{kind} {name} did not come");
    }
    Ok(())
}

async fn initial(target: &Target, namespace: &str) -> Result<()> {
    let maps = maps(namespace);
    for name in ["a", "b"] {
        target.create(&maps, &mine(name, &json!({}))).await?.expect(201)?;
    }
    let mut events = target.watch(&format!("{maps}?{MINE}&watch=true")).await?;
    let mut first = vec![events.step().await?, events.step().await?];
    first.sort();
    ensure!(first == [("ADDED".into(), "a".into()), ("ADDED".into(), "b".into())], "{first:?}");
    target.delete(&format!("{maps}/a"), None).await?.expect(200)?;
    ensure!(events.step().await? == ("DELETED".into(), "a".into()));
    Ok(())
}

async fn left(target: &Target, namespace: &str) -> Result<()> {
    let maps = maps(namespace);
    target.create(&maps, &mine("a", &json!({"k": "1"}))).await?.expect(201)?;
    let list = target.get(&format!("{maps}?{MINE}")).await?;
    let mut events = target.watch(&format!("{maps}?{MINE}&watch=true&resourceVersion={}", list.version())).await?;
    let away = json!({"metadata": {"labels": {"mine": null}}, "data": {"k": "2"}});
    target.patch("merge", &format!("{maps}/a"), &away).await?.expect(200)?;
    let event = events.next().await?.context("the watch has ended")?;
    ensure!(event["type"] == "DELETED", "{event}");
    // The state before the change, so that a selector still matches it.
    ensure!(event["object"]["metadata"]["labels"]["mine"] == "yes", "{event}");
    ensure!(event["object"]["data"]["k"] == "1", "{event}");
    let back = json!({"metadata": {"labels": {"mine": "again"}}});
    target.patch("merge", &format!("{maps}/a"), &back).await?.expect(200)?;
    ensure!(events.step().await? == ("ADDED".into(), "a".into()));
    Ok(())
}

async fn deleted(target: &Target, namespace: &str) -> Result<()> {
    let maps = maps(namespace);
    let made = target.create(&maps, &mine("a", &json!({"k": "1"}))).await?;
    let list = target.get(&format!("{maps}?{MINE}")).await?;
    target.delete(&format!("{maps}/a"), None).await?.expect(200)?;
    let mut events = target.watch(&format!("{maps}?{MINE}&watch=true&resourceVersion={}", list.version())).await?;
    let event = events.next().await?.context("the watch has ended")?;
    ensure!(event["type"] == "DELETED" && event["object"]["data"]["k"] == "1", "{event}");
    let version = |text: &str| text.parse::<u64>();
    let own = version(event["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default())?;
    ensure!(own > version(made.version())?, "{event}");
    Ok(())
}

async fn timed(target: &Target, namespace: &str) -> Result<()> {
    let mut events = target.watch(&format!("{}?{MINE}&watch=true&timeoutSeconds=1", maps(namespace))).await?;
    let event = events.next().await?;
    ensure!(event.is_none(), "{event:?}");
    Ok(())
}

async fn expired(target: &Target, namespace: &str) -> Result<()> {
    // A new kind's memory begins when it is first asked for, long after version 1.
    let plural = format!("things{}", namespace.replace('-', ""));
    let group = "expired.example.com";
    let definition = super::definition(group, &plural, &json!({"type": "object"}));
    target.create(super::DEFINITIONS, &definition).await?.expect(201)?;
    let things = format!("/apis/{group}/v1/namespaces/{namespace}/{plural}");
    target.until(&things, "served", |answer| answer.code == 200).await?;
    if let Some(world) = target.world() {
        world.api().compact();
    }
    let mut events = target.watch(&format!("{things}?watch=true&resourceVersion=1")).await?;
    let event = events.next().await?.context("the watch has ended")?;
    ensure!(event["type"] == "ERROR" && event["object"]["code"] == 410, "{event}");
    ensure!(event["object"]["reason"] == "Expired", "{event}");
    let message = event["object"]["message"].as_str().unwrap_or_default();
    ensure!(message.starts_with("too old resource version: 1 ("), "{event}");
    ensure!(events.next().await?.is_none(), "the watch goes on");
    Ok(())
}

async fn streamed(target: &Target, namespace: &str) -> Result<()> {
    let maps = maps(namespace);
    target.create(&maps, &mine("a", &json!({}))).await?.expect(201)?;
    let options = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = target.watch(&format!("{maps}?{MINE}&{options}")).await?;
    ensure!(events.step().await? == ("ADDED".into(), "a".into()));
    let event = events.next().await?.context("the watch has ended")?;
    ensure!(event["type"] == "BOOKMARK", "{event}");
    let mark = &event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
    ensure!(mark == "true", "{event}");
    Ok(())
}

async fn streamed_badly(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("{}?watch=true&sendInitialEvents=true", maps(namespace))).await?;
    ensure!(answer.code == 422, "{answer:?}");
    let message = "resourceVersionMatch is forbidden";
    ensure!(
        answer.text("/message").contains("sendInitialEvents") || answer.text("/message").contains(message),
        "{answer:?}"
    );
    Ok(())
}
