//! The task behind a watch: list, watch from the list's version, list again when the version is no longer kept.

use std::time::Duration;

use http_body_util::BodyExt as _;
use jiff::Timestamp;

use super::feed::{Change, Feed};
use super::lines::{Event, Lines};
use crate::conditions;
use crate::kinds;
use crate::list::list_once;
use crate::object::{Condition, Object};
use crate::query::{Query, path, with_parameters};
use crate::transport::{Call, Failure, pause};

/// How long the server is asked to keep a watch open.
const WATCH_LASTS: Duration = Duration::from_secs(290);
/// After this long without a byte a watch is taken for dead; servers send a bookmark every minute.
const SILENCE: Duration = Duration::from_secs(150);
/// A watch that ends sooner has not worked, and the next one must not follow at once.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// For kinds that can be listed but not watched.
const LIST_AGAIN: Duration = Duration::from_secs(5);
/// However long a server asks to be left alone, its watches are tried again by then: waits depend on them.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that has just started may refuse everybody for some seconds.
const REFUSALS_PASS: Duration = Duration::from_secs(15);

/// Why following a version ended.
enum End {
    /// The version is no longer kept, or something came that is no event: only a new list helps.
    ListAgain,
    /// The kind cannot be watched.
    NotWatchable,
}

pub(super) async fn follow(feed: std::sync::Arc<Feed>) {
    let mut attempts = 0;
    let mut refused_since: Option<Timestamp> = None;
    let mut watchable = true;
    loop {
        match list_once(&feed.transport, &feed.query).await {
            Ok((items, version)) => {
                refused_since = None;
                feed.replace(items, &version);
                if !watchable {
                    feed.transport.clock.sleep(LIST_AGAIN).await;
                    continue;
                }
                let started = feed.transport.clock.elapsed();
                match watch(&feed, version).await {
                    End::ListAgain => {
                        let lasted = feed.transport.clock.elapsed().saturating_sub(started);
                        attempts = if lasted < TOO_SHORT { attempts + 1 } else { 0 };
                        if attempts > 1 {
                            feed.transport.clock.sleep(pause(attempts)).await;
                        }
                    }
                    End::NotWatchable => {
                        watchable = false;
                        feed.transport.clock.sleep(LIST_AGAIN).await;
                    }
                }
            }
            Err(Failure::Said { code: 404, .. }) => {
                refused_since = None;
                attempts += 1;
                feed.not_served();
                served(&feed, attempts).await;
            }
            Err(failure) => {
                attempts += 1;
                trouble(&feed, &failure, &mut refused_since);
                if attempts == 1 {
                    aggregated(&feed, &failure).await;
                }
                feed.transport.clock.sleep(failure.wait(attempts, LONGEST_PAUSE)).await;
            }
        }
    }
}

/// Tells the waits about a failure: passing ones are pending, refusals fail once they have lasted.
fn trouble(feed: &Feed, failure: &Failure, refused_since: &mut Option<Timestamp>) {
    if failure.is_passing() {
        *refused_since = None;
        feed.away(failure);
        return;
    }
    let now = feed.transport.clock.now();
    let since = *refused_since.get_or_insert(now);
    let lasted = now.duration_since(since).unsigned_abs();
    let may_pass = match failure {
        Failure::Said { code, .. } => matches!(code, 401 | 403 | 410),
        Failure::Credentials(_) => true,
        Failure::Lost(_) | Failure::Certificate(_) | Failure::OutOfDate(_) => false,
    };
    if may_pass && lasted < REFUSALS_PASS {
        feed.away(failure);
    } else {
        feed.refused(feed.transport.give_up(failure, since, "list", &feed.query.object()));
    }
}

/// A group that another server answers for may be down on its own: then its registration says why.
async fn aggregated(feed: &Feed, failure: &Failure) {
    let kind = &feed.query.kind;
    if !matches!(failure, Failure::Said { code: 503, .. }) || !kind.group.contains('.') {
        return;
    }
    let name = format!("{}.{}", kind.version, kind.group);
    let object = kinds::API_SERVICE.object(None, &name);
    let call = Call::read("get", path(&kinds::API_SERVICE, None, &name), object);
    let Ok(reply) = feed.transport.once(&call).await else { return };
    let Ok(service) = serde_json::from_slice(&reply.body).map(|value| Object::of_kind(value, &kinds::API_SERVICE))
    else {
        return;
    };
    if let Some(available) = service.condition("Available").filter(Condition::is_false) {
        feed.explain(format!("APIService {name} is not available: {}", available.text()));
    }
}

/// Waits until the kind may be served: its definition says so, or some time has passed.
async fn served(feed: &Feed, attempts: u32) {
    let kind = &feed.query.kind;
    let wait = feed.transport.clock.sleep(pause(attempts));
    let is_defined = kind.group.contains('.') && *kind != kinds::CRD;
    let Some(hub) = feed.hub.upgrade().filter(|_| is_defined) else {
        return wait.await;
    };
    let definition = hub.watch(Query::named(&kinds::CRD, None, &kind.full_name()));
    let mut changes = definition.subscribe();
    let known_already = conditions::crd_serves(&definition.objects(), &kind.version);
    tokio::pin!(wait);
    loop {
        tokio::select! {
            biased;
            changed = changes.changed() => {
                let serves = conditions::crd_serves(&definition.objects(), &kind.version);
                if changed.is_err() {
                    return wait.await;
                }
                // One that was served when we began is of no help: the server needs a moment to catch up with it.
                if serves && !known_already {
                    return;
                }
            }
            () = &mut wait => return,
        }
    }
}

/// Watches from `version`, through any number of connections, until only a new list helps.
async fn watch(feed: &Feed, mut version: String) -> End {
    let clock = &feed.transport.clock;
    let mut attempts = 0;
    loop {
        let started = clock.elapsed();
        match feed.transport.open(&call(&feed.query, &version)).await {
            Ok(response) => {
                feed.back();
                match read(feed, response.into_body(), &mut version).await {
                    Ending::Resume if version.is_empty() => return End::ListAgain,
                    Ending::Resume => {}
                    Ending::ListAgain => return End::ListAgain,
                }
            }
            Err(Failure::Said { code: 405 | 501, .. }) => return End::NotWatchable,
            Err(failure) if failure.is_passing() => {
                feed.away(&failure);
                attempts += 1;
                clock.sleep(failure.wait(attempts, LONGEST_PAUSE)).await;
                continue;
            }
            // Gone, not served any more, not allowed any more: the list says what it is.
            Err(_) => return End::ListAgain,
        }
        if clock.elapsed().saturating_sub(started) < TOO_SHORT {
            attempts += 1;
            clock.sleep(pause(attempts)).await;
        } else {
            attempts = 0;
        }
    }
}

fn call(query: &Query, version: &str) -> Call {
    let mut parameters = query.selectors();
    parameters.push(("watch", "true".to_owned()));
    parameters.push(("allowWatchBookmarks", "true".to_owned()));
    parameters.push(("timeoutSeconds", WATCH_LASTS.as_secs().to_string()));
    if !version.is_empty() {
        parameters.push(("resourceVersion", version.to_owned()));
    }
    Call::read("watch", with_parameters(&query.path(), &parameters), query.object())
}

enum Ending {
    Resume,
    ListAgain,
}

/// Reads one connection to its end.
async fn read(feed: &Feed, mut body: kube::client::Body, version: &mut String) -> Ending {
    let mut lines = Lines::default();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = feed.transport.clock.sleep(SILENCE) => return Ending::Resume,
        };
        let Some(Ok(frame)) = frame else {
            return Ending::Resume;
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let mut changes = Vec::new();
        let mut ending = None;
        for event in lines.push(&data) {
            let object = match event {
                Event::Put(object) => Change::Put(Object::of_kind(object, &feed.query.kind)),
                Event::Remove(object) => Change::Remove(Object::of_kind(object, &feed.query.kind)),
                Event::Bookmark(at) => {
                    *version = at;
                    continue;
                }
                Event::Error(code, message) => {
                    tracing::debug!(query = %feed.query, code, message, "the watch was ended by the server");
                    // Anything but "too old" may be resumed, and a version that is too old is told so again.
                    ending = Some(if code == 410 { Ending::ListAgain } else { Ending::Resume });
                    break;
                }
                Event::Garbage => {
                    ending = Some(Ending::ListAgain);
                    break;
                }
            };
            let (Change::Put(seen) | Change::Remove(seen)) = &object;
            if !seen.resource_version().is_empty() && !version.is_empty() {
                seen.resource_version().clone_into(version);
            }
            changes.push(object);
        }
        feed.transport.count_events(changes.len() as u64);
        feed.apply(changes, version);
        if let Some(ending) = ending {
            return ending;
        }
    }
}
