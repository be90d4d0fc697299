//! The review kinds: questions that are answered and not stored.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};

use super::{
    access::{Asked, User},
    body::{self, ApiBody},
    protobuf, rbac,
    route::{Route, Target},
    server::{Inner, State},
    status::ApiError,
};
use crate::store::object::{at, set_at};

/// The groups of the review kinds.
pub(super) const GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

const KINDS: [(&str, &str, &str, bool); 6] = [
    ("authentication.k8s.io", "TokenReview", "tokenreviews", false),
    ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false),
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
    ("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false),
    ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false),
    ("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true),
];

/// Group and plural of each review kind.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|(group, _, plural, _)| (*group, *plural))
}

/// Whether a path is about a review.
pub(super) fn is_review(target: &Target) -> bool {
    target.version == "v1"
        && KINDS.iter().any(|(group, _, plural, _)| *group == target.group && *plural == target.plural)
}

/// The entries of the review kinds in a list of resources.
pub(super) fn discovery(group: &str, version: &str) -> Vec<Value> {
    let kinds = KINDS.iter().filter(|(own, ..)| *own == group && version == "v1");
    kinds
        .map(|(_, kind, plural, namespaced)| {
            json!({
                "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": ["create"],
            })
        })
        .collect()
}

/// The same for aggregated discovery.
pub(super) fn aggregated_discovery(group: &str, version: &str) -> Vec<Value> {
    let kinds = KINDS.iter().filter(|(own, ..)| *own == group && version == "v1");
    kinds
        .map(|(group, kind, plural, namespaced)| {
            json!({
                "resource": plural, "responseKind": {"group": group, "version": "v1", "kind": kind},
                "scope": if *namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": kind.to_lowercase(), "verbs": ["create"],
            })
        })
        .collect()
}

/// Answers a review.
pub(super) fn answer(inner: &Inner, user: &User, route: &Route, method: &Method, bytes: &Bytes) -> Response<ApiBody> {
    let Route::Target(target) = route else { return body::error(&ApiError::no_such_path()) };
    if *method != Method::POST {
        return body::error(&ApiError::method_not_allowed());
    }
    let read = if bytes.starts_with(b"k8s\0") {
        protobuf::decode(bytes)
    } else {
        serde_json::from_slice(bytes).map_err(|error| ApiError::bad_request(error.to_string()))
    };
    let mut review: Value = match read {
        Ok(review) => review,
        Err(error) => return body::error(&error),
    };
    let kind = KINDS.iter().find(|(_, _, plural, _)| *plural == target.plural).map_or("", |(_, kind, ..)| kind);
    set_at(&mut review, "kind", kind.into());
    set_at(&mut review, "apiVersion", format!("{}/v1", target.group).into());
    let state = inner.state();
    let status = match target.plural.as_str() {
        "selfsubjectreviews" => {
            if inner.version.minor < 28 {
                return body::error(&ApiError::no_such_resource());
            }
            json!({"userInfo": user.to_json()})
        }
        "tokenreviews" => {
            let token = at(&review, "spec.token").and_then(Value::as_str).unwrap_or_default();
            match state.access.bearer(token, inner.clock.now()) {
                Some(bearer) => json!({
                    "authenticated": true, "user": bearer.to_json(), "audiences": ["https://kubernetes.default.svc"],
                }),
                None => json!({"error": "[invalid bearer token]", "user": {}}),
            }
        }
        "selfsubjectrulesreviews" => {
            let namespace = at(&review, "spec.namespace").and_then(Value::as_str).unwrap_or_default();
            let mut rules = rbac::rules_review(&state.store, user, namespace);
            if state.access.denied(user) {
                rules["incomplete"] = true.into();
            }
            rules
        }
        _ => match access_review(&state, user, target, &review) {
            Ok(status) => status,
            Err(error) => return body::error(&error),
        },
    };
    set_at(&mut review, "status", status);
    if at(&review, "metadata").is_none() {
        set_at(
            &mut review,
            "metadata",
            if inner.version.minor < 33 { json!({"creationTimestamp": null}) } else { json!({}) },
        );
    }
    body::json(201, &review)
}

/// Whether somebody may do something.
fn access_review(state: &State, user: &User, target: &Target, review: &Value) -> Result<Value, ApiError> {
    let text = |path: &str| at(review, path).and_then(Value::as_str).unwrap_or_default();
    let groups = at(review, "spec.groups").and_then(Value::as_array).into_iter().flatten();
    let named = User {
        name: text("spec.user").to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    let who = if target.plural.starts_with("self") { user } else { &named };
    let namespace = text("spec.resourceAttributes.namespace");
    if target.plural == "localsubjectaccessreviews" && namespace != target.namespace {
        return Err(ApiError::bad_request("namespace on resource must match the namespace of the request"));
    }
    let asked = if at(review, "spec.nonResourceAttributes").is_some() {
        Asked {
            verb: text("spec.nonResourceAttributes.verb"),
            url: text("spec.nonResourceAttributes.path"),
            ..Asked::default()
        }
    } else {
        Asked {
            verb: text("spec.resourceAttributes.verb"),
            group: text("spec.resourceAttributes.group"),
            plural: text("spec.resourceAttributes.resource"),
            subresource: text("spec.resourceAttributes.subresource"),
            name: text("spec.resourceAttributes.name"),
            namespace,
            url: "",
        }
    };
    let decision = state.access.decide(&state.store, who, &asked);
    let mut status = json!({"allowed": decision.allowed});
    if decision.allowed || !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    Ok(status)
}
