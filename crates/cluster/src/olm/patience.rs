//! How long something passing is put up with.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// Since when each kind of trouble has been seen without a break.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    since: BTreeMap<&'static str, Timestamp>,
}

impl Patience {
    /// The trouble is seen now; true once it has been there for `limit`.
    pub fn is_over(&mut self, trouble: &'static str, now: Timestamp, limit: Duration) -> bool {
        let since = *self.since.entry(trouble).or_insert(now);
        let limit = jiff::SignedDuration::try_from(limit).unwrap_or(jiff::SignedDuration::MAX);
        now.duration_since(since) >= limit
    }

    /// The trouble is gone.
    pub fn forget(&mut self, trouble: &'static str) {
        self.since.remove(trouble);
    }
}
