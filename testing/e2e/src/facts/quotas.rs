//! Quotas and limit ranges.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::{Fact, fact, map, maps};
use crate::{Answer, Ask, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!(
        "a quota counts objects, and the refusal names quota, wish, use and limit",
        "why a deployment makes no pods",
        counts
    ),
    fact!("what is deleted is no longer counted", "retry after a clean-up", freed),
    fact!("a quota on resources sums what pods ask for, GPUs too", "why a GPU pod is not made", resources),
    fact!("under a quota every container must say what it needs", "why a deployment makes no pods", unsaid),
    fact!("a limit range gives what is not said, and the pod notes it", "pods of operators", defaults),
    fact!("a limit range refuses less than its least and more than its most", "pods of operators", bounds),
    fact!("a dry run meets the quota as well", "--plan", dry_run),
];

async fn quota(target: &Target, namespace: &str, hard: Value) -> Result<()> {
    let quotas = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let object = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard},
    });
    target.create(&quotas, &object).await?.expect(201)?;
    let counted = |answer: &Answer| answer.body["status"]["hard"] == hard && answer.body["status"]["used"].is_object();
    target.until(&format!("{quotas}/q"), "counted", counted).await?;
    Ok(())
}

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

fn pod(name: &str, one: Value, other: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [
            {"name": "main", "image": "quay.io/demo/main:1", "resources": one},
            {"name": "side", "image": "quay.io/demo/main:1", "resources": other},
        ]},
    })
}

fn refused(answer: &Answer, message: &str) -> Result<()> {
    ensure!(answer.refusal() == (403, "Forbidden", message), "{answer:?}");
    Ok(())
}

async fn counts(target: &Target, namespace: &str) -> Result<()> {
    let services = format!("/api/v1/namespaces/{namespace}/services");
    quota(target, namespace, json!({"services": "1", "count/deployments.apps": "0"})).await?;
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]},
        })
    };
    target.create(&services, &service("a")).await?.expect(201)?;
    let answer = target.create(&services, &service("b")).await?;
    refused(
        &answer,
        "services \"b\" is forbidden: exceeded quota: q, requested: services=1, used: services=1, limited: services=1",
    )?;
    ensure!(answer.body["details"] == json!({"name": "b", "kind": "services"}), "{answer:?}");
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let answer = target.create(&deployments, &super::deployment("d", 1)).await?;
    refused(
        &answer,
        "deployments.apps \"d\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: \
         count/deployments.apps=0, limited: count/deployments.apps=0",
    )
}

async fn freed(target: &Target, namespace: &str) -> Result<()> {
    quota(target, namespace, json!({"count/secrets": "1"})).await?;
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    target.create(&secrets, &secret).await?.expect(201)?;
    ensure!(target.create(&secrets, &json!({"metadata": {"name": "b"}})).await?.code == 403, "the quota is not kept");
    target.delete(&format!("{secrets}/a"), None).await?.expect(200)?;
    let path = format!("/api/v1/namespaces/{namespace}/resourcequotas/q");
    target.until(&path, "free", |answer| answer.body["status"]["used"] == json!({"count/secrets": "0"})).await?;
    target.create(&secrets, &secret).await?.expect(201)?;
    Ok(())
}

async fn resources(target: &Target, namespace: &str) -> Result<()> {
    let hard = json!({"pods": "1", "requests.cpu": "1", "limits.memory": "1Gi", "requests.nvidia.com/gpu": "1"});
    quota(target, namespace, hard).await?;
    let ask = |cpu: &str, memory: &str, gpus: u32| {
        let mut ask = json!({"requests": {"cpu": cpu}, "limits": {"memory": memory}});
        if gpus > 0 {
            ask["limits"]["nvidia.com/gpu"] = gpus.into();
        }
        ask
    };
    let much = pod("a", ask("600m", "512Mi", 1), ask("600m", "600Mi", 0));
    let answer = target.create(&pods(namespace), &much).await?;
    refused(
        &answer,
        "pods \"a\" is forbidden: exceeded quota: q, requested: limits.memory=1112Mi,requests.cpu=1200m, used: \
         limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=1",
    )?;
    let fits = pod("a", ask("300m", "512Mi", 1), ask("0.3", "100Mi", 0));
    target.create(&pods(namespace), &fits).await?.expect(201)?;
    let quota = target.get(&format!("/api/v1/namespaces/{namespace}/resourcequotas/q")).await?;
    let used = json!({"pods": "1", "requests.cpu": "600m", "limits.memory": "612Mi", "requests.nvidia.com/gpu": "1"});
    ensure!(quota.body["status"]["used"] == used, "{quota:?}");
    let answer = target.create(&pods(namespace), &pod("b", ask("1m", "1Mi", 1), ask("1m", "1Mi", 0))).await?;
    refused(
        &answer,
        "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1,requests.nvidia.com/gpu=1, used: \
         pods=1,requests.nvidia.com/gpu=1, limited: pods=1,requests.nvidia.com/gpu=1",
    )
}

async fn unsaid(target: &Target, namespace: &str) -> Result<()> {
    quota(target, namespace, json!({"requests.cpu": "1", "limits.memory": "1Gi"})).await?;
    let answer = target.create(&pods(namespace), &pod("a", json!({}), json!({"requests": {"cpu": "1m"}}))).await?;
    refused(
        &answer,
        "pods \"a\" is forbidden: failed quota: q: must specify limits.memory for: main,side; requests.cpu for: main",
    )
}

async fn range(target: &Target, namespace: &str) -> Result<()> {
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{
            "type": "Container", "default": {"cpu": "1", "memory": "256Mi"}, "max": {"cpu": "2"},
            "min": {"memory": "64Mi"},
        }]},
    });
    let answer = target.create(&format!("/api/v1/namespaces/{namespace}/limitranges"), &range).await?;
    let item = &answer.expect(201)?["spec"]["limits"][0];
    ensure!(item["defaultRequest"] == json!({"cpu": "1", "memory": "256Mi"}), "{item}");
    Ok(())
}

async fn defaults(target: &Target, namespace: &str) -> Result<()> {
    range(target, namespace).await?;
    let object = pod("a", json!({"requests": {"cpu": "100m"}}), json!({}));
    // Servers look at ranges through a cache.
    let ask = Ask::new(Method::POST, &format!("{}?dryRun=All", pods(namespace))).json(&object);
    let noted = |answer: &Answer| answer.body["metadata"].get("annotations").is_some();
    let answer = target.ask_until(&ask, "given the range's defaults", noted).await?;
    let note = "LimitRanger plugin set: memory request for container main; cpu, memory limit for container main; cpu, \
                memory request for container side; cpu, memory limit for container side";
    ensure!(answer.body["metadata"]["annotations"] == json!({"kubernetes.io/limit-ranger": note}), "{answer:?}");
    let resources = |number: usize| answer.body["spec"]["containers"][number]["resources"].clone();
    let limits = json!({"cpu": "1", "memory": "256Mi"});
    ensure!(resources(0) == json!({"limits": limits, "requests": {"cpu": "100m", "memory": "256Mi"}}), "{answer:?}");
    ensure!(resources(1) == json!({"limits": limits, "requests": limits}), "{answer:?}");
    Ok(())
}

async fn bounds(target: &Target, namespace: &str) -> Result<()> {
    range(target, namespace).await?;
    let object = pod("a", json!({"limits": {"cpu": "3", "memory": "1Mi"}}), json!({}));
    let ask = Ask::new(Method::POST, &format!("{}?dryRun=All", pods(namespace))).json(&object);
    let answer = target.ask_until(&ask, "refused", |answer| answer.code == 403).await?;
    refused(
        &answer,
        "pods \"a\" is forbidden: [minimum memory usage per Container is 64Mi, but request is 1Mi, maximum cpu usage per \
         Container is 2, but limit is 3]",
    )
}

async fn dry_run(target: &Target, namespace: &str) -> Result<()> {
    quota(target, namespace, json!({"count/secrets": "0"})).await?;
    let path = format!("{}?dryRun=All", maps(namespace));
    target.create(&path, &map("a", &json!({}))).await?.expect(201)?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let answer = target.create(&format!("/api/v1/namespaces/{namespace}/secrets?dryRun=All"), &secret).await?;
    ensure!(answer.code == 403, "{answer:?}");
    Ok(())
}
