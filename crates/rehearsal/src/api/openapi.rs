//! OpenAPI v3: which groups there are, and for each its kinds' types and the paths that serve them.
//!
//! The types of built-in kinds are those recorded from a real server; those of custom resources come from their
//! definitions, completed as the real server does it.

use std::collections::BTreeSet;

use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};

use super::{
    body::{self, ApiBody},
    discovery,
    kinds::{KindDef, Kinds, VersionDef},
    status::ApiError,
};
use crate::types;

const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const META: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Parameters of a query and their types.
type Parameters = &'static [(&'static str, &'static str)];

const WRITE: Parameters = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: Parameters =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const DELETE: Parameters = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// Answers `/openapi/v3` (an empty path) and what is below it.
pub(super) fn answer(kinds: &Kinds, path: &str) -> Result<Value, ApiError> {
    if path.is_empty() {
        let mut paths = Map::new();
        for root in kinds.iter().flat_map(|kind| kind.versions.iter().map(|version| root(&kind.group, &version.name))) {
            let hash = fingerprint(kinds, &root);
            let address = format!("/openapi/v3/{root}?hash={hash:016X}");
            paths.entry(root).or_insert_with(|| json!({"serverRelativeURL": address}));
        }
        paths.sort_keys();
        return Ok(json!({"paths": paths}));
    }
    let mut document = Document::default();
    for (kind, version) in served(kinds, path) {
        document.kind(kind, version);
    }
    if document.paths.is_empty() {
        return Err(ApiError::no_such_path());
    }
    document.complete();
    Ok(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "rehearsal"},
        "paths": document.paths,
        "components": {"schemas": document.schemas},
    }))
}

/// Answers `/openapi/v2` with a document that says nothing. Clients turn to it for kinds that no group has, and only want
/// to hear so; it is in protobuf because they ask for no other form.
pub(super) fn old() -> Response<ApiBody> {
    const EMPTY: &[u8] = b"\x0a\x032.0\x12\x17\x0a\x0aKubernetes\x12\x09rehearsal\x42\x00\x4a\x00";
    let mut response = body::text(200, EMPTY);
    let kind = HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The kinds of one group and version.
fn served<'a>(kinds: &'a Kinds, path: &str) -> impl Iterator<Item = (&'a KindDef, &'a VersionDef)> {
    let of = move |kind: &'a KindDef| kind.versions.iter().map(move |version| (kind, version));
    let path = path.to_owned();
    kinds.iter().flat_map(move |kind| of(kind)).filter(move |(kind, version)| root(&kind.group, &version.name) == path)
}

/// A number that changes when a document does, for clients that keep what they have read.
fn fingerprint(kinds: &Kinds, path: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (kind, version) in served(kinds, path) {
        let schema = version.schema.as_ref().map(ToString::to_string).unwrap_or_default();
        for byte in kind.plural.bytes().chain(schema.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A type's name as the server makes it from a group: `com.example.v1.Widget`.
fn custom_name(kind: &KindDef, version: &str, of: &str) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{of}", parts.join("."))
}

#[derive(Default)]
struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    wanted: BTreeSet<String>,
}

impl Document {
    fn kind(&mut self, kind: &KindDef, version: &VersionDef) {
        let recorded = types::of_kind(&kind.group, &version.name, &kind.kind).filter(|_| !kind.custom);
        let name = recorded.map_or_else(|| custom_name(kind, &version.name, &kind.kind), |node| node.name().to_owned());
        if recorded.is_none() {
            self.schemas.insert(name.clone(), custom(kind, version));
        }
        let list = format!("{name}List");
        self.schemas.insert(list.clone(), list_of(kind, version, &name));
        self.want(&name);
        let about = json!({"group": kind.group, "version": version.name, "kind": kind.kind});
        let base = root(&kind.group, &version.name);
        let verbs = discovery::verbs(kind);
        let place = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        if kind.namespaced {
            let list = operation("list", "", &list, LIST, &about);
            self.paths.insert(format!("/{base}/{}", kind.plural), json!({"get": list}));
        }
        let collection = format!("/{base}/{place}{}", kind.plural);
        let of_all = [("get", "list", "list", LIST), ("post", "post", "create", WRITE)];
        let of_all = of_all.into_iter().chain([("delete", "deletecollection", "deletecollection", DELETE)]);
        let mut item = Map::new();
        for (method, action, verb, parameters) in of_all.filter(|(_, _, verb, _)| verbs.contains(verb)) {
            let answer = match verb {
                "list" => &list,
                "create" => &name,
                _ => STATUS,
            };
            item.insert(method.into(), operation(action, body_of(action, &name), answer, parameters, &about));
        }
        self.paths.insert(collection.clone(), with_parameters(item, kind.namespaced, false));
        self.item(&format!("{collection}/{{name}}"), kind, &verbs, &name, &about);
        for (subresource, sub_kind, group_version, verbs) in discovery::subresources(kind) {
            let (group, version) = group_version.split_once('/').unwrap_or((&kind.group, &version.name));
            let known = types::of_kind(group, version, &sub_kind).map(|node| node.name().to_owned());
            let about = json!({"group": group, "version": version, "kind": sub_kind});
            let path = format!("{collection}/{{name}}/{subresource}");
            self.item(&path, kind, &verbs, &known.unwrap_or_else(|| name.clone()), &about);
        }
        for name in [STATUS, DELETE_OPTIONS] {
            self.want(name);
        }
    }

    fn item(&mut self, path: &str, kind: &KindDef, verbs: &[&str], name: &str, about: &Value) {
        self.want(name);
        let all = [
            ("get", "get", "get", &[] as Parameters),
            ("post", "post", "create", WRITE),
            ("put", "put", "update", WRITE),
            ("patch", "patch", "patch", PATCH),
            ("delete", "delete", "delete", DELETE),
        ];
        // An object itself is made at its collection.
        let is_object = path.ends_with("{name}");
        let mut item = Map::new();
        for (method, action, _, parameters) in
            all.into_iter().filter(|(method, _, verb, _)| verbs.contains(verb) && !(is_object && *method == "post"))
        {
            let answer = if method == "delete" { STATUS } else { name };
            let mut operation = operation(action, body_of(action, name), answer, parameters, about);
            if method == "patch" {
                operation["requestBody"] = json!({"content": patches(kind)});
            }
            item.insert(method.into(), operation);
        }
        self.paths.insert(path.to_owned(), with_parameters(item, kind.namespaced, true));
    }

    fn want(&mut self, name: &str) {
        self.wanted.insert(name.to_owned());
    }

    /// Adds every recorded type that something refers to.
    fn complete(&mut self) {
        let mut open: Vec<String> = std::mem::take(&mut self.wanted).into_iter().collect();
        for schema in self.schemas.values() {
            let mut names = Vec::new();
            types::references(schema, &mut names);
            open.extend(names.into_iter().map(str::to_owned));
        }
        while let Some(name) = open.pop() {
            if self.schemas.contains_key(&name) {
                continue;
            }
            if let Some(node) = types::named(&name) {
                let mut names = Vec::new();
                types::references(node.schema(), &mut names);
                open.extend(names.into_iter().map(str::to_owned));
                self.schemas.insert(name, types::described(node.schema()));
            }
        }
        self.schemas.sort_keys();
        self.paths.sort_keys();
    }
}

/// The type in a request's body, empty for none.
fn body_of<'a>(action: &str, name: &'a str) -> &'a str {
    match action {
        "post" | "put" => name,
        "delete" | "deletecollection" => DELETE_OPTIONS,
        _ => "",
    }
}

/// The kinds of patches that a kind takes.
fn patches(kind: &KindDef) -> Value {
    let mut names = vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    if !kind.custom {
        names.push("application/strategic-merge-patch+json");
    }
    let patch = json!({"schema": {"type": "object"}});
    names.into_iter().map(|name| (name.to_owned(), patch.clone())).collect()
}

fn operation(action: &str, body: &str, answer: &str, parameters: Parameters, about: &Value) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}}))
        .collect();
    let mut operation = json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference(answer)}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": about,
    });
    if !body.is_empty() {
        operation["requestBody"] = json!({"content": {"*/*": {"schema": reference(body)}}});
    }
    operation
}

fn with_parameters(mut item: Map<String, Value>, namespaced: bool, named: bool) -> Value {
    let names = [("namespace", namespaced), ("name", named)].into_iter().filter(|(_, there)| *there);
    let parameters: Vec<Value> = names
        .map(|(name, _)| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    item.insert("parameters".into(), parameters.into());
    Value::Object(item)
}

/// A custom resource's type, with what every object has.
fn custom(kind: &KindDef, version: &VersionDef) -> Value {
    let mut schema = json!({"type": "object"});
    if let Some(own) = &version.schema {
        schema = Value::clone(own);
        published(&mut schema);
        let properties = crate::store::object::child_mut(&mut schema, "properties");
        let properties = crate::store::object::map_mut(properties);
        properties.insert("apiVersion".into(), json!({"description": API_VERSION, "type": "string"}));
        properties.insert("kind".into(), json!({"description": KIND, "type": "string"}));
        properties.insert("metadata".into(), json!({"allOf": [reference(types::OBJECT_META)], "description": META}));
        properties.sort_keys();
    }
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": kind.group, "version": version.name, "kind": kind.kind}]);
    schema
}

/// What the server adds to a definition's schema when it publishes it.
fn published(schema: &mut Value) {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && schema.get("anyOf").is_none() {
        schema["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]);
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        schema["properties"]["metadata"] = json!({"allOf": [reference(types::OBJECT_META)], "description": META});
    }
    for child in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        published(child);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(word).filter(|child| child.is_object()) {
            published(child);
        }
    }
}

fn list_of(kind: &KindDef, version: &VersionDef, name: &str) -> Value {
    let more = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    json!({
        "description": format!("{0}List is a list of {0}", kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": API_VERSION, "type": "string"},
            "items": {
                "description": format!("List of {}. More info: {more}", kind.plural),
                "type": "array", "items": reference(name),
            },
            "kind": {"description": KIND, "type": "string"},
            "metadata": {
                "allOf": [reference(LIST_META)],
                "description": format!("Standard list metadata. More info: {more}#types-kinds"),
            },
        },
        "x-kubernetes-group-version-kind":
            [{"group": kind.group, "version": version.name, "kind": format!("{}List", kind.kind)}],
    })
}
