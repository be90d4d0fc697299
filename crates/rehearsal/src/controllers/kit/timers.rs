//! Deadlines of a controller that looks at the whole state again whenever anything changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toolbox_engine::Clock;

/// Named deadlines. A name's clock starts when it is first asked about and is forgotten once a round does not ask.
#[derive(Debug)]
pub(crate) struct Timers {
    clock: Clock,
    deadlines: BTreeMap<String, Duration>,
    asked: BTreeSet<String>,
}

impl Timers {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, deadlines: BTreeMap::new(), asked: BTreeSet::new() }
    }

    /// Whether `wait` has passed since this name was first asked about.
    pub(crate) fn passed(&mut self, name: impl Into<String>, wait: Duration) -> bool {
        let name = name.into();
        let now = self.clock.elapsed();
        let deadline = *self.deadlines.entry(name.clone()).or_insert(now + wait);
        self.asked.insert(name);
        now >= deadline
    }

    /// Starts a name's clock again.
    pub(crate) fn restart(&mut self, name: &str) {
        self.deadlines.remove(name);
    }

    /// Forgets what the round that ends did not ask about.
    pub(crate) fn end_round(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.deadlines.retain(|name, _| asked.contains(name));
    }

    /// Time left until the next deadline that has not passed yet.
    pub(crate) fn next(&self) -> Option<Duration> {
        let now = self.clock.elapsed();
        self.deadlines.values().filter(|deadline| **deadline > now).min().map(|deadline| deadline.saturating_sub(now))
    }
}
