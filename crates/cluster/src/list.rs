//! Lists, page by page.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ClusterError;
use crate::query::{Query, with_parameters};
use crate::transport::{Call, Failure, Transport};

/// How many objects are asked for at once.
const PAGE: u32 = 500;
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default, deserialize_with = "null_is_empty")]
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    Ok(Option::<Vec<Value>>::deserialize(from)?.unwrap_or_default())
}

fn page(query: &Query, in_pages: bool, from: Option<&str>) -> Call {
    let mut parameters = query.selectors();
    if in_pages {
        parameters.push(("limit", PAGE.to_string()));
    }
    if let Some(from) = from {
        parameters.push(("continue", from.to_owned()));
    }
    Call::read("list", with_parameters(&query.path(), &parameters), query.object())
}

/// All pages: the items, and the version they are of. When a continuation has expired, all is asked for at once: a server
/// that forgets so fast would forget the next one as well.
async fn pages<E, F: Future<Output = Result<Bytes, E>>>(
    query: &Query,
    ask: impl Fn(Call) -> F,
    expired: fn(&E) -> bool,
    garbage: impl Fn(String) -> E,
) -> Result<(Vec<Value>, String), E> {
    let mut in_pages = true;
    let mut items = Vec::new();
    let mut from: Option<String> = None;
    loop {
        let body = match ask(page(query, in_pages, from.as_deref())).await {
            Ok(body) => body,
            Err(error) if from.is_some() && in_pages && expired(&error) => {
                in_pages = false;
                items.clear();
                from = None;
                continue;
            }
            Err(error) => return Err(error),
        };
        let page: Page =
            serde_json::from_slice(&body).map_err(|error| garbage(format!("what came back is no list: {error}")))?;
        items.extend(page.items);
        from = page.metadata.r#continue.filter(|next| !next.is_empty());
        if from.is_none() {
            return Ok((items, page.metadata.resource_version.unwrap_or_default()));
        }
    }
}

/// A list for a watch: one attempt per page, so that the watch can say what is wrong.
pub(crate) async fn list_once(transport: &Transport, query: &Query) -> Result<(Vec<Value>, String), Failure> {
    pages(
        query,
        |call| async move { transport.once(&call).await.map(|reply| reply.body) },
        |failure| matches!(failure, Failure::Said { code: 410, .. }),
        Failure::Lost,
    )
    .await
}

/// A list on its own: each page with the patience of a request.
pub(crate) async fn list_patiently(transport: &Transport, query: &Query) -> Result<Vec<Value>, ClusterError> {
    let garbage = |message| ClusterError::Other { object: query.object(), code: 200, reason: String::new(), message };
    pages(
        query,
        |call| async move { transport.call(&call).await.map(|answer| answer.body) },
        |error| matches!(error, ClusterError::Expired { .. }),
        garbage,
    )
    .await
    .map(|(items, _)| items)
}
