//! What goes wrong with which requests.

use std::time::Duration;

use rand::{Rng, rngs::StdRng};

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
    /// The connection breaks before the request has arrived.
    ConnectionReset,
    /// The request is done, and the connection breaks before its answer.
    Unanswered,
    /// The server restarts with this request in its hands: it never arrived, or it is done and not answered, as the seed
    /// has it. All watches break, and nobody listens for so long.
    Restart {
        /// How long the server is away.
        down: Duration,
    },
    /// No answer ever comes, unless the server restarts: then the connection breaks.
    Stalled,
    /// The answer comes late.
    Slow(Duration),
    /// 401.
    Unauthorized,
    /// 410: the revision or the continue token asked for is gone.
    Expired,
    /// 409: somebody else changed the object, or its quota, in the same moment. Meets only what writes.
    Conflict,
    /// The watch is opened; of the next event only half a line arrives before the connection breaks. Meets only watches.
    HalfEvent,
}

/// Which requests a fault meets, and when.
#[derive(Clone, Debug)]
pub struct FaultRule {
    pub(super) fault: Fault,
    verbs: Vec<String>,
    path: String,
    query: String,
    user: String,
    spared: String,
    skip: u64,
    times: u64,
    every: u64,
    rate: f64,
    pub(super) lasting: Option<Duration>,
}

impl FaultRule {
    /// Every request, always.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            verbs: Vec::new(),
            path: String::new(),
            query: String::new(),
            user: String::new(),
            spared: String::new(),
            skip: 0,
            times: u64::MAX,
            every: 1,
            rate: 1.0,
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

    /// Only requests whose query contains this text, such as `continue=`.
    #[must_use]
    pub fn query(mut self, part: &str) -> Self {
        part.clone_into(&mut self.query);
        self
    }

    /// Only requests of this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// Not the requests of this user.
    #[must_use]
    pub fn sparing(mut self, user: &str) -> Self {
        user.clone_into(&mut self.spared);
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

    /// Only each so manieth of them: with 3 the third, the sixth and so on.
    #[must_use]
    pub fn every(mut self, requests: u64) -> Self {
        self.every = requests.max(1);
        self
    }

    /// Only this share of them, between 0 and 1; which ones is up to the server's seed.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Only for so long after the rule is added, in the clock's time.
    #[must_use]
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.lasting = Some(duration);
        self
    }

    fn covers(&self, asked: &Asked<'_>) -> bool {
        let writes = ["create", "update", "patch", "delete", "deletecollection"];
        (match self.fault {
            Fault::Conflict => writes.contains(&asked.verb),
            Fault::HalfEvent => asked.verb == "watch",
            _ => true,
        }) && (self.verbs.is_empty() || self.verbs.iter().any(|own| own == asked.verb))
            && asked.path.contains(&self.path)
            && asked.query.contains(&self.query)
            && (self.user.is_empty() || self.user == asked.user)
            && (self.spared.is_empty() || self.spared != asked.user)
    }
}

/// A request, as rules see it.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) verb: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) user: &'a str,
}

/// A rule at work.
pub(super) struct Armed {
    rule: FaultRule,
    until: Option<jiff::Timestamp>,
    seen: u64,
    met: u64,
}

impl Armed {
    pub(super) fn new(rule: FaultRule, until: Option<jiff::Timestamp>) -> Self {
        Self { rule, until, seen: 0, met: 0 }
    }

    /// What becomes of this request, if the rule is about it.
    pub(super) fn meets(&mut self, asked: &Asked<'_>, now: jiff::Timestamp, rng: &mut StdRng) -> Option<&Fault> {
        let rule = &self.rule;
        if self.until.is_some_and(|until| now >= until) || !rule.covers(asked) {
            return None;
        }
        self.seen += 1;
        let is_its_turn = self.seen > rule.skip && (self.seen - rule.skip).is_multiple_of(rule.every);
        if !is_its_turn || self.met >= rule.times || rule.rate < 1.0 && rng.random::<f64>() >= rule.rate {
            return None;
        }
        self.met += 1;
        Some(&rule.fault)
    }
}
