//! One request after the other: counted, limited in time, repeated as long as the trouble is a passing one.
//!
//! The library's own retry layer is switched off: it sits on a 503 for minutes and gives up at once on a refused
//! connection. Here every request has a budget, the pauses are a fixed schedule (no randomness, so that a rehearsal
//! repeats itself), and the server's `Retry-After` is believed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use toolbox_engine::{Clock, ObjectRef};

use crate::error::ClusterError;

mod failure;

pub(crate) use self::failure::{Failure, root};
use self::failure::{is_refused, lost};

/// API requests made and watch events received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests by verb, repetitions included.
    pub requests: BTreeMap<String, u64>,
    /// Watch events received.
    pub watch_events: u64,
}

/// How patient requests are.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long a request is repeated while the trouble is a passing one.
    pub budget: Duration,
    /// How long one attempt may take.
    pub attempt: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { budget: Duration::from_secs(120), attempt: Duration::from_secs(60) }
    }
}

/// A repeated attempt has at least so long.
const SHORTEST_ATTEMPT: Duration = Duration::from_secs(10);

/// How far two clocks may be apart and still be said to agree: dates have whole seconds, and answers take their time.
const CLOCKS_AGREE: SignedDuration = SignedDuration::from_secs(5);

/// How long 500s are believed to be passing: webhooks whose pods are just starting, storage that changes its leader.
const INTERNAL_ERRORS_PASS: Duration = Duration::from_secs(30);

/// The pause before the next attempt, by the number of attempts made.
pub(crate) fn pause(attempts: u32) -> Duration {
    const SCHEDULE: [u64; 6] = [100, 250, 500, 1000, 2000, 4000];
    let index = (attempts.max(1) - 1) as usize;
    Duration::from_millis(SCHEDULE.get(index).copied().unwrap_or(5000))
}

/// Makes a client from the credentials as they are now.
pub(crate) type Reload = Box<dyn Fn() -> BoxFuture<'static, Result<kube::Client, String>> + Send + Sync>;

/// A request that can be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// For counting and for messages: `get`, `list`, `apply`, …
    pub verb: &'static str,
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub content_type: Option<&'static str>,
    pub body: Bytes,
    /// What it is about, for messages.
    pub object: ObjectRef,
    /// Whether sending it twice is the same as sending it once.
    pub repeatable: bool,
}

impl Call {
    pub(crate) fn read(verb: &'static str, path: String, object: ObjectRef) -> Self {
        Self { verb, method: Method::GET, path, content_type: None, body: Bytes::new(), object, repeatable: true }
    }
}

/// A good answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Bytes,
    /// How many attempts it took: after the first, the answer to an earlier one may have been lost.
    pub attempts: u32,
    /// What the server warns of, such as fields that it does not know.
    pub warnings: Vec<String>,
}

/// A good answer to one attempt.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub body: Bytes,
    pub warnings: Vec<String>,
}

pub(crate) struct Transport {
    client: Mutex<(u64, kube::Client)>,
    reload: Option<Reload>,
    reloading: tokio::sync::Mutex<()>,
    pub(crate) clock: Clock,
    pub(crate) patience: Patience,
    traffic: Mutex<Traffic>,
    /// How far the server's clock is ahead of ours.
    skew: Mutex<SignedDuration>,
    server: String,
    user: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport {
    pub(crate) fn new(
        client: kube::Client,
        reload: Option<Reload>,
        clock: Clock,
        patience: Patience,
        server: String,
        user: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client: Mutex::new((0, client)),
            reload,
            reloading: tokio::sync::Mutex::new(()),
            clock,
            patience,
            traffic: Mutex::default(),
            skew: Mutex::default(),
            server,
            user,
        })
    }

    /// The present moment by the server's clock, as far as its answers told.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.clock.now();
        now.checked_add(*lock(&self.skew)).unwrap_or(now)
    }

    fn heed_date(&self, headers: &http::HeaderMap) {
        let date = headers.get(header::DATE).and_then(|value| value.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        let Some(date) = date else { return };
        let ahead = date.duration_since(self.clock.now());
        let mut skew = lock(&self.skew);
        if (ahead - *skew).abs() > CLOCKS_AGREE {
            *skew = ahead;
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        lock(&self.traffic).clone()
    }

    pub(crate) fn count_events(&self, events: u64) {
        lock(&self.traffic).watch_events += events;
    }

    /// Sends until there is an answer that means something, or the budget is used up.
    pub(crate) async fn call(&self, call: &Call) -> Result<Answer, ClusterError> {
        let mut attempts = 0;
        let began = self.clock.now();
        let mut since = None;
        loop {
            attempts += 1;
            // However it fails, the whole ends soon after its budget: steps count on hearing why before their own time is
            // over. A server that hangs gets a few attempts all the same, each shorter than the one before.
            let spent = self.clock.now().duration_since(began).unsigned_abs();
            let limit = match attempts {
                1 => self.patience.attempt,
                _ => (self.patience.budget.saturating_sub(spent) / 2).max(SHORTEST_ATTEMPT).min(self.patience.attempt),
            };
            let failure = match self.once_within(call, limit).await {
                Ok(reply) => {
                    return Ok(Answer { status: reply.status, body: reply.body, attempts, warnings: reply.warnings });
                }
                Err(failure) => failure,
            };
            let now = self.clock.now();
            let since = *since.get_or_insert(now);
            let wait = failure.wait(attempts, self.patience.budget);
            let (from, budget) = match &failure {
                Failure::Said { code: 500, .. } => (since, INTERNAL_ERRORS_PASS.min(self.patience.budget)),
                _ => (began, self.patience.budget),
            };
            let spent = now.duration_since(from).unsigned_abs();
            let again = failure.is_passing() && (call.repeatable || failure.is_untouched());
            if !again || spent + wait > budget {
                return Err(self.give_up(&failure, since, call.verb, &call.object));
            }
            tracing::debug!(verb = call.verb, path = %call.path, attempts, failure = %failure.describe(), "request is repeated");
            self.clock.sleep(wait).await;
        }
    }

    /// What a failure is called once nothing more is tried.
    pub(crate) fn give_up(
        &self,
        failure: &Failure,
        since: Timestamp,
        verb: &'static str,
        object: &ObjectRef,
    ) -> ClusterError {
        let server = self.server.clone();
        match failure {
            Failure::Certificate(message) => ClusterError::Certificate { server, message: message.clone() },
            Failure::OutOfDate(message) => ClusterError::OutOfDate { server, message: message.clone() },
            Failure::Credentials(message) => {
                ClusterError::Unauthorized { server, user: self.user.clone(), message: message.clone() }
            }
            Failure::Lost(_) | Failure::Said { code: 502..=504, .. } => {
                ClusterError::Unreachable { server, since, last: failure.describe() }
            }
            Failure::Said { code: 429, .. } => ClusterError::Throttled { server, since },
            Failure::Said { code: 401, body, .. } => ClusterError::Unauthorized {
                server,
                user: self.user.clone(),
                message: match ClusterError::of_answer(401, body, verb, object) {
                    ClusterError::Other { message, .. } if !message.is_empty() => message,
                    _ => "the server does not accept the credentials".to_owned(),
                },
            },
            Failure::Said { code, body, .. } => ClusterError::of_answer(*code, body, verb, object),
        }
    }

    /// One attempt, answer read to its end, within the time of an attempt.
    pub(crate) async fn once(&self, call: &Call) -> Result<Reply, Failure> {
        self.once_within(call, self.patience.attempt).await
    }

    async fn once_within(&self, call: &Call, limit: Duration) -> Result<Reply, Failure> {
        let attempt = async {
            let response = self.send(call).await?;
            let status = response.status().as_u16();
            let warnings = response.headers().get_all(header::WARNING).iter();
            let warnings = warnings.filter_map(|value| warning(value.to_str().ok()?)).collect();
            let body = response.into_body().collect().await;
            let body = body.map_err(|error| Failure::Lost(root(&error)))?;
            Ok(Reply { status, body: body.to_bytes(), warnings })
        };
        self.limited(attempt, limit).await
    }

    /// One attempt whose answer is read as it comes.
    pub(crate) async fn open(&self, call: &Call) -> Result<Response<Body>, Failure> {
        self.limited(self.send(call), self.patience.attempt).await
    }

    async fn limited<T>(
        &self,
        attempt: impl Future<Output = Result<T, Failure>>,
        limit: Duration,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = attempt => done,
            () = self.clock.sleep(limit) => Err(Failure::Lost(format!("no answer within {} s", limit.as_secs()))),
        }
    }

    /// Sends once; credentials that are refused are read again and tried once more. So is a certificate that is not
    /// trusted: a cluster's authority may change, and the configuration with it.
    async fn send(&self, call: &Call) -> Result<Response<Body>, Failure> {
        let (age, client) = lock(&self.client).clone();
        match self.send_with(&client, call).await {
            Err(refused) if is_refused(&refused) => {
                let Some(client) = self.renewed(age).await? else {
                    return Err(refused);
                };
                self.send_with(&client, call).await
            }
            done => done,
        }
    }

    /// A client with credentials that are newer than those of that age, if there is a way to have them.
    async fn renewed(&self, age: u64) -> Result<Option<kube::Client>, Failure> {
        let Some(reload) = &self.reload else {
            return Ok(None);
        };
        // Of many requests that are refused at once, only the first reads the credentials again.
        let _one_at_a_time = self.reloading.lock().await;
        let (now, client) = lock(&self.client).clone();
        if now > age {
            return Ok(Some(client));
        }
        let client = reload().await.map_err(Failure::Credentials)?;
        *lock(&self.client) = (age + 1, client.clone());
        tracing::info!("the credentials were refused and have been read again");
        Ok(Some(client))
    }

    async fn send_with(&self, client: &kube::Client, call: &Call) -> Result<Response<Body>, Failure> {
        *lock(&self.traffic).requests.entry(call.verb.to_owned()).or_default() += 1;
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("tbx/", env!("CARGO_PKG_VERSION")));
        if let Some(content_type) = call.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        if call.verb == "watch" {
            // Servers from 1.37 on compress event by event, which the decoders do not undo.
            request = request.header(header::ACCEPT_ENCODING, "identity");
        }
        let request = request
            .body(Body::from(call.body.clone()))
            .map_err(|error| Failure::Lost(format!("cannot be asked for: {error}")))?;
        let response = client.send(request).await.map_err(|error| lost(&error))?;
        self.heed_date(response.headers());
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let code = status.as_u16();
        let retry_after = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| Failure::Lost(root(&error)))?;
        Err(Failure::Said { code, body: body.to_bytes(), retry_after })
    }
}

/// The text of a warning header: `299 - "unknown field \"spec.x\""`.
fn warning(header: &str) -> Option<String> {
    let text = header.split_once('"')?.1.strip_suffix('"')?;
    Some(text.replace("\\\"", "\""))
}

#[cfg(test)]
mod tests;
