//! Deadlines of a controller that looks at the whole state again whenever anything changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toolbox_engine::Clock;

/// Named deadlines. A name's clock starts when it is first asked about and is forgotten once a round does not ask.
#[derive(Debug)]
pub(crate) struct Timers {
    clock: Clock,
    deadlines: BTreeMap<String, Deadline>,
    asked: BTreeSet<String>,
}

#[derive(Debug)]
struct Deadline {
    at: Duration,
    /// Somebody was told that it has passed.
    told: bool,
}

impl Timers {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, deadlines: BTreeMap::new(), asked: BTreeSet::new() }
    }

    /// Whether `wait` has passed since this name was first asked about.
    pub(crate) fn passed(&mut self, name: impl Into<String>, wait: Duration) -> bool {
        let name = name.into();
        let now = self.clock.elapsed();
        let deadline = self.deadlines.entry(name.clone()).or_insert(Deadline { at: now + wait, told: false });
        deadline.told = now >= deadline.at;
        let told = deadline.told;
        self.asked.insert(name);
        told
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

    /// Time left until the next deadline that nobody was told of. One may have passed since it was asked about, in the
    /// same round: time does not stand still unless it is paused.
    pub(crate) fn next(&self) -> Option<Duration> {
        let now = self.clock.elapsed();
        let untold = self.deadlines.values().filter(|deadline| !deadline.told);
        untold.map(|deadline| deadline.at.saturating_sub(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_passes_within_a_round_is_not_lost() {
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let mut timers = Timers::new(clock.clone());
        assert!(!timers.passed("a", Duration::from_secs(1)));
        clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(timers.next(), Some(Duration::ZERO));
        timers.end_round();
        assert!(timers.passed("a", Duration::from_secs(1)));
        assert_eq!(timers.next(), None);
    }
}
