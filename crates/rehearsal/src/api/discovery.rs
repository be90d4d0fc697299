//! What a server says about itself: version, health, groups and resources.

use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};

use super::{
    body::{self, ApiBody},
    kinds::{KindDef, Kinds},
    openapi, review,
    route::Route,
    server::Inner,
    status::ApiError,
};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Answers a request that is about no object.
pub(super) fn answer(inner: &Inner, route: &Route, accept: &str) -> Result<Response<ApiBody>, ApiError> {
    let state = inner.state();
    let kinds = &state.kinds;
    match route {
        Route::Version => Ok(body::json(200, &inner.version.to_json())),
        Route::Health => Ok(body::text(200, "ok")),
        Route::Roots { core } => {
            if let Some(version) = aggregated(inner, accept) {
                let groups = if *core { vec![String::new()] } else { groups(kinds) };
                return Ok(aggregate(kinds, &groups, version));
            }
            if *core {
                return Ok(body::json(
                    200,
                    &json!({
                        "kind": "APIVersions", "versions": ["v1"],
                        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
                    }),
                ));
            }
            let groups: Vec<Value> = groups(kinds).iter().map(|group| describe(kinds, group)).collect();
            Ok(body::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
        }
        Route::Group(group) if groups(kinds).contains(group) => {
            let mut described = Map::new();
            described.insert("kind".into(), "APIGroup".into());
            described.insert("apiVersion".into(), "v1".into());
            described.extend(describe(kinds, group).as_object().cloned().unwrap_or_default());
            Ok(body::json(200, &Value::Object(described)))
        }
        Route::Resources { group, version } if versions(kinds, group).contains(version) => {
            let group_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
            let mut list: Vec<Value> = Vec::new();
            for kind in kinds.iter().filter(|kind| kind.group == *group && kind.version(version).is_some()) {
                list.extend(resources(kind));
            }
            list.extend(review::discovery(group, version));
            Ok(body::json(
                200,
                &json!({
                    "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list,
                }),
            ))
        }
        Route::OpenApi(path) => Ok(body::json(200, &openapi::answer(kinds, path)?)),
        Route::OldOpenApi => Ok(openapi::old()),
        _ => Err(ApiError::no_such_path()),
    }
}

fn groups(kinds: &Kinds) -> Vec<String> {
    let mut groups = kinds.groups();
    groups.extend(review::GROUPS.iter().map(|group| (*group).to_owned()));
    groups.sort();
    groups.dedup();
    groups
}

fn versions(kinds: &Kinds, group: &str) -> Vec<String> {
    if review::GROUPS.contains(&group) { vec!["v1".to_owned()] } else { kinds.versions(group) }
}

fn describe(kinds: &Kinds, group: &str) -> Value {
    let versions: Vec<Value> = versions(kinds, group)
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

pub(super) fn verbs(kind: &KindDef) -> Vec<&'static str> {
    if kind.virtual_ { vec!["get", "list"] } else { VERBS.to_vec() }
}

/// The subresources of a kind: name, kind, group and version of the kind when it is another one, verbs.
pub(super) fn subresources(kind: &KindDef) -> Vec<(&'static str, String, &'static str, Vec<&'static str>)> {
    let mut out = Vec::new();
    let change = vec!["get", "patch", "update"];
    if kind.group.is_empty() && kind.plural == "pods" {
        let connect = vec!["create", "get"];
        out.push(("attach", "PodAttachOptions".to_owned(), "", connect.clone()));
        out.push(("binding", "Binding".to_owned(), "", vec!["create"]));
        out.push(("eviction", "Eviction".to_owned(), "policy/v1", vec!["create"]));
        out.push(("exec", "PodExecOptions".to_owned(), "", connect.clone()));
        out.push(("log", "Pod".to_owned(), "", vec!["get"]));
        out.push(("portforward", "PodPortForwardOptions".to_owned(), "", connect));
    }
    if kind.group.is_empty() && kind.plural == "namespaces" {
        out.push(("finalize", "Namespace".to_owned(), "", vec!["update"]));
    }
    if kind.group.is_empty() && kind.plural == "serviceaccounts" {
        out.push(("token", "TokenRequest".to_owned(), "authentication.k8s.io/v1", vec!["create"]));
    }
    if kind.scale.is_some() {
        out.push(("scale", "Scale".to_owned(), "autoscaling/v1", change.clone()));
    }
    if kind.status {
        out.push(("status", kind.kind.clone(), "", change));
    }
    out
}

fn resources(kind: &KindDef) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        main["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        main["categories"] = json!(kind.categories);
    }
    let mut out = vec![main];
    for (name, sub_kind, group_version, verbs) in subresources(kind) {
        let mut sub = json!({
            "name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
            "kind": sub_kind, "verbs": verbs,
        });
        if let Some((group, version)) = group_version.split_once('/') {
            sub["group"] = group.into();
            sub["version"] = version.into();
        }
        out.push(sub);
    }
    out
}

/// The version of aggregated discovery that the client accepts and the server has.
fn aggregated(inner: &Inner, accept: &str) -> Option<&'static str> {
    let wants =
        |version: &str| accept.contains("as=APIGroupDiscoveryList") && accept.contains(&format!("v={version};"));
    let ends = |version: &str| {
        accept
            .split(',')
            .any(|one| one.contains("as=APIGroupDiscoveryList") && one.trim_end().ends_with(&format!("v={version}")))
    };
    if inner.version.minor >= 30 && (wants("v2") || ends("v2")) {
        return Some("v2");
    }
    ((27..=34).contains(&inner.version.minor) && (wants("v2beta1") || ends("v2beta1"))).then_some("v2beta1")
}

fn aggregate(kinds: &Kinds, groups: &[String], version: &'static str) -> Response<ApiBody> {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let versions: Vec<Value> = versions(kinds, group)
                .iter()
                .map(|name| {
                    let mut list: Vec<Value> = kinds
                        .iter()
                        .filter(|kind| kind.group == *group && kind.version(name).is_some())
                        .map(|kind| aggregate_kind(kind, name))
                        .collect();
                    list.extend(review::aggregated_discovery(group, name));
                    json!({"version": name, "resources": list, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    let mut response = body::json(
        200,
        &json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {}, "items": items,
        }),
    );
    let kind = if version == "v2" {
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    } else {
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn aggregate_kind(kind: &KindDef, version: &str) -> Value {
    let subresources: Vec<Value> = subresources(kind)
        .into_iter()
        .map(|(name, sub_kind, group_version, verbs)| {
            let (group, version) = group_version.split_once('/').unwrap_or((&kind.group, version));
            json!({
                "subresource": name, "verbs": verbs,
                "responseKind": {"group": group, "version": version, "kind": sub_kind},
            })
        })
        .collect();
    let mut out = json!({
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": version, "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.kind.to_lowercase(),
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        out["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        out["categories"] = json!(kind.categories);
    }
    if !subresources.is_empty() {
        out["subresources"] = subresources.into();
    }
    out
}
