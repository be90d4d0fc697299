//! Get and list.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    body::{self, ApiBody},
    dispatch::{Call, present},
    server::Inner,
    status::{ApiError, Cause},
    table,
};
use crate::store::{
    RevisionError,
    object::{Key, map_mut},
    select::{FieldSelector, LabelSelector},
};

/// How long a server waits for a revision that does not exist yet.
const FRESHNESS: Duration = Duration::from_secs(3);

/// The selectors of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    any: bool,
}

impl Selection {
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(call.query.get("labelSelector")).map_err(ApiError::bad_request)?;
        let mut text = call.query.get("fieldSelector").to_owned();
        if !call.target.name.is_empty() {
            text = format!("metadata.name={},{text}", call.target.name);
        }
        let fields = FieldSelector::parse(&text).map_err(ApiError::bad_request)?;
        for key in fields.keys() {
            if !["metadata.name", "metadata.namespace"].contains(&key) && !call.kind.selectable().contains(&key) {
                return Err(ApiError::bad_request(if call.kind.custom || !call.kind.selectable().is_empty() {
                    format!("field label not supported: {key}")
                } else {
                    format!("{key:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
                }));
            }
        }
        let any = call.query.get("labelSelector").is_empty() && text.is_empty();
        Ok(Self { labels, fields, any })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.any || self.labels.matches(object) && self.fields.matches(object)
    }
}

/// The object with the `apiVersion` that the client speaks; versions of a kind differ in nothing else here.
pub(super) fn in_version(call: &Call, object: &Value) -> Value {
    let mut object = object.clone();
    let map = map_mut(&mut object);
    // Kind and version come first, as in everything a server prints.
    let mut out = Map::with_capacity(map.len());
    out.insert("kind".into(), call.kind.kind.clone().into());
    out.insert("apiVersion".into(), call.api_version().into());
    for (name, value) in std::mem::take(map) {
        if name != "kind" && name != "apiVersion" {
            out.insert(name, value);
        }
    }
    Value::Object(out)
}

pub(super) fn get(inner: &Inner, call: &Call) -> Result<Response<ApiBody>, ApiError> {
    let object = inner.state().store.get(&call.kind.resource(), &call.key());
    let object = object.ok_or_else(|| ApiError::not_found(&call.kind.resource(), &call.target.name))?;
    Ok(body::json(200, &present(call, &object)))
}

/// The revision that a query names, 0 for none.
pub(super) fn revision_asked(text: &str) -> Result<u64, ApiError> {
    let message =
        || format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
    if text.is_empty() { Ok(0) } else { text.parse().map_err(|_| ApiError::new(500, "", message())) }
}

struct Page {
    revision: u64,
    after: Option<Key>,
}

fn token(revision: u64, key: &Key) -> String {
    let start = json!({"v": "meta.k8s.io/v1", "rv": revision, "namespace": key.namespace, "name": key.name});
    URL_SAFE_NO_PAD.encode(start.to_string())
}

fn read_token(token: &str) -> Option<Page> {
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(Page { revision: value.get("rv")?.as_u64()?, after: Some(Key::new(text("namespace"), text("name"))) })
}

/// Waits a little for a revision that is not there yet.
pub(super) async fn wait_for_revision(inner: &Inner, revision: u64) -> Result<(), ApiError> {
    let step = FRESHNESS / 6;
    for _ in 0..6 {
        if revision <= inner.state().store.revision() {
            return Ok(());
        }
        inner.clock.sleep(step).await;
    }
    let present = inner.state().store.revision();
    if revision <= present { Ok(()) } else { Err(ApiError::too_large(revision, present)) }
}

pub(super) async fn list(inner: &Arc<Inner>, call: &Call) -> Result<Response<ApiBody>, ApiError> {
    let selection = Selection::of(call)?;
    let text = call.query.get("resourceVersion");
    let asked = revision_asked(text)?;
    let matching = call.query.get("resourceVersionMatch");
    let limit = call.query.number::<usize>("limit").filter(|limit| *limit > 0 && text != "0");
    let limit = limit.map(|limit| inner.faults.page_limit().map_or(limit, |most| limit.min(most.max(1))));
    let continued = call.query.get("continue");
    if !matching.is_empty() && text.is_empty() {
        let cause = Cause::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
        return Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![cause]));
    }
    let page = if continued.is_empty() {
        if asked > 0 {
            wait_for_revision(inner, asked).await?;
        }
        // A page of a revision that is named without a rule is of just that revision.
        let exact = matching == "Exact" || matching.is_empty() && limit.is_some() && asked > 0;
        let revision = if exact { asked } else { inner.state().store.revision() };
        Page { revision, after: None }
    } else {
        if asked > 0 {
            return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
        }
        read_token(continued).ok_or_else(|| {
            ApiError::bad_request("invalid continue token: continue key is not valid: it was not made by this server")
        })?
    };
    let namespace = Some(call.target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let (found, newest) = {
        let state = inner.state();
        (state.store.list_at(&call.kind.resource(), namespace, page.revision), state.store.revision())
    };
    let found = found.map_err(|error| match error {
        RevisionError::TooNew(present) => ApiError::too_large(page.revision, present),
        RevisionError::TooOld(_) => match &page.after {
            Some(key) => ApiError::new(
                410,
                "Expired",
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results. Continuing with the provided token results in an inconsistent list - \
                 objects that were created, modified, or deleted between the time the first chunk was returned and now \
                 may show up in the list.",
            )
            .with_continue(token(newest, key)),
            None => ApiError::new(410, "Expired", "The resourceVersion for the provided list is too old."),
        },
    })?;
    let mut wanted = found
        .into_iter()
        .filter(|(key, object)| page.after.as_ref().is_none_or(|after| key > after) && selection.matches(object));
    let mut items = Vec::new();
    let mut last = None;
    for (key, object) in wanted.by_ref() {
        items.push(object);
        last = Some(key);
        if limit.is_some_and(|limit| items.len() >= limit) {
            break;
        }
    }
    let remaining = wanted.count();
    let mut meta = Map::new();
    meta.insert("resourceVersion".into(), page.revision.to_string().into());
    if let Some(last) = last.filter(|_| remaining > 0) {
        meta.insert("continue".into(), token(page.revision, &last).into());
        if selection.any {
            meta.insert("remainingItemCount".into(), remaining.into());
        }
    }
    Ok(body::json(200, &table::shape_list(call, &items, meta)))
}

/// A plain list of objects. Items of built-in kinds do not repeat the list's kind, as on real servers.
pub(super) fn plain_list(call: &Call, items: &[Arc<Value>], meta: Map<String, Value>) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|object| {
            let mut item = in_version(call, object);
            if !call.kind.custom && !call.kind.virtual_ {
                let map = map_mut(&mut item);
                map.shift_remove("kind");
                map.shift_remove("apiVersion");
            }
            item
        })
        .collect();
    json!({"kind": format!("{}List", call.kind.kind), "apiVersion": call.api_version(), "metadata": meta, "items": items})
}
