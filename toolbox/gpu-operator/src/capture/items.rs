//! What is captured: the items and their files.

use futures::future::join_all;
use serde_json::Value;
use toolbox_core::cluster::{Object, Query, kinds};

use super::collect::{self, Collector, Missing};
use super::running::Running;
use super::{CaptureSpec, describe, pods_of, table};
use crate::locate::Operator;
use crate::names::{CRD, POD_SELECTOR};

/// Captures everything, at the same time. The answer is what the operator itself is seen to be.
pub(super) async fn collect(collector: &Collector, operator: Option<&Operator>, spec: &CaptureSpec) -> Running {
    let guess = spec.hints.namespace.as_deref();
    let namespace = operator.map(|operator| operator.namespace.as_str()).or(guess);
    let operands = operator
        .map(|operator| operator.operand_namespace.as_str())
        .or_else(|| guess.map(crate::names::operand_namespace));
    let (running, ..) = tokio::join!(
        own_pods(collector, namespace),
        nodes(collector),
        machines(collector),
        operand_items(collector, operands),
        custom_resources(collector),
        olm(collector, namespace),
        images(collector, namespace, operands),
    );
    running
}

async fn nodes(collector: &Collector) {
    let files = ["all_nodes.list", "gpu_operator_nodes.list"];
    if let Some(nodes) = collector.list(&Query::all(&kinds::NODE), &files).await {
        let now = collector.now();
        collector.write("all_nodes.list", &table::nodes(&nodes, now));
        let gpu_nodes: Vec<Object> = nodes.into_iter().filter(crate::burn::is_gpu_node).collect();
        collector.write("gpu_operator_nodes.list", &table::nodes(&gpu_nodes, now));
        collector.yaml("gpu_operator_nodes.yaml", &gpu_nodes);
    }
}

async fn machines(collector: &Collector) {
    let query = Query::all(&kinds::MACHINE);
    if let Some(machines) = collector.list(&query, &["all_machines.list"]).await {
        collector.write("all_machines.list", &table::machines(&machines, collector.now()));
    }
}

async fn own_pods(collector: &Collector, namespace: Option<&str>) -> Running {
    let files = ["gpu_operator_pod.list", "gpu_operator_pod.yaml", "gpu_operator.log"];
    let Some(namespace) = namespace else {
        absent(collector, &files, "the operator's namespace is not known");
        return Running::default();
    };
    let query = Query::within(&kinds::POD, namespace).labels(POD_SELECTOR);
    let Some(pods) = collector.list(&query, &files).await else {
        return Running::default();
    };
    collector.write("gpu_operator_pod.list", &table::pods(&pods, collector.now()));
    collector.yaml("gpu_operator_pod.yaml", &pods);
    // An evicted pod's log is gone with it; the running one is meant.
    let alive: Vec<Object> = pods.into_iter().filter(|pod| pod.text("/status/phase") != Some("Failed")).collect();
    let log = logs(collector, "gpu_operator.log", &alive).await;
    Running { pods: alive, log }
}

async fn operand_items(collector: &Collector, namespace: Option<&str>) {
    let set_files = ["all_gpu_ds.list", "all_gpu_ds.yaml"];
    let pod_files = ["all_gpu_pods.list", "all_gpu_pods.yaml"];
    let Some(namespace) = namespace else {
        let reason = "the operator's namespace is not known";
        absent(collector, &set_files, reason);
        absent(collector, &pod_files, reason);
        return;
    };
    let (sets_query, pods_query, events_query) = (
        Query::within(&kinds::DAEMON_SET, namespace),
        Query::within(&kinds::POD, namespace),
        Query::within(&kinds::EVENT, namespace),
    );
    let (sets, pods, events) = tokio::join!(
        collector.list(&sets_query, &set_files),
        collector.list(&pods_query, &pod_files),
        collector.list(&events_query, &["events.list"]),
    );
    let now = collector.now();
    if let Some(sets) = &sets {
        collector.write("all_gpu_ds.list", &table::daemon_sets(sets, now));
        collector.yaml("all_gpu_ds.yaml", sets);
    }
    let Some(pods) = pods else { return };
    collector.write("all_gpu_pods.list", &table::pods(&pods, now));
    collector.yaml("all_gpu_pods.yaml", &pods);
    let events = events.unwrap_or_default();
    for pod in &pods {
        let file = format!("gpu_operator_{}.descr", pod.name());
        collector.write(&file, &describe::pod(pod, &events));
    }
    let sets = sets.unwrap_or_default();
    // A set that no node asks for (MIG on cards without it) has no log to miss.
    let wanted = |set: &&Object| set.number("/status/desiredNumberScheduled") != Some(0);
    let logs = sets.iter().filter(wanted).map(|set| {
        let mine: Vec<Object> = pods_of(set, &pods).into_iter().cloned().collect();
        let file = format!("gpu_operator_{}.log", set.name());
        async move {
            logs(collector, &file, &mine).await;
        }
    });
    join_all(logs.collect::<Vec<_>>()).await;
}

async fn custom_resources(collector: &Collector) {
    let (policies, crds) = (Query::all(&kinds::CLUSTER_POLICY), Query::named(&kinds::CRD, None, CRD));
    let (policies, crds) = tokio::join!(
        collector.list(&policies, &["gpu_operator_clusterpolicy.yaml"]),
        collector.list(&crds, &["gpu_operator_crd.yaml"]),
    );
    for (file, objects) in [("gpu_operator_clusterpolicy.yaml", policies), ("gpu_operator_crd.yaml", crds)] {
        match objects {
            Some(objects) if objects.is_empty() => {
                collector.missing(Missing::of(file, "there is none"));
            }
            Some(objects) => collector.yaml(file, &objects),
            None => {}
        }
    }
}

async fn olm(collector: &Collector, namespace: Option<&str>) {
    let Some(namespace) = namespace else { return };
    let of = |kind| Query::within(kind, namespace);
    let files = [
        "gpu_operator_subscription.yaml",
        "gpu_operator_installplan.yaml",
        "gpu_operator_csv.yaml",
        "gpu_operator_group.yaml",
    ];
    let (subscriptions, plans, csvs, groups) =
        (of(&kinds::SUBSCRIPTION), of(&kinds::INSTALL_PLAN), of(&kinds::CSV), of(&kinds::OPERATOR_GROUP));
    let (subscriptions, plans, csvs, groups) = tokio::join!(
        collector.list(&subscriptions, &files[0..1]),
        collector.list(&plans, &files[1..2]),
        collector.list(&csvs, &files[2..3]),
        collector.list(&groups, &files[3..4]),
    );
    for (file, objects) in files.into_iter().zip([subscriptions, plans, csvs, groups]) {
        if let Some(objects) = objects {
            collector.yaml(file, &objects);
        }
    }
}

async fn images(collector: &Collector, namespace: Option<&str>, operands: Option<&str>) {
    const FILE: &str = "gpu_operator_pod.images.list";
    let mut namespaces: Vec<&str> = [namespace, operands].into_iter().flatten().collect();
    namespaces.push("gpu-operator-ci");
    namespaces.dedup();
    let queries: Vec<Query> = namespaces.iter().map(|namespace| Query::within(&kinds::POD, namespace)).collect();
    let lists = queries.iter().map(|query| collector.list(query, &[FILE]));
    let lists = join_all(lists.collect::<Vec<_>>()).await;
    let pods: Vec<Object> = lists.into_iter().flatten().flatten().collect();
    collector.write(FILE, &table::images(&pods));
}

fn absent(collector: &Collector, files: &[&str], reason: &str) {
    for file in files {
        collector.missing(Missing::of(file, reason));
    }
}

/// The logs of all containers of these pods in one file, each line with where it comes from; also the previous life's
/// of a container that was restarted.
async fn logs(collector: &Collector, file: &str, pods: &[Object]) -> String {
    if pods.is_empty() {
        collector.missing(Missing::of(file, "it has no pod"));
        return String::new();
    }
    let wanted: Vec<_> = pods
        .iter()
        .flat_map(|pod| {
            containers(pod).into_iter().flat_map(move |(name, restarted)| {
                let previous = restarted.then_some((pod, name.clone(), true));
                [Some((pod, name, false)), previous].into_iter().flatten()
            })
        })
        .collect();
    // With room for a note about each cut.
    let share = (collect::ITEM_SIZE / wanted.len().max(1)).saturating_sub(1024);
    let reads = wanted.into_iter().map(|(pod, container, previous)| async move {
        let log = collector.log(pod, &container, previous).await;
        let life = if previous { ", previous" } else { "" };
        let place = format!("[pod/{}/{container}{life}]", pod.name());
        match log {
            Ok(log) => collect::ending(&log, collect::LOG_LINES, share, &place),
            Err(reason) => format!("{place} no log: {reason}\n"),
        }
    });
    let text = join_all(reads.collect::<Vec<_>>()).await.concat();
    collector.write(file, &text);
    text
}

/// The containers of a pod, init containers first, and whether each was restarted.
fn containers(pod: &Object) -> Vec<(String, bool)> {
    [("/spec/initContainers", "/status/initContainerStatuses"), ("/spec/containers", "/status/containerStatuses")]
        .into_iter()
        .flat_map(|(spec, status)| {
            pod.list(spec).iter().filter_map(move |container| {
                let name = container.get("name")?.as_str()?;
                let restarts = pod
                    .list(status)
                    .iter()
                    .find(|one| one.get("name").and_then(Value::as_str) == Some(name))
                    .and_then(|one| one.get("restartCount")?.as_i64());
                Some((name.to_owned(), restarts.unwrap_or(0) > 0))
            })
        })
        .collect()
}
