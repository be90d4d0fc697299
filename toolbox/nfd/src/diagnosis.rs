//! What is looked at when labels do not come.

use std::collections::{BTreeMap, BTreeSet};

use toolbox_core::cluster::nodes::{NFD_PREFIX, is_worker};
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::engine::StepCx;
use toolbox_core::engine::why::Evidence;

use crate::Labels;
use crate::verdict::{Sight, is_installed_operator};

/// One look at what of NFD is on the cluster.
pub(crate) async fn sight(cluster: &Cluster) -> Sight {
    let found = |result: Result<Vec<Object>, _>| match result {
        Ok(objects) => Some(objects),
        Err(error) => {
            let error: toolbox_core::cluster::ClusterError = error;
            error.is_not_served().then(Vec::new)
        }
    };
    let csvs = found(cluster.list(&Query::all(&kinds::CSV).labels("!olm.copiedFrom")).await);
    let instances = found(cluster.list(&Query::all(&kinds::NODE_FEATURE_DISCOVERY)).await);
    Sight {
        operator: csvs.map(|csvs| csvs.iter().any(is_installed_operator)),
        instance: instances.map(|instances| !instances.is_empty()),
    }
}

/// Looks when the step fails: instances, workers' daemon sets, features kept twice; and saves the labels of the workers.
pub(crate) fn on_failure(cx: &StepCx, cluster: &Cluster, labels: Labels) {
    let (cx, cluster) = (cx.clone(), cluster.clone());
    cx.clone().diagnose_with(move || async move {
        let mut evidence = Vec::new();
        let nodes = cluster.list(&Query::all(&kinds::NODE)).await.unwrap_or_default();
        cx.file("nodes.labels", label_lines(&nodes));
        let instances = cluster.list(&Query::all(&kinds::NODE_FEATURE_DISCOVERY)).await.unwrap_or_default();
        for instance in &instances {
            evidence.push(Evidence { label: instance.refer().to_string(), text: state(instance) });
        }
        let namespaces: BTreeSet<&str> = instances.iter().filter_map(Object::namespace).collect();
        for namespace in namespaces {
            let query = Query::within(&kinds::DAEMON_SET, namespace);
            for set in cluster.list(&query).await.unwrap_or_default() {
                let number = |path| set.number(path).unwrap_or(0);
                evidence.push(Evidence {
                    label: format!("DaemonSet {namespace}/{}", set.name()),
                    text: format!(
                        "{} of {} pods ready, {} nodes in the cluster",
                        number("/status/numberReady"),
                        number("/status/desiredNumberScheduled"),
                        nodes.len()
                    ),
                });
            }
        }
        if labels == Labels::Gpu {
            let features = cluster.list(&Query::all(&kinds::NODE_FEATURE)).await.unwrap_or_default();
            evidence.extend(kept_twice(&features));
        }
        evidence
    });
}

fn state(instance: &Object) -> String {
    let conditions: Vec<String> = ["Available", "Progressing", "Degraded"]
        .into_iter()
        .filter_map(|kind| {
            let condition = instance.condition(kind)?;
            Some(format!("{kind}={} {}", condition.status, condition.text()))
        })
        .collect();
    if conditions.is_empty() { "no conditions".to_owned() } else { conditions.join("; ") }
}

/// Old features in a namespace that NFD has left win over the fresh ones.
fn kept_twice(features: &[Object]) -> Option<Evidence> {
    let mut by_node: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for feature in features {
        let node = feature.label("nfd.node.kubernetes.io/node-name").unwrap_or(feature.name());
        by_node.entry(node).or_default().insert(feature.namespace().unwrap_or_default());
    }
    let twice: Vec<String> = by_node
        .into_iter()
        .filter(|(_, namespaces)| namespaces.len() > 1)
        .map(|(node, namespaces)| {
            let namespaces: Vec<&str> = namespaces.into_iter().collect();
            format!("{node} in {}", namespaces.join(" and "))
        })
        .collect();
    (!twice.is_empty()).then(|| Evidence {
        label: "NodeFeature objects of one node in several namespaces".to_owned(),
        text: twice.join("\n"),
    })
}

fn label_lines(nodes: &[Object]) -> String {
    let mut lines = Vec::new();
    for node in nodes.iter().filter(|node| is_worker(node)) {
        lines.push(node.name().to_owned());
        let labels = node.labels();
        let nfd = labels.iter().filter(|(key, _)| key.starts_with(NFD_PREFIX));
        lines.extend(nfd.map(|(key, value)| format!("  {key}={value}")));
    }
    format!("{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn features_of_one_node_in_two_namespaces_are_named() {
        let feature = |namespace: &str| {
            Object::new(json!({"kind": "NodeFeature", "metadata": {"name": "worker-gpu-1", "namespace": namespace}}))
        };
        let found = kept_twice(&[feature("gpu-operator"), feature("openshift-nfd")]).unwrap();
        assert_eq!(found.text, "worker-gpu-1 in gpu-operator and openshift-nfd");
        assert!(kept_twice(&[feature("openshift-nfd")]).is_none());
    }
}
