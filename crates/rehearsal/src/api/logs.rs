//! What containers print, and how a client reads it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use toolbox_engine::Clock;
use toolbox_engine::watch;
use tower::BoxError;

use super::{
    body::{self, ApiBody},
    dispatch::Call,
    server::Inner,
    status::{ApiError, Cause},
};
use crate::store::object::at;

type Source = (String, String, String);

#[derive(Clone, Debug)]
struct Line {
    time: Timestamp,
    text: String,
}

#[derive(Default)]
struct Books {
    present: BTreeMap<Source, Vec<Line>>,
    previous: BTreeMap<Source, Vec<Line>>,
}

/// The logs of all containers. Clones are handles to the same logs.
#[derive(Clone)]
pub struct PodLogs {
    clock: Clock,
    books: Arc<Mutex<Books>>,
    changed: watch::Sender<u64>,
}

impl PodLogs {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, books: Arc::default(), changed: watch::Sender::new(0) }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line, without its end, stamped with the present moment.
    pub fn append(&self, namespace: &str, pod: &str, container: &str, line: &str) {
        let source = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let line = Line { time: self.clock.now(), text: line.to_owned() };
        self.books().present.entry(source).or_default().push(line);
        self.changed.send_modify(|count| *count += 1);
    }

    /// The container starts again: what it printed becomes its previous log.
    pub fn restart(&self, namespace: &str, pod: &str, container: &str) {
        let source = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let mut books = self.books();
        let lines = books.present.remove(&source).unwrap_or_default();
        books.previous.insert(source, lines);
    }

    /// The text of a container's log so far.
    pub fn text(&self, namespace: &str, pod: &str, container: &str) -> String {
        let source = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        let books = self.books();
        books.present.get(&source).into_iter().flatten().fold(String::new(), |mut out, line| {
            out.push_str(&line.text);
            out.push('\n');
            out
        })
    }

    pub(super) fn forget(&self, namespace: &str, pod: &str) {
        let mut books = self.books();
        books.present.retain(|(own, name, _), _| own != namespace || name != pod);
        books.previous.retain(|(own, name, _), _| own != namespace || name != pod);
        drop(books);
        self.changed.send_modify(|count| *count += 1);
    }
}

struct Reader {
    inner: Arc<Inner>,
    call: Call,
    container: String,
    source: Source,
    next: usize,
    logs: watch::Receiver<u64>,
    pods: watch::Receiver<u64>,
}

/// Answers a request for a log.
pub(super) fn answer(inner: &Arc<Inner>, call: Call) -> Result<Response<ApiBody>, ApiError> {
    if call.verb != "get" {
        return Err(ApiError::method_not_allowed());
    }
    let resource = call.kind.resource();
    let pod = inner.state().store.get(&resource, &call.key());
    let pod = pod.ok_or_else(|| ApiError::not_found(&resource, &call.target.name))?;
    check_options(&call)?;
    let container = container_of(&call, &pod)?;
    let previous = call.query.flag("previous");
    if at(&pod, "spec.nodeName").and_then(Value::as_str).unwrap_or_default().is_empty() {
        // Nobody to ask yet: servers answer with no content instead of an error.
        return Ok(body::text(204, ""));
    }
    check_started(&call, &pod, &container, previous)?;
    let source = (call.target.namespace.clone(), call.target.name.clone(), container.clone());
    let lines = {
        let books = inner.logs.books();
        let book = if previous { &books.previous } else { &books.present };
        book.get(&source).cloned().unwrap_or_default()
    };
    let next = lines.len();
    let text = select(&call, &lines, inner.clock.now());
    if !call.query.flag("follow") || previous {
        return Ok(body::text_stream(stream::iter([Ok(Bytes::from(text))]).boxed()));
    }
    let reader = Reader {
        logs: inner.logs.changed.subscribe(),
        pods: inner.state().store.subscribe(&resource),
        inner: Arc::clone(inner),
        container,
        source,
        next,
        call,
    };
    let first = stream::iter([Ok(Bytes::from(text))]);
    Ok(body::text_stream(first.chain(stream::unfold(reader, follow)).boxed()))
}

async fn follow(mut reader: Reader) -> Option<(Result<Bytes, BoxError>, Reader)> {
    loop {
        reader.logs.borrow_and_update();
        reader.pods.borrow_and_update();
        let fresh: Vec<Line> = {
            let books = reader.inner.logs.books();
            let lines = books.present.get(&reader.source).map_or(&[][..], Vec::as_slice);
            lines.get(reader.next..).unwrap_or_default().to_vec()
        };
        if !fresh.is_empty() {
            reader.next += fresh.len();
            let text = print(&reader.call, &fresh);
            return Some((Ok(text.into()), reader));
        }
        let pod = reader.inner.state().store.get(&reader.call.kind.resource(), &reader.call.key());
        let running = pod
            .is_some_and(|pod| state_of(&pod, &reader.container).is_some_and(|state| state.get("running").is_some()));
        if !running {
            return None;
        }
        tokio::select! {
            biased;
            result = reader.logs.changed() => { result.ok()?; }
            result = reader.pods.changed() => { result.ok()?; }
        }
    }
}

fn names(pod: &Value, list: &str) -> Vec<String> {
    let list = at(pod, &format!("spec.{list}")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|one| one.get("name")?.as_str()).map(str::to_owned).collect()
}

/// Refuses options that mean nothing.
fn check_options(call: &Call) -> Result<(), ApiError> {
    let number = |name: &str| call.query.number::<i64>(name);
    let mut causes = Vec::new();
    let mut at_least = |name: &str, least: i64| {
        if let Some(value) = number(name).filter(|value| *value < least) {
            let detail = if least == 0 {
                "must be greater than or equal to 0".to_owned()
            } else {
                "must be greater than 0".to_owned()
            };
            causes.push(Cause::invalid(name, &value.into(), &detail));
        }
    };
    at_least("tailLines", 0);
    at_least("limitBytes", 1);
    let both = number("sinceSeconds").is_some() && !call.query.get("sinceTime").is_empty();
    if both {
        causes.push(Cause::forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
    } else {
        at_least("sinceSeconds", 1);
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid("", "PodLogOptions", &call.target.name, causes)) }
}

/// The container that a request is about: the one it names, or the only one.
pub(super) fn container_of(call: &Call, pod: &Value) -> Result<String, ApiError> {
    let (main, init) = (names(pod, "containers"), names(pod, "initContainers"));
    let said = call.query.get("container");
    let name = &call.target.name;
    if said.is_empty() {
        return if let [one] = main.as_slice() {
            Ok(one.clone())
        } else {
            let inits = if init.is_empty() {
                String::new()
            } else {
                format!(" or one of the init containers: [{}]", init.join(" "))
            };
            Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]{inits}",
                main.join(" ")
            )))
        };
    }
    if main.iter().chain(&init).any(|own| own == said) {
        return Ok(said.to_owned());
    }
    Err(ApiError::bad_request(format!("container {said} is not valid for pod {name}")))
}

fn status_of<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .filter_map(|list| at(pod, &format!("status.{list}")).and_then(Value::as_array))
        .flatten()
        .find(|status| status.get("name").and_then(Value::as_str) == Some(container))
}

fn state_of<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    status_of(pod, container)?.get("state")
}

/// Refuses the log of a container that has not started, in the kubelet's words.
fn check_started(call: &Call, pod: &Value, container: &str, previous: bool) -> Result<(), ApiError> {
    let name = &call.target.name;
    let status = status_of(pod, container);
    if previous {
        let ended = status.and_then(|status| at(status, "lastState.terminated"));
        return match ended {
            Some(_) => Ok(()),
            None => Err(ApiError::bad_request(format!(
                "previous terminated container {container:?} in pod {name:?} not found"
            ))),
        };
    }
    let state = status.and_then(|status| status.get("state"));
    if state.is_some_and(|state| state.get("running").is_some() || state.get("terminated").is_some()) {
        return Ok(());
    }
    // A container that waits to be restarted still has the log of its last run.
    if status.and_then(|status| at(status, "lastState.terminated")).is_some() {
        return Ok(());
    }
    let reason =
        state.and_then(|state| at(state, "waiting.reason")).and_then(Value::as_str).unwrap_or("ContainerCreating");
    let detail = match reason {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" => match reason {
            "ErrImagePull" => "image can't be pulled",
            "ImagePullBackOff" => "trying and failing to pull image",
            _ => "image name is not valid",
        },
        other => other,
    };
    Err(ApiError::bad_request(format!("container {container:?} in pod {name:?} is waiting to start: {detail}")))
}

fn select(call: &Call, lines: &[Line], now: Timestamp) -> String {
    let since = call.query.number::<i64>("sinceSeconds").map(|seconds| now - SignedDuration::from_secs(seconds));
    let since = since.or_else(|| call.query.number::<Timestamp>("sinceTime"));
    let recent: Vec<Line> = lines.iter().filter(|line| since.is_none_or(|since| line.time >= since)).cloned().collect();
    let tail = call.query.number::<usize>("tailLines").unwrap_or(recent.len()).min(recent.len());
    let mut text = print(call, &recent[recent.len() - tail..]);
    if let Some(limit) = call.query.number::<usize>("limitBytes").filter(|limit| *limit < text.len()) {
        let mut end = limit;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

fn print(call: &Call, lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        // Writing to a string cannot fail.
        let _ = if call.query.flag("timestamps") {
            writeln!(out, "{:.9} {}", line.time, line.text)
        } else {
            writeln!(out, "{}", line.text)
        };
    }
    out
}
