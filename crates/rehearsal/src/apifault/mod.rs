//! Faults of the API itself: refusals, broken connections, cut and expired watches, restarts, expired credentials,
//! changed certificates, clocks that disagree.

mod rule;
mod session;

use std::{
    collections::BTreeMap,
    io::{Error, ErrorKind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use rand::{Rng, SeedableRng, rngs::StdRng};
use toolbox_engine::Clock;
use toolbox_engine::watch;

use crate::api::ApiError;

pub(crate) use self::rule::Asked;
pub use self::rule::{Fault, FaultRule};
pub(crate) use self::session::Session;
use self::{rule::Armed, session::Doors};

/// What becomes of a request that meets a fault.
#[derive(Debug)]
pub(crate) enum Outcome {
    Slow(Duration),
    Stalled,
    Broken(Error),
    Refused(ApiError),
    /// The request is done, but its answer is lost.
    Unanswered,
    /// Somebody else was faster.
    Conflict,
    /// Half of the watch's next event, then the end.
    HalfEvent,
}

/// What becomes of a watch.
#[derive(Clone, Debug)]
pub(crate) enum WatchSignal {
    /// The stream ends as if its time were over.
    Cut,
    /// The connection breaks.
    Broken,
    /// The connection breaks in the middle of the next event.
    Half,
    /// An error event, then the end.
    Refused(ApiError),
}

struct Watch {
    path: String,
    user: String,
    signal: watch::Sender<Option<WatchSignal>>,
}

struct State {
    rules: Vec<Armed>,
    rng: StdRng,
    down_until: Option<Timestamp>,
    doors: Doors,
    page_limit: Option<usize>,
    watches: BTreeMap<u64, Watch>,
    next: u64,
    hits: u64,
}

/// The faults of one server.
#[derive(Clone)]
pub struct ApiFaults {
    clock: Clock,
    state: Arc<Mutex<State>>,
    /// Counts restarts, for the requests that hang.
    restarts: watch::Sender<u64>,
}

impl ApiFaults {
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        let state = State {
            rules: Vec::new(),
            rng: StdRng::seed_from_u64(seed ^ 0xfa07),
            down_until: None,
            doors: Doors::default(),
            page_limit: None,
            watches: BTreeMap::new(),
            next: 0,
            hits: 0,
        };
        Self { clock, state: Arc::new(Mutex::new(state)), restarts: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault. Rules are asked in the order they were added; the first that covers a request decides.
    pub fn add(&self, rule: FaultRule) {
        let until = rule.lasting.map(|lasting| self.after(lasting));
        self.state().rules.push(Armed::new(rule, until));
    }

    /// Takes all rules back and ends a restart. What has expired stays so.
    pub fn clear(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.down_until = None;
        state.page_limit = None;
    }

    /// How many requests and watches met a fault so far.
    pub fn hits(&self) -> u64 {
        self.state().hits
    }

    fn after(&self, duration: Duration) -> Timestamp {
        let duration = jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX);
        self.clock.now().checked_add(duration).unwrap_or(Timestamp::MAX)
    }

    /// The server restarts: every watch and every request that hangs breaks, and connections are refused for so long.
    pub fn restart(&self, down: Duration) {
        let until = self.after(down);
        self.state().down_until = Some(until);
        self.signal("", WatchSignal::Broken);
        self.restarts.send_modify(|count| *count += 1);
    }

    /// The tokens of all clients in this process expire. `renewable` says whether a client made from now on gets a token
    /// that is good; otherwise nobody is let in again. Open watches stay, as on real servers.
    pub fn expire_tokens(&self, renewable: bool) {
        self.state().doors.expire_tokens(renewable);
    }

    /// The server shows a certificate of another authority. `renewable` says whether a client made from now on trusts it.
    /// All connections break.
    pub fn rotate_certificates(&self, renewable: bool) {
        self.state().doors.rotate_certificates(renewable);
        self.signal("", WatchSignal::Broken);
    }

    /// How far the server's clock is ahead of its clients'. Its certificate is good for a day to either side: those whose
    /// clock is further off do not trust it.
    pub fn clients_are_late_by(&self, skew: SignedDuration) {
        self.state().doors.skew = skew;
    }

    /// Lists are answered in pages of at most so many objects, whatever the client asks for (if it asks for pages).
    pub fn limit_pages(&self, objects: Option<usize>) {
        self.state().page_limit = objects;
    }

    pub(crate) fn page_limit(&self) -> Option<usize> {
        self.state().page_limit
    }

    /// What a new client holds.
    pub(crate) fn session(&self) -> Session {
        self.state().doors.given()
    }

    /// Breaks the connections of the open watches whose path contains this text in the middle of their next event.
    pub fn halve_events(&self, path: &str) {
        self.signal(path, WatchSignal::Half);
    }

    /// Ends when the server restarts.
    pub(crate) async fn restarted(&self) -> Error {
        let mut restarts = self.restarts.subscribe();
        if restarts.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        reset()
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

    pub(crate) fn decide(&self, asked: &Asked<'_>, session: Option<Session>) -> Option<Outcome> {
        let now = self.clock.now();
        let mut state = self.state();
        if state.down_until.is_some_and(|until| now < until) {
            state.hits += 1;
            return Some(Outcome::Broken(refused()));
        }
        if let Some(session) = session {
            if let Err(error) = state.doors.handshake(session, now) {
                state.hits += 1;
                return Some(Outcome::Broken(error));
            }
            if !state.doors.knows(session) {
                state.hits += 1;
                return Some(Outcome::Refused(ApiError::unauthorized()));
            }
        }
        let State { rules, rng, .. } = &mut *state;
        let fault = rules.iter_mut().find_map(|armed| armed.meets(asked, now, rng).cloned())?;
        tracing::debug!(verb = asked.verb, path = asked.path, user = asked.user, ?fault, "request meets a fault");
        let is_done = matches!(fault, Fault::Restart { .. }) && rng.random::<bool>();
        state.hits += 1;
        drop(state);
        if let Fault::Restart { down } = fault {
            self.restart(down);
            return Some(if is_done { Outcome::Unanswered } else { Outcome::Broken(reset()) });
        }
        Some(outcome(&fault))
    }
}

/// The connection breaks.
pub(crate) fn reset() -> Error {
    Error::new(ErrorKind::ConnectionReset, "connection reset by peer")
}

fn refused() -> Error {
    Error::new(ErrorKind::ConnectionRefused, "connection refused")
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
        Fault::ConnectionReset | Fault::Restart { .. } => return Outcome::Broken(reset()),
        Fault::Unanswered => return Outcome::Unanswered,
        Fault::Conflict => return Outcome::Conflict,
        Fault::HalfEvent => return Outcome::HalfEvent,
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
