//! Pods' subresources: eviction, binding, logs, connections; tokens; events; groups whose server is away.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::{Fact, fact};
use crate::{Answer, Ask, Target};

pub(super) const FACTS: &[Fact] = &[
    fact!("an eviction that a disruption budget forbids is 429 and names the budget", "kubectl drain", eviction),
    fact!("a pod that has not started is evicted whatever the budget says", "kubectl drain", unguarded),
    fact!("a pod is bound once, to a node that is named", "schedulers", binding),
    fact!("a log's container and options are checked before the node is asked", "cluster::log", logs),
    fact!("a log of a pod that has no node is empty", "cluster::log", unplaced_log),
    fact!("a connection into a pod needs an upgrade, and its node", "kubectl exec, kubectl port-forward", connections),
    fact!("a service account's token is made on demand, not for less than ten minutes", "kubectl create token", tokens),
    fact!("an event is the same object in both of its forms", "kubectl events, cluster::events", events),
    fact!("a group whose server is away is unavailable, and listed all the same", "cluster::hub, kubectl", away),
];

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

async fn make(target: &Target, namespace: &str, name: &str, node: &str) -> Result<()> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        // Nobody starts what nobody schedules.
        "spec": {
            "schedulerName": "nobody", "containers": [{"name": "main", "image": "quay.io/demo/main:1"}],
            "initContainers": [{"name": "first", "image": "quay.io/demo/main:1"}],
        },
    });
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    target.create(&pods(namespace), &pod).await?.expect(201)?;
    Ok(())
}

async fn evict(target: &Target, namespace: &str, name: &str) -> Result<Answer> {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
    });
    target.create(&format!("{}/{name}/eviction", pods(namespace)), &eviction).await
}

async fn budget(target: &Target, namespace: &str, pod: &str, expected: &Value) -> Result<()> {
    let budgets = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": pod}}},
    });
    target.create(&budgets, &budget).await?.expect(201)?;
    let counted = |answer: &Answer| {
        ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"]
            .iter()
            .zip(expected.as_array().into_iter().flatten())
            .all(|(field, value)| answer.body["status"][field] == *value)
    };
    target.until(&format!("{budgets}/b"), "counted", counted).await?;
    Ok(())
}

async fn eviction(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, "a", "no-such-node").await?;
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    target.patch("merge", &format!("{}/a/status", pods(namespace)), &ready).await?.expect(200)?;
    budget(target, namespace, "a", &json!([1, 1, 0, 1])).await?;
    let answer = evict(target, namespace, "a").await?;
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ensure!(answer.refusal() == (429, "TooManyRequests", message), "{answer:?}");
    let cause = json!({
        "reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
    });
    ensure!(answer.body["details"]["causes"] == json!([cause]), "{answer:?}");
    let answer = evict(target, namespace, "none").await?;
    ensure!(answer.refusal() == (404, "NotFound", "pods \"none\" not found"), "{answer:?}");
    Ok(())
}

async fn unguarded(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, "a", "").await?;
    budget(target, namespace, "a", &json!([0, 1, 0, 1])).await?;
    let answer = evict(target, namespace, "a").await?;
    answer.expect(201)?;
    ensure!(answer.text("/status") == "Success", "{answer:?}");
    target.until(&format!("{}/a", pods(namespace)), "gone", |answer| answer.code == 404).await?;
    Ok(())
}

async fn binding(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, "a", "").await?;
    let path = format!("{}/a/binding", pods(namespace));
    let to = |node: Value| json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": node});
    let answer = target.create(&path, &to(json!({"kind": "Node"}))).await?;
    ensure!(answer.code == 500 && answer.text("/message") == "target.name: Required value", "{answer:?}");
    target.create(&path, &to(json!({"kind": "Node", "name": "no-such-node"}))).await?.expect(201)?;
    let bound = target.get(&format!("{}/a", pods(namespace))).await?;
    ensure!(bound.text("/spec/nodeName") == "no-such-node", "{bound:?}");
    ensure!(bound.text("/status/conditions/0/type") == "PodScheduled", "{bound:?}");
    let again = target.create(&path, &to(json!({"kind": "Node", "name": "other"}))).await?;
    let message = "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \
                   \"no-such-node\"";
    ensure!(again.refusal() == (409, "Conflict", message), "{again:?}");
    Ok(())
}

async fn logs(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, "a", "no-such-node").await?;
    let log = format!("{}/a/log", pods(namespace));
    let answer = target.get(&format!("{log}?container=none")).await?;
    ensure!(answer.refusal() == (400, "BadRequest", "container none is not valid for pod a"), "{answer:?}");
    for (query, text) in [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z",
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ] {
        let answer = target.get(&format!("{log}?{query}")).await?;
        let message = format!("PodLogOptions \"a\" is invalid: {text}");
        ensure!(answer.refusal() == (422, "Invalid", message.as_str()), "{query}: {answer:?}");
    }
    let answer = target.get(&format!("{}/none/log", pods(namespace))).await?;
    ensure!(answer.refusal() == (404, "NotFound", "pods \"none\" not found"), "{answer:?}");
    let two = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"},
        "spec": {"schedulerName": "nobody", "containers": [
            {"name": "one", "image": "quay.io/demo/main:1"}, {"name": "two", "image": "quay.io/demo/main:1"},
        ]},
    });
    target.create(&pods(namespace), &two).await?.expect(201)?;
    let answer = target.get(&format!("{}/two/log", pods(namespace))).await?;
    let message = "a container name must be specified for pod two, choose one of: [one two]";
    ensure!(answer.refusal() == (400, "BadRequest", message), "{answer:?}");
    Ok(())
}

async fn unplaced_log(target: &Target, namespace: &str) -> Result<()> {
    make(target, namespace, "a", "").await?;
    let answer = target.get(&format!("{}/a/log", pods(namespace))).await?;
    ensure!([200, 204].contains(&answer.code) && answer.body == json!(""), "{answer:?}");
    Ok(())
}

async fn connections(target: &Target, namespace: &str) -> Result<()> {
    let name = format!("dead-{namespace}");
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 9}},
        },
    });
    target.create("/api/v1/nodes", &node).await?.expect(201)?;
    make(target, namespace, "a", &name).await?;
    make(target, namespace, "b", "no-such-node").await?;
    make(target, namespace, "c", "").await?;
    let ask = async |path: &str| target.ask(Ask::new(Method::POST, &format!("{}/{path}", pods(namespace)))).await;
    for path in ["a/exec?command=ls&container=main&stdout=true", "a/attach?stdout=true", "a/portforward"] {
        let answer = ask(path).await?;
        ensure!(answer.refusal() == (400, "BadRequest", "Upgrade request required"), "{path}: {answer:?}");
    }
    let answer = ask("a/exec?command=ls&container=none").await?;
    ensure!(answer.refusal() == (400, "BadRequest", "container none is not valid for pod a"), "{answer:?}");
    let answer = ask("b/exec?command=ls").await?;
    ensure!(answer.refusal() == (404, "NotFound", "pods \"no-such-node\" not found"), "{answer:?}");
    let answer = ask("c/exec?command=ls").await?;
    ensure!(answer.refusal() == (400, "BadRequest", "pod c does not have a host assigned"), "{answer:?}");
    target.delete(&format!("/api/v1/nodes/{name}"), None).await?.expect(200)?;
    Ok(())
}

async fn tokens(target: &Target, namespace: &str) -> Result<()> {
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    target.create(&accounts, &account).await?.expect(201)?;
    let request = |spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let path = format!("{accounts}/a/token");
    let answer = target.create(&path, &request(json!({"expirationSeconds": 700}))).await?;
    answer.expect(201)?;
    ensure!(answer.text("/kind") == "TokenRequest" && answer.text("/metadata/name") == "a", "{answer:?}");
    ensure!(!answer.text("/status/expirationTimestamp").is_empty(), "{answer:?}");
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": answer.text("/status/token")},
    });
    let review = target.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
    let user = format!("system:serviceaccount:{namespace}:a");
    ensure!(review.body["status"]["authenticated"] == true, "{review:?}");
    ensure!(review.text("/status/user/username") == user, "{review:?}");
    let groups =
        json!(["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"]);
    ensure!(review.body["status"]["user"]["groups"] == groups, "{review:?}");
    let short = target.create(&path, &request(json!({"expirationSeconds": 7}))).await?;
    let message = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 7: may not \
                   specify a duration less than 10 minutes";
    ensure!(short.refusal() == (422, "Invalid", message), "{short:?}");
    let none = target.create(&format!("{accounts}/none/token"), &request(json!({}))).await?;
    ensure!(none.refusal() == (404, "NotFound", "serviceaccounts \"none\" not found"), "{none:?}");
    Ok(())
}

async fn events(target: &Target, namespace: &str) -> Result<()> {
    let old = format!("/api/v1/namespaces/{namespace}/events");
    let new = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let pod = json!({"kind": "Pod", "name": "x", "namespace": namespace});
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "involvedObject": pod, "reason": "Why",
        "message": "what", "type": "Normal", "count": 2, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:01Z", "source": {"component": "comp"},
    });
    let made = target.create(&old, &event).await?;
    made.expect(201)?;
    let seen = target.get(&format!("{new}/a")).await?;
    ensure!(seen.text("/apiVersion") == "events.k8s.io/v1" && seen.version() == made.version(), "{seen:?}");
    for (field, value) in [
        ("note", json!("what")),
        ("regarding", pod.clone()),
        ("deprecatedCount", json!(2)),
        ("deprecatedSource", json!({"component": "comp"})),
        ("deprecatedLastTimestamp", json!("2026-01-01T00:00:01Z")),
    ] {
        ensure!(seen.body[field] == value, "{field}: {seen:?}");
    }
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "b"}, "regarding": pod,
        "reason": "Why", "note": "what else", "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c", "reportingInstance": "i", "action": "Do",
    });
    let made = target.create(&new, &event).await?;
    made.expect(201)?;
    ensure!(made.text("/apiVersion") == "events.k8s.io/v1" && made.text("/note") == "what else", "{made:?}");
    let seen = target.get(&format!("{old}/b")).await?;
    ensure!(seen.text("/message") == "what else" && seen.text("/reportingComponent") == "example.com/c", "{seen:?}");
    let list = target.get(&format!("{new}?fieldSelector=regarding.name=x")).await?;
    ensure!(list.body["items"].as_array().is_some_and(|items| items.len() == 2), "{list:?}");
    let wrong = target.get(&format!("{new}?fieldSelector=involvedObject.name=x")).await?;
    ensure!(wrong.code == 400, "{wrong:?}");
    let none = target.get(&format!("{new}/none")).await?;
    ensure!(none.refusal() == (404, "NotFound", "events.events.k8s.io \"none\" not found"), "{none:?}");
    let mut watch = target.watch(&format!("{new}?watch=true&resourceVersion={}", list.version())).await?;
    target.delete(&format!("{old}/a"), None).await?.expect(200)?;
    let event = watch.next().await?.unwrap_or_default();
    ensure!(event["type"] == "DELETED" && event["object"]["note"] == "what", "{event}");
    Ok(())
}

async fn away(target: &Target, namespace: &str) -> Result<()> {
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let group = format!("{namespace}.example.com");
    let name = format!("v1.{group}");
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "none", "namespace": namespace},
        },
    });
    target.create(services, &service).await?.expect(201)?;
    let path = format!("{services}/{name}");
    let told = |answer: &Answer| answer.text("/status/conditions/0/reason") == "ServiceNotFound";
    let answer = target.until(&path, "told to be away", told).await?;
    let condition = &answer.body["status"]["conditions"][0];
    ensure!(condition["type"] == "Available" && condition["status"] == "False", "{condition}");
    let message = format!("service/none in \"{namespace}\" is not present");
    ensure!(condition["message"] == message.as_str(), "{condition}");
    for below in ["", "/things", "/namespaces/default/things/a"] {
        let answer = target.until(&format!("/apis/{group}/v1{below}"), "away", |answer| answer.code == 503).await?;
        ensure!(answer.body == json!("service unavailable\n"), "{answer:?}");
    }
    let known = target.get(&format!("/apis/{group}")).await?;
    ensure!(known.text("/preferredVersion/groupVersion") == format!("{group}/v1"), "{known:?}");
    let listed = target.get("/apis").await?;
    let groups = listed.body["groups"].as_array().cloned().unwrap_or_default();
    ensure!(groups.iter().any(|one| one["name"] == group.as_str()), "{listed:?}");
    if target.minor >= 30 {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let listed = target.ask(Ask::get("/apis").header("accept", accept)).await?;
        let items = listed.body["items"].as_array().cloned().unwrap_or_default();
        let own = items.iter().find(|item| item["metadata"]["name"] == group.as_str());
        let versions = own.map(|own| own["versions"].clone());
        ensure!(versions == Some(json!([{"version": "v1", "freshness": "Stale"}])), "{versions:?}");
    }
    target.get("/apis/apps/v1").await?.expect(200)?;
    target.delete(&path, None).await?.expect(200)?;
    target.until(&format!("/apis/{group}/v1"), "unknown", |answer| answer.code == 404).await?;
    Ok(())
}
