//! Read-only kinds whose objects are computed, not stored.

use std::sync::Arc;

use http::Response;
use serde_json::{Map, Value};

use super::{
    body::{self, ApiBody},
    dispatch::{Call, present},
    read::Selection,
    server::Inner,
    status::ApiError,
    table,
};
use crate::store::object::meta_str;

/// Gives the objects of a read-only kind.
pub trait VirtualObjects: Send + Sync + 'static {
    /// The objects of a namespace, or all of them, in the order in which to list them.
    fn list(&self, namespace: Option<&str>) -> Vec<Value>;
}

impl<F> VirtualObjects for F
where
    F: Fn(Option<&str>) -> Vec<Value> + Send + Sync + 'static,
{
    fn list(&self, namespace: Option<&str>) -> Vec<Value> {
        self(namespace)
    }
}

/// Answers a request to a read-only kind.
pub(super) fn answer(inner: &Inner, call: &Call) -> Result<Response<ApiBody>, ApiError> {
    let resource = call.kind.resource();
    let (provider, revision) = {
        let state = inner.state();
        (state.providers.get(&resource).cloned(), state.store.revision())
    };
    let namespace = Some(call.target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    // The provider may ask the server itself, so the state is not locked here.
    let objects = provider.map(|provider| provider.list(namespace)).unwrap_or_default();
    match (call.verb, call.target.subresource.as_str()) {
        ("get", "") => {
            let found = objects.iter().find(|object| meta_str(object, "name") == call.target.name);
            let found = found.ok_or_else(|| ApiError::not_found(&resource, &call.target.name))?;
            Ok(body::json(200, &present(call, found)))
        }
        ("list", "") => {
            let selection = Selection::of(call)?;
            let items: Vec<Arc<Value>> =
                objects.into_iter().filter(|object| selection.matches(object)).map(Arc::new).collect();
            let mut meta = Map::new();
            meta.insert("resourceVersion".into(), revision.to_string().into());
            Ok(body::json(200, &table::shape_list(call, &items, meta)))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}
