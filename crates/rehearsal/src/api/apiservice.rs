//! Groups that other servers answer for: while such a server is away, its group is, and nothing else.

use http::Response;
use serde_json::{Value, json};

use super::{
    body::{ApiBody, rewrite},
    route::{Route, Target},
    server::{Inner, State},
    status::ApiError,
};
use crate::store::{
    Resource,
    object::{Key, at, set_at},
};

fn resource() -> Resource {
    Resource::new("apiregistration.k8s.io", "apiservices")
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// An object was stored or removed: the services that other servers stand behind are looked at again.
pub(super) fn written(inner: &Inner, state: &mut State, changed: &Resource) {
    let matters = *changed == resource()
        || changed.group.is_empty() && ["services", "endpoints"].contains(&changed.plural.as_str())
        || changed.plural == "endpointslices";
    if !matters {
        return;
    }
    for (_, service) in state.store.list(&resource(), None) {
        let Some(backend) = at(&service, "spec.service") else { continue };
        let condition = availability(inner, state, &service, backend);
        let known = at(&service, "status.conditions").and_then(|list| list.get(0));
        let same = |field: &str| known.and_then(|known| known.get(field)) == condition.get(field);
        if !same("status") || !same("reason") {
            let mut new = Value::clone(&service);
            set_at(&mut new, "status.conditions", json!([condition]));
            state.store.put(&resource(), new);
        }
    }
}

/// What a server finds out about another one that should answer for a group.
fn availability(inner: &Inner, state: &State, service: &Value, backend: &Value) -> Value {
    let (namespace, name) = (text(backend, "namespace"), text(backend, "name"));
    let found = state.store.get(&Resource::new("", "services"), &Key::new(namespace, name));
    let served =
        state.kinds.versions(text(service, "spec.group")).iter().any(|one| one == text(service, "spec.version"));
    let endpoints = state.store.get(&Resource::new("", "endpoints"), &Key::new(namespace, name));
    let slices = state.store.list(&Resource::new("discovery.k8s.io", "endpointslices"), Some(namespace));
    let has_address = endpoints.is_some_and(|one| at(&one, "subsets").and_then(|list| list.get(0)).is_some())
        || slices.iter().any(|(_, slice)| {
            let owner = at(slice, "metadata.labels").and_then(|labels| labels.get("kubernetes.io/service-name"));
            owner.and_then(Value::as_str) == Some(name) && at(slice, "endpoints").and_then(|list| list.get(0)).is_some()
        });
    let (status, reason, message) = match found {
        None => ("False", "ServiceNotFound", format!("service/{name} in {namespace:?} is not present")),
        Some(_) if served => ("True", "Passed", "all checks passed".to_owned()),
        Some(found) if !has_address => {
            let what = if inner.version.minor >= 33 { "endpointslices" } else { "endpoints" };
            let port = at(&found, "spec.ports").and_then(|list| list.get(0)).map_or("", |port| text(port, "name"));
            let message =
                format!("{what} for service/{name} in {namespace:?} have no addresses with port name {port:?}");
            ("False", "MissingEndpoints", message)
        }
        Some(_) => {
            let url = format!("https://{name}.{namespace}.svc:443/apis/{}", text(service, "spec.group"));
            ("False", "FailedDiscoveryCheck", format!("failing or missing response from {url}"))
        }
    };
    json!({
        "type": "Available", "status": status, "lastTransitionTime": inner.stamp(), "reason": reason,
        "message": message,
    })
}

/// The groups and versions whose servers are away.
fn away(state: &State) -> Vec<(String, String)> {
    let list = state.store.list(&resource(), None);
    let away = list.iter().filter(|(_, service)| {
        let condition = at(service, "status.conditions").and_then(|list| list.get(0));
        at(service, "spec.service").is_some() && condition.is_some_and(|one| text(one, "status") != "True")
    });
    away.map(|(_, service)| (text(service, "spec.group").to_owned(), text(service, "spec.version").to_owned()))
        .collect()
}

/// Refuses what only a server could answer that is away.
pub(super) fn check(inner: &Inner, route: &Route) -> Result<(), ApiError> {
    let Route::Resources { group, version } = route else { return Ok(()) };
    refuse(&inner.state(), group, version).map_or(Ok(()), Err)
}

/// The same for a resource.
pub(super) fn refusal(state: &State, target: &Target) -> Option<ApiError> {
    refuse(state, &target.group, &target.version)
}

fn refuse(state: &State, group: &str, version: &str) -> Option<ApiError> {
    let away = away(state).iter().any(|(own, one)| own == group && one == version);
    away.then(|| ApiError::plain(503, "service unavailable"))
}

/// The group itself, which is known although its server is away.
pub(super) fn group(inner: &Inner, name: &str) -> Option<Value> {
    let away = away(&inner.state());
    let versions: Vec<Value> =
        away.iter().filter(|(group, _)| group == name).map(|(group, version)| version_of(group, version)).collect();
    let preferred = versions.first()?.clone();
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": preferred,
    }))
}

fn version_of(group: &str, version: &str) -> Value {
    json!({"groupVersion": format!("{group}/{version}"), "version": version})
}

/// Names the groups whose servers are away among those that discovery lists.
pub(super) fn amend(inner: &Inner, route: &Route, response: Response<ApiBody>) -> Response<ApiBody> {
    let away = away(&inner.state());
    if away.is_empty() || *route != (Route::Roots { core: false }) {
        return response;
    }
    rewrite(response, move |mut body| {
        for (group, version) in &away {
            name_away(&mut body, group, version);
        }
        body
    })
}

fn name_away(body: &mut Value, group: &str, version: &str) {
    if let Some(groups) = body.get_mut("groups").and_then(Value::as_array_mut) {
        if !groups.iter().any(|one| text(one, "name") == group) {
            let version = version_of(group, version);
            groups.push(json!({"name": group, "versions": [version], "preferredVersion": version}));
        }
        return;
    }
    let Some(items) = body.get_mut("items").and_then(Value::as_array_mut) else { return };
    let stale = json!({"version": version, "freshness": "Stale"});
    match items.iter_mut().find(|one| text(one, "metadata.name") == group) {
        None => items.push(json!({"metadata": {"name": group}, "versions": [stale]})),
        Some(item) => {
            for one in item.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
                if text(one, "version") == version {
                    *one = stale.clone();
                }
            }
        }
    }
}
