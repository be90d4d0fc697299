//! Faults of the API itself: refusals, broken connections, cut and expired watches, restarts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use toolbox_engine::Clock;
use toolbox_engine::watch;

use crate::api::ApiError;

/// What goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 429, with a `Retry-After` of so many seconds.
    TooManyRequests {
        /// Seconds.
        retry_after: u32,
    },
    /// A 5xx answer of this code: 500, 502, 503 or 504.
    Status(u16),
    /// Nobody listens.
    ConnectionRefused,
    /// The connection breaks before an answer.
    ConnectionReset,
    /// No answer ever comes.
    Stalled,
    /// The answer comes late.
    Slow(Duration),
    /// 401.
    Unauthorized,
    /// 410: the revision or the continue token asked for is gone.
    Expired,
}

/// Which requests a fault meets, and when.
#[derive(Clone, Debug)]
pub struct FaultRule {
    fault: Fault,
    verbs: Vec<String>,
    path: String,
    user: String,
    skip: u64,
    times: u64,
    lasting: Option<Duration>,
}

impl FaultRule {
    /// Every request, always.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            verbs: Vec::new(),
            path: String::new(),
            user: String::new(),
            skip: 0,
            times: u64::MAX,
            lasting: None,
        }
    }

    /// Only requests of this verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`); may be called again for others.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verbs.push(verb.to_owned());
        self
    }

    /// Only requests whose path contains this text.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        part.clone_into(&mut self.path);
        self
    }

    /// Only requests of this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// Not the first so many of them.
    #[must_use]
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// At most so many of them.
    #[must_use]
    pub fn times(mut self, requests: u64) -> Self {
        self.times = requests;
        self
    }

    /// Only for so long after the rule is added, in the clock's time.
    #[must_use]
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.lasting = Some(duration);
        self
    }

    fn covers(&self, verb: &str, path: &str, user: &str) -> bool {
        (self.verbs.is_empty() || self.verbs.iter().any(|own| own == verb))
            && path.contains(&self.path)
            && (self.user.is_empty() || self.user == user)
    }
}

/// What becomes of a request that meets a fault.
#[derive(Debug)]
pub(crate) enum Outcome {
    Slow(Duration),
    Stalled,
    Broken(std::io::Error),
    Refused(ApiError),
}

/// What becomes of a watch.
#[derive(Clone, Debug)]
pub(crate) enum WatchSignal {
    /// The stream ends as if its time were over.
    Cut,
    /// The connection breaks.
    Broken,
    /// An error event, then the end.
    Refused(ApiError),
}

struct Armed {
    rule: FaultRule,
    until: Option<Timestamp>,
    seen: u64,
}

struct Watch {
    path: String,
    user: String,
    signal: watch::Sender<Option<WatchSignal>>,
}

#[derive(Default)]
struct State {
    rules: Vec<Armed>,
    down_until: Option<Timestamp>,
    watches: BTreeMap<u64, Watch>,
    next: u64,
    hits: u64,
}

/// The faults of one server.
#[derive(Clone)]
pub struct ApiFaults {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

impl ApiFaults {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault. Rules are asked in the order they were added; the first that covers a request decides.
    pub fn add(&self, rule: FaultRule) {
        let until = rule.lasting.map(|lasting| self.after(lasting));
        self.state().rules.push(Armed { rule, until, seen: 0 });
    }

    /// Takes all rules back and ends a restart.
    pub fn clear(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.down_until = None;
    }

    /// How many requests and watches met a fault so far.
    pub fn hits(&self) -> u64 {
        self.state().hits
    }

    fn after(&self, duration: Duration) -> Timestamp {
        let duration = jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX);
        self.clock.now().checked_add(duration).unwrap_or(Timestamp::MAX)
    }

    /// The server restarts: every watch breaks and connections are refused for so long.
    pub fn restart(&self, down: Duration) {
        let until = self.after(down);
        self.state().down_until = Some(until);
        self.signal("", WatchSignal::Broken);
    }

    /// Ends the open watches whose path contains this text, without an error, as proxies and timeouts do.
    pub fn cut_watches(&self, path: &str) {
        self.signal(path, WatchSignal::Cut);
    }

    /// Breaks the connections of the open watches whose path contains this text.
    pub fn break_watches(&self, path: &str) {
        self.signal(path, WatchSignal::Broken);
    }

    /// Sends the open watches whose path contains this text a 410 and ends them.
    pub fn expire_watches(&self, path: &str) {
        self.signal(path, WatchSignal::Refused(expired()));
    }

    /// The paths of the open watches, oldest first.
    pub fn open_watches(&self) -> Vec<String> {
        self.state().watches.values().map(|watch| watch.path.clone()).collect()
    }

    fn signal(&self, path: &str, signal: WatchSignal) {
        let mut state = self.state();
        let mut hits = 0;
        for watch in state.watches.values().filter(|watch| watch.path.contains(path)) {
            tracing::debug!(path = watch.path, user = watch.user, ?signal, "watch meets a fault");
            watch.signal.send_replace(Some(signal.clone()));
            hits += 1;
        }
        state.hits += hits;
    }

    pub(crate) fn register(&self, path: &str, user: &str) -> Registration {
        let (signal, receiver) = watch::channel(None);
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.watches.insert(id, Watch { path: path.to_owned(), user: user.to_owned(), signal });
        Registration { faults: self.clone(), id, receiver }
    }

    pub(crate) fn decide(&self, verb: &str, path: &str, user: &str) -> Option<Outcome> {
        let now = self.clock.now();
        let mut state = self.state();
        if state.down_until.is_some_and(|until| now < until) {
            state.hits += 1;
            return Some(Outcome::Broken(refused()));
        }
        for armed in &mut state.rules {
            if armed.until.is_some_and(|until| now >= until) || !armed.rule.covers(verb, path, user) {
                continue;
            }
            armed.seen += 1;
            if armed.seen <= armed.rule.skip || armed.seen - armed.rule.skip > armed.rule.times {
                continue;
            }
            let outcome = outcome(&armed.rule.fault);
            state.hits += 1;
            return Some(outcome);
        }
        None
    }
}

fn refused() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused")
}

fn expired() -> ApiError {
    ApiError::new(410, "Expired", "The resourceVersion for the provided watch is too old.")
}

fn outcome(fault: &Fault) -> Outcome {
    Outcome::Refused(match fault {
        Fault::TooManyRequests { retry_after } => {
            ApiError::plain(429, "Too many requests, please try again later.").with_retry_after(*retry_after)
        }
        Fault::Status(code) => {
            let (reason, message) = match code {
                503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
                504 => (
                    "Timeout",
                    "Timeout: request did not complete within requested timeout - context deadline exceeded",
                ),
                _ => ("InternalError", "Internal error occurred: etcdserver: request timed out"),
            };
            ApiError::new(*code, reason, message)
        }
        Fault::Unauthorized => ApiError::unauthorized(),
        Fault::Expired => expired(),
        Fault::ConnectionRefused => return Outcome::Broken(refused()),
        Fault::ConnectionReset => {
            return Outcome::Broken(std::io::Error::new(
                std::io::ErrorKind::ConnectionReset,
                "connection reset by peer",
            ));
        }
        Fault::Stalled => return Outcome::Stalled,
        Fault::Slow(delay) => return Outcome::Slow(*delay),
    })
}

/// A watch's entry among the open ones, for as long as it is open.
pub(crate) struct Registration {
    faults: ApiFaults,
    id: u64,
    receiver: watch::Receiver<Option<WatchSignal>>,
}

impl Registration {
    pub(crate) fn signal(&self) -> Option<WatchSignal> {
        self.receiver.borrow().clone()
    }

    pub(crate) async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.faults.state().watches.remove(&self.id);
    }
}
