//! Lists: pages, selectors, versions.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Fact, fact, map, maps};
use crate::{Answer, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("pages of a list show one state, whatever is written meanwhile", "cluster::list", pages),
    fact!("a continue token that no server made is refused", "cluster::list", forged),
    fact!("label selectors choose by value, set and presence", "every watch with a selector", labels),
    fact!("a label selector that cannot be read is a BadRequest", "bad input", bad_labels),
    fact!("field selectors know names and what the kind lists, and nothing else", "cluster::watch", fields),
    fact!("a list from version 0 is answered from memory", "cluster::hub", from_memory),
    fact!("a version that is not there yet is a Timeout that says so", "cluster::hub", future),
    fact!("a list with a limit and a version is of exactly that version", "why NFD's pages are switched off", exactly),
    fact!("resourceVersionMatch needs a version", "cluster::list", matching),
];

fn names(answer: &Answer) -> Vec<String> {
    let items = answer.body["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

async fn make(target: &Target, namespace: &str, names: &[&str]) -> Result<()> {
    for name in names {
        let mut object = map(name, &json!({}));
        object["metadata"]["labels"] = json!({"name": name, "kind": if name.len() > 1 { "long" } else { "short" }});
        target.create(&maps(namespace), &object).await?.expect(201)?;
    }
    Ok(())
}

async fn pages(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, &["a", "b", "c", "d", "e"]).await?;
    let list = format!("{}?labelSelector=name&limit=2", maps(namespace));
    let first = target.get(&list).await?;
    ensure!(names(&first) == ["a", "b"], "{first:?}");
    // With a selector nobody counts the rest.
    ensure!(first.body["metadata"].get("remainingItemCount").is_none(), "{first:?}");
    target.delete(&format!("{}/d", maps(namespace)), None).await?.expect(200)?;
    make(target, namespace, &["cc"]).await?;
    let second = target.get(&format!("{list}&continue={}", first.text("/metadata/continue"))).await?;
    ensure!(names(&second) == ["c", "d"], "{second:?}");
    ensure!(second.version() == first.version(), "the pages are of two versions");
    let third = target.get(&format!("{list}&continue={}", second.text("/metadata/continue"))).await?;
    ensure!(names(&third) == ["e"] && third.text("/metadata/continue").is_empty(), "{third:?}");
    Ok(())
}

async fn forged(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("{}?limit=1&continue=abc", maps(namespace))).await?;
    let (code, reason, message) = answer.refusal();
    ensure!((code, reason) == (400, "BadRequest"), "{answer:?}");
    ensure!(message.contains("continue key is not valid"), "{answer:?}");
    Ok(())
}

async fn labels(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, &["a", "b", "cc"]).await?;
    for (selector, found) in [
        ("name=a", vec!["a"]),
        ("name==a", vec!["a"]),
        ("name!=a,name", vec!["b", "cc"]),
        ("name+in+(a,b)", vec!["a", "b"]),
        ("name+notin+(a,b),kind", vec!["cc"]),
        ("kind=long,name", vec!["cc"]),
        ("!name,kind", vec![]),
    ] {
        let answer = target.get(&format!("{}?labelSelector={selector}", maps(namespace))).await?;
        ensure!(names(&answer) == found, "{selector}: {answer:?}");
    }
    Ok(())
}

async fn bad_labels(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("{}?labelSelector=a+in+b", maps(namespace))).await?;
    ensure!(answer.code == 400 && answer.text("/message").starts_with("unable to parse requirement"), "{answer:?}");
    Ok(())
}

async fn fields(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, &["a", "b"]).await?;
    let one = target.get(&format!("{}?fieldSelector=metadata.name=b", maps(namespace))).await?;
    ensure!(names(&one) == ["b"], "{one:?}");
    let answer = target.get(&format!("{}?fieldSelector=data.k=v", maps(namespace))).await?;
    ensure!(answer.code == 400 && answer.text("/message").contains("data.k"), "{answer:?}");
    let pods = target.get(&format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=status.phase!=Running")).await?;
    pods.expect(200)?;
    Ok(())
}

async fn from_memory(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, &["a"]).await?;
    let list = format!("{}?resourceVersion=0&limit=1&labelSelector=name", maps(namespace));
    let answer = target.until(&list, "up to date", |answer| names(answer) == ["a"]).await?;
    ensure!(answer.text("/metadata/continue").is_empty(), "{answer:?}");
    Ok(())
}

async fn future(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("{}?resourceVersion=999999999", maps(namespace))).await?;
    let (code, reason, message) = answer.refusal();
    ensure!((code, reason) == (504, "Timeout"), "{answer:?}");
    ensure!(message.contains("Too large resource version: 999999999, current: "), "{answer:?}");
    ensure!(answer.body.pointer("/details/causes/0/reason") == Some(&json!("ResourceVersionTooLarge")), "{answer:?}");
    Ok(())
}

async fn matching(target: &Target, namespace: &str) -> Result<()> {
    let answer = target.get(&format!("{}?resourceVersionMatch=Exact", maps(namespace))).await?;
    ensure!(answer.code == 422, "{answer:?}");
    let message = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    ensure!(answer.text("/message").contains(message), "{answer:?}");
    Ok(())
}

/// Who lists in pages "from version X on" gets X for ever, and a watch from X that has expired never recovers.
async fn exactly(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, &["a"]).await?;
    let then = target.get(&maps(namespace)).await?;
    make(target, namespace, &["b"]).await?;
    let version = then.version();
    let page = format!("{}?labelSelector=name&limit=100&resourceVersion={version}", maps(namespace));
    let answer = target.get(&page).await?;
    ensure!(names(&answer) == ["a"] && answer.version() == version, "{answer:?}");
    let whole = target.get(&format!("{}?labelSelector=name&resourceVersion={version}", maps(namespace))).await?;
    // From memory, in no order.
    ensure!(names(&whole).iter().any(|name| name == "a"), "{whole:?}");
    Ok(())
}
