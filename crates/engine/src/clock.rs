//! Time as the run sees it: real, paused (rehearsal in one process) or scaled (served rehearsal).
//!
//! All waiting goes through tokio's timer, so that a paused runtime skips it; all stamps come from [`Clock::now`],
//! so that a rehearsal's files hold virtual time only.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A source of stamps and pauses. Cheap to clone; clones agree with each other.
#[derive(Clone, Debug)]
pub struct Clock {
    base: Timestamp,
    start: Instant,
    speed: f64,
}

impl Clock {
    /// The machine's clock. Must be called inside a tokio runtime.
    pub fn real() -> Self {
        Self::scaled(Timestamp::now(), 1.0)
    }

    /// A clock that reads `base` now and advances with tokio's (possibly paused) time.
    pub fn starting_at(base: Timestamp) -> Self {
        Self::scaled(base, 1.0)
    }

    /// A clock on which `speed` seconds pass in one second of tokio's time. `speed` must be positive.
    pub fn scaled(base: Timestamp, speed: f64) -> Self {
        let speed = if speed.is_finite() && speed > 0.0 { speed } else { 1.0 };
        Self { base, start: Instant::now(), speed }
    }

    /// A clock that goes with this one but reads another time: ahead by `by`, or behind when that is negative.
    #[must_use]
    pub fn ahead_by(&self, by: jiff::SignedDuration) -> Self {
        Self { base: self.base.checked_add(by).unwrap_or(self.base), ..self.clone() }
    }

    /// Time since this clock was made, in its own seconds.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed().mul_f64(self.speed)
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        let elapsed = jiff::SignedDuration::try_from(self.elapsed()).unwrap_or(jiff::SignedDuration::MAX);
        self.base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// Waits for `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        let scaled = Duration::try_from_secs_f64(duration.as_secs_f64() / self.speed).unwrap_or(Duration::MAX);
        tokio::time::sleep(scaled).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_skips_waiting_and_still_counts_it() {
        let base: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(base);
        clock.sleep(Duration::from_secs(1200)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:20:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_pause_is_no_bug() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let pause = std::pin::pin!(clock.sleep(Duration::from_secs(u64::MAX)));
        assert!(futures::poll!(pause).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_wrong_goes_as_fast_as_the_right_one() {
        let right = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let wrong = right.ahead_by(jiff::SignedDuration::from_mins(-7));
        wrong.sleep(Duration::from_secs(60)).await;
        assert_eq!(right.now().to_string(), "2026-01-01T00:01:00Z");
        assert_eq!(wrong.now().to_string(), "2025-12-31T23:54:00Z");
        assert_eq!(right.elapsed(), wrong.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_scaled_clock_runs_faster_than_the_runtime() {
        let clock = Clock::scaled(Timestamp::UNIX_EPOCH, 60.0);
        let before = Instant::now();
        clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(before.elapsed().as_secs(), 1);
        assert_eq!(clock.elapsed().as_secs(), 60);
    }
}
