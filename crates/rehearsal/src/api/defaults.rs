//! What a server fills in for the built-in kinds.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{kinds::KindDef, server::State, version::KubeVersion};
use crate::store::object::{at, child_mut, map_mut, meta, meta_str, set_at, set_meta};

/// Fills in what a new object gets once.
pub(super) fn on_create(state: &mut State, version: KubeVersion, kind: &KindDef, object: &mut Value) {
    if kind.status && !kind.custom {
        missing(object, "status", || json!({}));
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "namespaces") => {
            set_at(object, "spec.finalizers", json!(["kubernetes"]));
            set_at(object, "status", json!({"phase": "Active"}));
        }
        ("", "pods") => {
            admit(child_mut(object, "spec"));
            set_at(object, "status", json!({"phase": "Pending", "qosClass": qos(object)}));
        }
        ("apps", "daemonsets") => {
            let none = json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0});
            set_at(object, "status", none);
        }
        ("policy", "poddisruptionbudgets") => {
            let none = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
            set_at(object, "status", none);
        }
        ("", "services") => {
            let headless =
                at(object, "spec.clusterIP").and_then(Value::as_str).is_some_and(|address| address == "None");
            if at(object, "spec.clusterIP").is_none() && text(object, "spec.type") != "ExternalName" {
                let address = state.service_address();
                set_at(object, "spec.clusterIP", address.clone().into());
                set_at(object, "spec.clusterIPs", json!([address]));
            } else if headless {
                set_at(object, "spec.clusterIPs", json!(["None"]));
            }
            missing(object, "spec.ipFamilies", || json!(["IPv4"]));
            missing(object, "spec.ipFamilyPolicy", || json!("SingleStack"));
            set_at(object, "status", json!({"loadBalancer": {}}));
        }
        ("batch", "jobs") => {
            if at(object, "spec.selector").is_none() {
                select_by_uid(object, version);
            }
            if meta(object, "labels").is_none() {
                let labels = at(object, "spec.template.metadata.labels").cloned().unwrap_or(Value::Null);
                set_meta(object, "labels", labels);
            }
        }
        ("", "persistentvolumeclaims" | "persistentvolumes") => set_at(object, "status", json!({"phase": "Pending"})),
        _ => {}
    }
}

/// A job's pods carry its uid, under the names of the server's version.
fn select_by_uid(job: &mut Value, version: KubeVersion) {
    let uid = meta_str(job, "uid").to_owned();
    let name = meta_str(job, "name").to_owned();
    let prefixes: &[&str] = if version.minor >= 27 { &["batch.kubernetes.io/", ""] } else { &[""] };
    set_at(job, "spec.selector", json!({"matchLabels": {format!("{}controller-uid", prefixes[0]): uid}}));
    let metadata = child_mut(child_mut(child_mut(job, "spec"), "template"), "metadata");
    let labels = map_mut(child_mut(metadata, "labels"));
    for prefix in prefixes {
        labels.insert(format!("{prefix}controller-uid"), uid.clone().into());
        labels.insert(format!("{prefix}job-name"), name.clone().into());
    }
}

/// Fills in what admission adds to a new pod.
fn admit(spec: &mut Value) {
    missing(spec, "serviceAccountName", || json!("default"));
    missing(spec, "serviceAccount", || json!("default"));
    missing(spec, "preemptionPolicy", || json!("PreemptLowerPriority"));
    missing(spec, "priority", || json!(0));
    grace_tolerations(spec);
}

/// Quantities are text, whatever they were written as.
fn quantities(container: &mut Value, is_pod: bool) {
    for list in ["limits", "requests"] {
        let map = container.get_mut("resources").and_then(|resources| resources.get_mut(list));
        for (_, value) in map.and_then(Value::as_object_mut).into_iter().flatten() {
            if value.is_number() {
                *value = value.to_string().into();
            }
        }
    }
    let limits = at(container, "resources.limits").and_then(Value::as_object).cloned();
    for (name, value) in limits.filter(|_| is_pod).into_iter().flatten() {
        let requests = map_mut(child_mut(child_mut(container, "resources"), "requests"));
        requests.entry(name).or_insert(value);
    }
}

/// Fills in what holds for new and changed objects alike.
pub(super) fn always(kind: &KindDef, object: &mut Value) {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => pod_spec(child_mut(object, "spec"), true),
        ("", "secrets") => secret(object),
        ("", "namespaces") => {
            let name = meta_str(object, "name").to_owned();
            let mut labels = meta(object, "labels").cloned().unwrap_or_else(|| json!({}));
            map_mut(&mut labels).insert("kubernetes.io/metadata.name".into(), name.into());
            set_meta(object, "labels", labels);
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            let kind = text(object, "spec.names.kind").to_owned();
            missing(object, "spec.names.listKind", || format!("{kind}List").into());
            missing(object, "spec.names.singular", || kind.to_lowercase().into());
            missing(object, "spec.conversion", || json!({"strategy": "None"}));
        }
        ("", "nodes") => {
            if let Some(capacity) = at(object, "status.capacity").cloned() {
                missing(object, "status.allocatable", || capacity);
            }
        }
        ("", "services") => service(object),
        ("apps", "deployments") => {
            missing(object, "spec.replicas", || json!(1));
            missing(object, "spec.strategy.type", || json!("RollingUpdate"));
            if text(object, "spec.strategy.type") == "RollingUpdate" {
                missing(object, "spec.strategy.rollingUpdate.maxUnavailable", || json!("25%"));
                missing(object, "spec.strategy.rollingUpdate.maxSurge", || json!("25%"));
            }
            missing(object, "spec.revisionHistoryLimit", || json!(10));
            missing(object, "spec.progressDeadlineSeconds", || json!(600));
            template(object);
        }
        ("apps", "replicasets" | "statefulsets") => {
            missing(object, "spec.replicas", || json!(1));
            template(object);
        }
        ("apps", "daemonsets") => {
            missing(object, "spec.updateStrategy.type", || json!("RollingUpdate"));
            if text(object, "spec.updateStrategy.type") == "RollingUpdate" {
                missing(object, "spec.updateStrategy.rollingUpdate.maxUnavailable", || json!(1));
                missing(object, "spec.updateStrategy.rollingUpdate.maxSurge", || json!(0));
            }
            missing(object, "spec.revisionHistoryLimit", || json!(10));
            template(object);
        }
        ("batch", "jobs") => {
            if at(object, "spec.parallelism").is_none() && at(object, "spec.completions").is_none() {
                missing(object, "spec.completions", || json!(1));
            }
            missing(object, "spec.parallelism", || json!(1));
            missing(object, "spec.backoffLimit", || json!(6));
            missing(object, "spec.completionMode", || json!("NonIndexed"));
            missing(object, "spec.suspend", || json!(false));
            template(object);
        }
        _ => {}
    }
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

fn missing(object: &mut Value, path: &str, value: impl FnOnce() -> Value) {
    if at(object, path).is_none() {
        set_at(object, path, value());
    }
}

fn template(object: &mut Value) {
    if at(object, "spec.template.spec").is_some() {
        let spec = child_mut(child_mut(child_mut(object, "spec"), "template"), "spec");
        pod_spec(spec, false);
    }
}

fn pod_spec(spec: &mut Value, is_pod: bool) {
    missing(spec, "restartPolicy", || json!("Always"));
    missing(spec, "dnsPolicy", || json!("ClusterFirst"));
    missing(spec, "schedulerName", || json!("default-scheduler"));
    missing(spec, "terminationGracePeriodSeconds", || json!(30));
    missing(spec, "securityContext", || json!({}));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        missing(spec, "serviceAccount", || account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        missing(spec, "serviceAccountName", || account);
    }
    if is_pod {
        missing(spec, "enableServiceLinks", || json!(true));
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let image = text(container, "image").to_owned();
            let tagged = image.rsplit('/').next().is_some_and(|last| last.contains(':') && !last.ends_with(":latest"));
            let policy = if tagged || image.contains('@') { "IfNotPresent" } else { "Always" };
            missing(container, "imagePullPolicy", || json!(policy));
            missing(container, "resources", || json!({}));
            quantities(container, is_pod);
            missing(container, "terminationMessagePath", || json!("/dev/termination-log"));
            missing(container, "terminationMessagePolicy", || json!("File"));
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                missing(port, "protocol", || json!("TCP"));
            }
            for entry in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                if at(entry, "valueFrom.fieldRef").is_some() {
                    missing(entry, "valueFrom.fieldRef.apiVersion", || json!("v1"));
                }
            }
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                if let Some(probe) = container.get_mut(probe) {
                    for (field, value) in
                        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
                    {
                        missing(probe, field, || json!(value));
                    }
                }
            }
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "projected"] {
            if at(volume, source).is_some() {
                missing(volume, &format!("{source}.defaultMode"), || json!(420));
            }
        }
        if at(volume, "hostPath").is_some() {
            missing(volume, "hostPath.type", || json!(""));
        }
    }
}

/// A node that is not ready or cannot be reached is tolerated for five minutes.
fn grace_tolerations(spec: &mut Value) {
    let mut list = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covered = list.iter().any(|one| {
            let matches = one.get("key").and_then(Value::as_str).is_none_or(|own| own == key);
            let effect = one.get("effect").and_then(Value::as_str).is_none_or(|effect| effect == "NoExecute");
            matches && effect
        });
        if !covered {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    set_at(spec, "tolerations", list.into());
}

fn secret(object: &mut Value) {
    let folded = object.as_object_mut().and_then(|map| map.shift_remove("stringData"));
    if let Some(Value::Object(texts)) = folded {
        let data = map_mut(child_mut(object, "data"));
        for (name, value) in texts {
            data.insert(name, STANDARD.encode(value.as_str().unwrap_or_default()).into());
        }
    }
    missing(object, "type", || json!("Opaque"));
}

fn service(object: &mut Value) {
    missing(object, "spec.type", || json!("ClusterIP"));
    missing(object, "spec.sessionAffinity", || json!("None"));
    missing(object, "spec.internalTrafficPolicy", || json!("Cluster"));
    let ports = object.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        missing(port, "protocol", || json!("TCP"));
        let number = port.get("port").cloned().unwrap_or(Value::Null);
        missing(port, "targetPort", || number);
    }
}

fn qos(pod: &Value) -> &'static str {
    let containers = at(pod, "spec.containers").and_then(Value::as_array);
    let (mut any, mut all) = (false, true);
    let empty = Map::new();
    for container in containers.into_iter().flatten() {
        let map = |path: &str| at(container, path).and_then(Value::as_object).unwrap_or(&empty);
        let (limits, requests) = (map("resources.limits"), map("resources.requests"));
        for name in ["cpu", "memory"] {
            any |= limits.contains_key(name) || requests.contains_key(name);
            all &= limits.contains_key(name) && requests.get(name).is_none_or(|value| Some(value) == limits.get(name));
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
