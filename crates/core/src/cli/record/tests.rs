//! A recording of a simulated cluster is shown again, and recorded again: the same states at the same moments.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolbox_cluster::{Cluster, ClusterInfo, kinds};
use toolbox_engine::{Clock, Redactor};
use toolbox_rehearsal::{Scenario, World};
use toolbox_testkit::Rehearsed;

use super::clean::{clean, difference};
use super::{Request, wanted, watch};
use crate::config::to_yaml;

/// What happened to each object: moments, and the state that everybody looks at.
fn sequences(scenario: &Value) -> BTreeMap<String, Vec<(f64, String)>> {
    let state = |object: &Value| {
        let conditions: Vec<String> = object["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| format!("{}={}", one["type"], one["status"]))
            .collect();
        let number = |key: &str| object["status"][key].to_string();
        format!(
            "{} {} {} {}",
            object["status"]["phase"],
            number("readyReplicas"),
            number("replicas"),
            conditions.join(",")
        )
    };
    let mut found = BTreeMap::new();
    for recorded in scenario["recorded"]["objects"].as_array().into_iter().flatten() {
        let mut object = recorded["object"].clone();
        let name = format!("{}/{}", object["kind"], object["metadata"]["name"]);
        let mut states = vec![(recorded["at"].as_f64().unwrap(), state(&object))];
        for change in recorded["changes"].as_array().into_iter().flatten() {
            let at = change["at"].as_f64().unwrap();
            if change["gone"] == true {
                states.push((at, "gone".to_owned()));
                continue;
            }
            merge(&mut object, &change["set"]);
            states.push((at, state(&object)));
        }
        states.dedup_by(|later, earlier| later.1 == earlier.1);
        found.insert(name, states);
    }
    found
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

async fn record(rehearsed: &Rehearsed, seconds: u64) -> Value {
    let request = Request { file: Path::new("x"), namespaces: &[], time: Duration::from_secs(seconds) };
    let stop = CancellationToken::new();
    let scenario = rehearsed.world().scenario();
    let info = ClusterInfo {
        server: "https://recorded".to_owned(),
        version: format!("v{}", scenario.kubernetes),
        openshift_version: Some(scenario.openshift.clone()),
        ..ClusterInfo::default()
    };
    let cluster = Cluster::from_client(rehearsed.world().client(), info, rehearsed.clock.clone());
    watch(&cluster, &rehearsed.clock, &request, &stop, &Redactor::new()).await.unwrap()
}

async fn replayed(text: &str) -> Rehearsed {
    let scenario = Scenario::from_yaml("recorded.yaml", text).expect(text);
    let clock = Clock::starting_at("2026-03-01T00:00:00Z".parse().unwrap());
    let world = World::start(scenario, 9, clock.clone()).await.unwrap();
    Rehearsed::of(world, clock)
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_is_shown_at_the_same_moments() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let machines = Some("openshift-machine-api");
    let actor = async {
        rehearsed.clock.sleep(Duration::from_secs(10)).await;
        let more = json!({"spec": {"replicas": 2}});
        rehearsed.somebody_changes(&kinds::MACHINE_SET, machines, "demo-x7k2p-worker-a", more).await;
        rehearsed.clock.sleep(Duration::from_secs(400)).await;
        let fewer = json!({"spec": {"replicas": 0}});
        rehearsed.somebody_changes(&kinds::MACHINE_SET, machines, "demo-x7k2p-worker-a", fewer).await;
    };
    let (first, ()) = tokio::join!(record(&rehearsed, 700), actor);
    let seen = sequences(&first);
    let of = |kind: &str| seen.iter().filter(|(name, _)| name.starts_with(&format!("\"{kind}\""))).count();
    assert_eq!((of("Node"), of("Machine"), of("MachineSet")), (7, 4, 3), "{seen:#?}");
    let busy = seen.values().filter(|states| states.len() > 2).count();
    assert!(busy >= 3, "a machine, its node and its set: {seen:#?}");

    let again = replayed(&to_yaml(&first).unwrap()).await;
    let second = sequences(&record(&again, 700).await);
    assert_eq!(second, seen);
}

#[tokio::test(start_paused = true)]
async fn a_verb_goes_on_from_what_was_recorded() {
    let rehearsed = Rehearsed::new("default", &[]).await;
    let first = record(&rehearsed, 5).await;
    let again = replayed(&to_yaml(&first).unwrap()).await;
    // Somebody changes what is wanted: from then on the set is the controllers'.
    let machines = Some("openshift-machine-api");
    let more = json!({"spec": {"replicas": 2}});
    again.somebody_changes(&kinds::MACHINE_SET, machines, "demo-x7k2p-worker-a", more).await;
    again.clock.sleep(Duration::from_secs(600)).await;
    let running = again.all(&kinds::MACHINE).await;
    let running = running.iter().filter(|machine| machine.text("/status/phase") == Some("Running")).count();
    assert_eq!(running, 4);
    assert_eq!(again.all(&kinds::NODE).await.len(), 7);
}

#[test]
fn secrets_and_noise_stay_out() {
    let object = json!({
        "kind": "Pod",
        "metadata": {
            "name": "a", "managedFields": [1], "resourceVersion": "7",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}", "example.com/token": "abc", "keep": "me",
            },
        },
        "spec": {"containers": [{
            "env": [{"name": "PLAIN", "value": "s3cr3t-anyway"}, {"name": "REF", "valueFrom": {"fieldRef": {}}}],
            "args": ["--token=hunter2hunter2"],
        }]},
        "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]},
    });
    let redactor = Redactor::new();
    redactor.register("known-to-be-secret");
    let mut object = object;
    object["spec"]["nodeName"] = "known-to-be-secret".into();
    let clean = clean(&object, &redactor);
    let text = clean.to_string();
    for secret in ["s3cr3t", "abc", "hunter2", "known-to-be", "lastHeartbeat", "managedFields", "resourceVersion"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert_eq!(clean["metadata"]["annotations"], json!({"keep": "me"}));
    assert_eq!(clean["spec"]["containers"][0]["env"][1]["name"], "REF");
}

#[test]
fn a_difference_is_a_merge_patch() {
    let (old, new) = (json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}), json!({"a": 1, "b": {"c": 2}, "e": [2]}));
    let patch = difference(&old, &new).unwrap();
    assert_eq!(patch, json!({"b": {"d": null, "c": 2}, "e": [2]}));
    let mut patched = old;
    merge(&mut patched, &patch);
    assert_eq!(patched, new);
    assert_eq!(difference(&new, &new), None);
}

#[test]
fn the_platforms_own_namespaces_are_left_out_unless_asked_for() {
    let pods = |asked: &[&str], namespace: &str| {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        wanted(&asked, &kinds::POD, namespace)
    };
    assert!(pods(&[], "nvidia-gpu-operator") && pods(&[], "openshift-nfd") && pods(&[], "default"));
    assert!(!pods(&[], "openshift-monitoring") && !pods(&[], "kube-system") && !pods(&[], "openshift-machine-api"));
    assert!(pods(&["openshift-monitoring"], "openshift-monitoring") && !pods(&["a"], "default"));
    assert!(wanted(&[], &kinds::MACHINE, "openshift-machine-api"));
    assert!(wanted(&["a".to_owned()], &kinds::MACHINE, "openshift-machine-api"));
}
