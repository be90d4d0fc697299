//! What stands in a cell.

use jiff::Timestamp;
use serde_json::Value;

use super::{super::kinds::Column, pods};
use crate::store::object::{at, meta};

pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(object: &Value, path: &str) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Seconds since a moment that the object names.
pub(super) fn since(object: &Value, path: &str, now: Timestamp) -> Option<i64> {
    let then: Timestamp = text(object, path).parse().ok()?;
    Some(now.duration_since(then).as_secs())
}

/// A custom resource's cell.
pub(super) fn custom(object: &Value, column: &Column, now: Timestamp) -> Value {
    let value = lookup(object, &column.path);
    if column.kind != "date" {
        return value.cloned().unwrap_or(Value::Null);
    }
    match value.and_then(Value::as_str) {
        None => "<unknown>".into(),
        Some(text) => text
            .parse::<Timestamp>()
            .map_or("<invalid>".into(), |then| human(now.duration_since(then).as_secs()).into()),
    }
}

/// A built-in kind's cell, from a path or the name of a rule and what it is about.
pub(super) fn built_in(object: &Value, source: &str, now: Timestamp) -> Value {
    let Some(rule) = source.strip_prefix('=') else {
        return lookup(object, source).cloned().unwrap_or_else(|| "".into());
    };
    let (rule, about) = rule.split_once(' ').unwrap_or((rule, ""));
    let path = about.trim_start_matches('.');
    let or = |other: &str| match at(object, path) {
        None | Some(Value::Null) => other.into(),
        Some(Value::String(text)) if text.is_empty() => other.into(),
        Some(Value::Number(number)) => number.to_string().into(),
        Some(value) => value.clone(),
    };
    match rule {
        "age" => ago(object, "metadata.creationTimestamp", now, "<unknown>"),
        "ago" => ago(object, path, now, "<none>"),
        "or-none" => or("<none>"),
        "or-unknown" => or("<unknown>"),
        "or-unset" => or("<unset>"),
        "or-na" => or("N/A"),
        "number" => number(object, path).into(),
        "flag" => (at(object, path) == Some(&Value::Bool(true))).into(),
        "sizes" => about.split(' ').map(|path| size(object, path.trim_start_matches('.'))).sum::<usize>().into(),
        "labels" => labels(at(object, path)).into(),
        "pod-ready" => pods::ready(object).into(),
        "pod-status" => pods::status(object).into(),
        "pod-restarts" => pods::restarts(object, now).into(),
        "node-status" => node_status(object).into(),
        "replicas" => format!("{}/{}", number(object, "status.readyReplicas"), number(object, "spec.replicas")).into(),
        "containers" => of_containers(object, "name").into(),
        "images" => of_containers(object, "image").into(),
        "selector" => selector(at(object, if path.is_empty() { "spec.selector" } else { path })).into(),
        "roles" => roles(object).into(),
        "suspend" => if at(object, "spec.suspend") == Some(&Value::Bool(true)) { "True" } else { "False" }.into(),
        "quota" => quota(object, about).into(),
        _ => named(object, rule, about, now).into(),
    }
}

fn named(object: &Value, rule: &str, about: &str, now: Timestamp) -> String {
    let first_seen = || {
        let first = since(object, "firstTimestamp", now).or_else(|| since(object, "eventTime", now));
        first.map_or_else(|| "<unknown>".to_owned(), human)
    };
    match rule {
        "address" => {
            let found = list(object, "status.addresses").iter().find(|one| text(one, "type") == about);
            found.map_or("<none>", |one| text(one, "address")).to_owned()
        }
        "external" => external(object),
        "service-ports" => joined(list(object, "spec.ports").iter().map(|port| match number(port, "nodePort") {
            0 => format!("{}/{}", number(port, "port"), text(port, "protocol")),
            node => format!("{}:{node}/{}", number(port, "port"), text(port, "protocol")),
        })),
        "gates" => {
            let gates = list(object, "spec.readinessGates");
            let met = |gate: &&Value| {
                list(object, "status.conditions")
                    .iter()
                    .any(|one| text(one, "type") == text(gate, "conditionType") && text(one, "status") == "True")
            };
            if gates.is_empty() {
                "<none>".into()
            } else {
                format!("{}/{}", gates.iter().filter(met).count(), gates.len())
            }
        }
        "endpoints" => few(list(object, "subsets").iter().flat_map(|subset| {
            list(subset, "ports").iter().flat_map(move |port| {
                list(subset, "addresses").iter().map(move |one| format!("{}:{}", text(one, "ip"), number(port, "port")))
            })
        })),
        "access" => {
            let short = list(object, "spec.accessModes").iter().filter_map(Value::as_str).map(|mode| match mode {
                "ReadWriteOnce" => "RWO",
                "ReadOnlyMany" => "ROX",
                "ReadWriteMany" => "RWX",
                _ => "RWOP",
            });
            short.collect::<Vec<_>>().join(",")
        }
        "claim" => match (text(object, "spec.claimRef.namespace"), text(object, "spec.claimRef.name")) {
            (_, "") => String::new(),
            (namespace, name) => format!("{namespace}/{name}"),
        },
        "involved" => {
            format!("{}/{}", text(object, "involvedObject.kind").to_lowercase(), text(object, "involvedObject.name"))
        }
        "source" => {
            let component = ["source.component", "reportingComponent"].map(|path| text(object, path));
            let host = ["source.host", "reportingInstance"].map(|path| text(object, path));
            let first = |all: [&str; 2]| all.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned();
            let (component, host) = (first(component), first(host));
            if host.is_empty() { component } else { format!("{component}, {host}") }
        }
        "message" => text(object, "message").trim().to_owned(),
        "seen-first" => first_seen(),
        "seen-last" => {
            let last = since(object, "series.lastObservedTime", now).or_else(|| since(object, "lastTimestamp", now));
            last.map_or_else(first_seen, human)
        }
        "count" => number(object, "series.count").max(number(object, "count")).max(1).to_string(),
        "controller" => {
            let owner = list(object, "metadata.ownerReferences").iter().find(|one| at(one, "controller").is_some());
            owner.map_or("<none>".into(), |owner| {
                let group = text(owner, "apiVersion").split_once('/').map(|(group, _)| format!(".{group}"));
                format!("{}{}/{}", text(owner, "kind").to_lowercase(), group.unwrap_or_default(), text(owner, "name"))
            })
        }
        "job-status" => job_status(object).to_owned(),
        "completions" => {
            let done = number(object, "status.succeeded");
            match (at(object, "spec.completions"), number(object, "spec.parallelism")) {
                (Some(all), _) => format!("{done}/{all}"),
                (None, side) if side > 1 => format!("{done}/1 of {side}"),
                _ => format!("{done}/1"),
            }
        }
        "job-duration" => since(object, "status.startTime", now)
            .map_or_else(String::new, |all| human(all - since(object, "status.completionTime", now).unwrap_or(0))),
        "reference" => {
            format!("{}/{}", text(object, "spec.scaleTargetRef.kind"), text(object, "spec.scaleTargetRef.name"))
        }
        "targets" => joined(list(object, "spec.metrics").iter().map(|metric| {
            let wanted = number(metric, "resource.target.averageUtilization");
            format!("{}: <unknown>/{wanted}%", text(metric, "resource.name"))
        })),
        "slice-ports" => few(list(object, "ports").iter().map(|port| number(port, "port").to_string())),
        "slice-endpoints" => few(list(object, "endpoints")
            .iter()
            .flat_map(|one| list(one, "addresses"))
            .filter_map(Value::as_str)
            .map(Into::into)),
        "hosts" => {
            let hosts =
                list(object, "spec.rules").iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty());
            let hosts = few(hosts.map(Into::into));
            if hosts == "<none>" || hosts == "<unset>" { "*".into() } else { hosts }
        }
        "ingress-address" => {
            let all = list(object, "status.loadBalancer.ingress").iter();
            all.map(|one| format!("{}{}", text(one, "ip"), text(one, "hostname"))).collect::<Vec<_>>().join(",")
        }
        "ingress-ports" => if list(object, "spec.tls").is_empty() { "80" } else { "80, 443" }.to_owned(),
        "role" => format!("{}/{}", text(object, "roleRef.kind"), text(object, "roleRef.name")),
        "subjects" => {
            let of = list(object, "subjects").iter().filter(|one| text(one, "kind") == about);
            let names = of.map(|one| match (about, text(one, "namespace")) {
                ("ServiceAccount", namespace) => format!("{namespace}/{}", text(one, "name")),
                _ => text(one, "name").to_owned(),
            });
            names.collect::<Vec<_>>().join(", ")
        }
        "service" => match (text(object, "spec.service.namespace"), text(object, "spec.service.name")) {
            (_, "") => "Local".into(),
            (namespace, name) => format!("{namespace}/{name}"),
        },
        "available" => {
            let found = list(object, "status.conditions").iter().find(|one| text(one, "type") == "Available");
            match found.map(|one| (text(one, "status"), text(one, "reason"))) {
                Some(("True", _)) => "True".into(),
                Some((word, reason)) if !reason.is_empty() => format!("{word} ({reason})"),
                Some((word, _)) => word.into(),
                None => "Unknown".into(),
            }
        }
        _ => String::new(),
    }
}

fn size(object: &Value, path: &str) -> usize {
    match at(object, path) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "<none>".into() } else { items.join(",") }
}

/// Three of them, and how many more.
fn few(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.len() {
        0 => "<none>".into(),
        1..=3 => items.join(","),
        all => format!("{} + {} more...", items[..3].join(","), all - 3),
    }
}

/// Labels as `a=b,c=d` in order.
fn labels(map: Option<&Value>) -> String {
    let mut pairs: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    joined(pairs.into_iter())
}

/// A selector, in either of its two forms.
fn selector(value: Option<&Value>) -> String {
    let Some(map) = value.and_then(Value::as_object).filter(|map| !map.is_empty()) else { return "<none>".into() };
    if !map.contains_key("matchLabels") && !map.contains_key("matchExpressions") {
        return labels(value);
    }
    let mut parts: Vec<String> = Vec::new();
    if let Some(own) = map.get("matchLabels") {
        parts.push(labels(Some(own)));
    }
    for one in map.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let values: Vec<&str> = list(one, "values").iter().filter_map(Value::as_str).collect();
        let key = text(one, "key");
        parts.push(match text(one, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn of_containers(object: &Value, field: &str) -> String {
    let places =
        ["spec.template.spec.containers", "spec.jobTemplate.spec.template.spec.containers", "template.spec.containers"];
    let containers = places.into_iter().map(|place| list(object, place)).find(|list| !list.is_empty());
    containers.unwrap_or_default().iter().map(|one| text(one, field)).collect::<Vec<_>>().join(",")
}

fn ago(object: &Value, path: &str, now: Timestamp, otherwise: &str) -> Value {
    since(object, path, now).map_or_else(|| otherwise.into(), |seconds| human(seconds).into())
}

fn external(service: &Value) -> String {
    let own = || list(service, "spec.externalIPs").iter().filter_map(Value::as_str).map(Into::into);
    match text(service, "spec.type") {
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        "LoadBalancer" => {
            let given = list(service, "status.loadBalancer.ingress").iter();
            let all: Vec<String> =
                given.map(|one| format!("{}{}", text(one, "ip"), text(one, "hostname"))).chain(own()).collect();
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        _ => joined(own()),
    }
}

fn job_status(job: &Value) -> &'static str {
    let is = |kind: &str| {
        list(job, "status.conditions").iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
    };
    let words = [("Complete", "Complete"), ("Failed", "Failed")];
    if let Some((_, word)) = words.into_iter().find(|(kind, _)| is(kind)) {
        return word;
    }
    if crate::store::object::is_deleting(job) {
        return "Terminating";
    }
    let words = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
    words.into_iter().find(|kind| is(kind)).unwrap_or("Running")
}

/// `pods: 1/10`, for what is asked for or for what is limited.
fn quota(object: &Value, prefix: &str) -> String {
    let hard = at(object, "status.hard").and_then(Value::as_object);
    let mut names: Vec<&String> = hard.into_iter().flatten().map(|(name, _)| name).collect();
    names.sort();
    let limits = |name: &&&String| name.starts_with("limits.") != prefix.is_empty();
    let text = |part: &str, name: &str| {
        let found = at(object, "status").and_then(|status| status.get(part)?.get(name));
        found.map_or_else(|| "0".to_owned(), |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let parts: Vec<String> = names
        .iter()
        .filter(limits)
        .map(|name| format!("{name}: {}/{}", text("used", name), text("hard", name)))
        .collect();
    parts.join(", ")
}

fn roles(node: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in meta(node, "labels").and_then(Value::as_object).into_iter().flatten() {
        let own =
            if key == "kubernetes.io/role" { value.as_str() } else { key.strip_prefix("node-role.kubernetes.io/") };
        roles.extend(own.filter(|role| !role.is_empty()));
    }
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".into() } else { roles.join(",") }
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "status.conditions").iter().find(|one| text(one, "type") == "Ready");
    let word = match ready.map(|one| text(one, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let off = at(node, "spec.unschedulable") == Some(&Value::Bool(true));
    format!("{word}{}", if off { ",SchedulingDisabled" } else { "" })
}

/// A JSON path with names, indices, and filters such as `[?(@.type=="Ready")]`.
fn lookup<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = object;
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, tail) = after.split_once(']')?;
            rest = tail.trim_start_matches('.');
            here = if let Some(filter) = inside.strip_prefix("?(@.").and_then(|filter| filter.strip_suffix(')')) {
                let (name, wanted) = filter.split_once("==")?;
                let wanted = wanted.trim().trim_matches(['\'', '"']);
                here.as_array()?.iter().find(|item| item.get(name.trim()).and_then(Value::as_str) == Some(wanted))?
            } else {
                match inside.parse::<usize>() {
                    Ok(index) => here.get(index)?,
                    Err(_) => here.get(inside.trim_matches(['\'', '"']))?,
                }
            };
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, tail) = rest.split_at(end);
        here = here.get(name)?;
        rest = tail.trim_start_matches('.');
    }
    Some(here)
}

/// A length of time as people read it: the two largest units while the smaller one matters.
pub(super) fn human(seconds: i64) -> String {
    let two = |large: i64, big: &str, small: i64, little: &str| {
        if small == 0 { format!("{large}{big}") } else { format!("{large}{big}{small}{little}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match (seconds, minutes, hours) {
        (..-1, ..) => "<invalid>".into(),
        (-1, ..) => "0s".into(),
        (..120, ..) => format!("{seconds}s"),
        (_, ..10, _) => two(minutes, "m", seconds % 60, "s"),
        (_, ..180, _) => format!("{minutes}m"),
        (.., ..8) => two(hours, "h", minutes % 60, "m"),
        (.., ..48) => format!("{hours}h"),
        (.., ..192) => two(hours / 24, "d", hours % 24, "h"),
        (.., ..17_520) => format!("{}d", hours / 24),
        (.., ..70_080) => two(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths_of_time_read_as_kubectl_prints_them() {
        let all = [119, 120, 130, 599, 600, 10_799, 10_800, 28_799, 28_800, 172_800, 180_000, 691_200];
        let read: Vec<String> = all.into_iter().map(human).collect();
        assert_eq!(read, ["119s", "2m", "2m10s", "9m59s", "10m", "179m", "3h", "7h59m", "8h", "2d", "2d2h", "8d"]);
    }

    #[test]
    fn cells_say_what_is_missing() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let cell = |object: &Value, source: &str| built_in(object, source, now);
        let service = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}]}});
        assert_eq!(cell(&service, "=external"), "<none>");
        assert_eq!(cell(&service, "=service-ports"), "80/TCP");
        assert_eq!(cell(&service, "=labels .spec.selector"), "<none>");
        assert_eq!(cell(&json!({"data": {"a": "b"}}), "=sizes .data .binaryData"), 1);
        let set = json!({"spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["x", "y"]},
        ]}}});
        assert_eq!(cell(&set, "=selector"), "a=1,b=2,c in (x,y)");
        let quota = json!({"status": {"hard": {"pods": "3", "limits.cpu": "1"}, "used": {"pods": "1"}}});
        assert_eq!(
            (cell(&quota, "=quota"), cell(&quota, "=quota limits.")),
            ("pods: 1/3".into(), "limits.cpu: 0/1".into())
        );
    }
}
