//! Signals: the first one stops the run, a later one gives up its captures, one more ends the process.
//!
//! A CI that aborts sends INT and TERM back to back; they are one interruption. A person who presses Ctrl-C twice means
//! it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolbox_engine::Exit;
use toolbox_engine::plan::Interrupt;

/// A different signal within this time belongs to the same interruption.
const SAME: Duration = Duration::from_secs(2);

/// A signal that asks to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP: the terminal has gone.
    Hup,
}

impl Asks {
    fn name(self) -> &'static str {
        match self {
            Asks::Int => "SIGINT",
            Asks::Term => "SIGTERM",
            Asks::Hup => "SIGHUP",
        }
    }

    fn exit(self) -> Exit {
        match self {
            Asks::Int => Exit::Interrupted,
            Asks::Term | Asks::Hup => Exit::Terminated,
        }
    }
}

/// What a signal means after those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    Stop,
    Nothing,
    Hurry,
    Abort,
}

/// Remembers the signals so far.
#[derive(Debug, Default)]
struct Sequence {
    first: Option<(Asks, Duration)>,
    /// The other signal of a pair was seen.
    paired: bool,
    hurried: bool,
}

impl Sequence {
    /// `at` is the time since some fixed moment.
    fn next(&mut self, asks: Asks, at: Duration) -> Means {
        match self.first {
            None => {
                self.first = Some((asks, at));
                Means::Stop
            }
            // The kernel and the shell both send it when a terminal goes, and nobody is there to press a key.
            Some(_) if asks == Asks::Hup => Means::Nothing,
            Some((first, when)) if first != asks && !self.paired && at.saturating_sub(when) <= SAME => {
                self.paired = true;
                Means::Nothing
            }
            Some(_) if !self.hurried => {
                self.hurried = true;
                Means::Hurry
            }
            Some(_) => Means::Abort,
        }
    }
}

/// Turns signals into interruptions for as long as the run takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    /// Handed to the engine.
    pub(crate) interrupt: Interrupt,
    /// Cancelled at the first signal, for what is not run by the engine.
    pub(crate) stopped: CancellationToken,
    first: Arc<OnceLock<Asks>>,
}

impl Signals {
    /// The signal that began it, and how the process ends.
    pub(crate) fn first(&self) -> (String, Exit) {
        let asks = self.first.get().copied().unwrap_or(Asks::Term);
        (asks.name().to_owned(), asks.exit())
    }

    /// Listens for ever; to be raced against the run. Fails only when the system has no signals.
    pub(crate) async fn listen(&self) {
        let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
            return std::future::pending().await;
        };
        let mut hup = if hangs_up() { signal(SignalKind::hangup()).ok() } else { None };
        let begin = Instant::now();
        let mut sequence = Sequence::default();
        loop {
            let asks = tokio::select! {
                biased;
                _ = int.recv() => Asks::Int,
                _ = term.recv() => Asks::Term,
                () = next(&mut hup) => Asks::Hup,
            };
            match sequence.next(asks, begin.elapsed()) {
                Means::Stop => {
                    self.first.get_or_init(|| asks);
                    self.interrupt.stop(asks.name(), asks.exit());
                    self.stopped.cancel();
                }
                Means::Nothing => {}
                Means::Hurry => self.interrupt.hurry(),
                Means::Abort => abort(asks.exit()),
            }
        }
    }
}

/// The next signal, when they are listened to.
async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether a terminal that goes is to end the run. `nohup` has it ignored; where that cannot be seen, it stays as it is.
fn hangs_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 0)
}

/// Everything that matters is in the run directory since the first signal.
#[expect(clippy::exit, reason = "the user has asked for it three times")]
fn abort(exit: Exit) {
    std::process::exit(exit.code().into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings(signals: &[(Asks, u64)]) -> Vec<Means> {
        let mut sequence = Sequence::default();
        signals.iter().map(|(asks, millis)| sequence.next(*asks, Duration::from_millis(*millis))).collect()
    }

    #[test]
    fn a_pair_of_different_signals_is_one_interruption() {
        assert_eq!(
            meanings(&[(Asks::Int, 0), (Asks::Term, 1), (Asks::Term, 9000), (Asks::Int, 9100)]),
            [Means::Stop, Means::Nothing, Means::Hurry, Means::Abort]
        );
        assert_eq!(meanings(&[(Asks::Term, 0), (Asks::Int, 1999)]), [Means::Stop, Means::Nothing]);
    }

    #[test]
    fn a_second_key_press_hurries_and_a_third_ends_it() {
        assert_eq!(
            meanings(&[(Asks::Int, 0), (Asks::Int, 300), (Asks::Int, 600)]),
            [Means::Stop, Means::Hurry, Means::Abort]
        );
    }

    #[test]
    fn a_terminal_that_goes_interrupts_once_however_often_it_says_so() {
        assert_eq!(
            meanings(&[(Asks::Hup, 0), (Asks::Hup, 5), (Asks::Term, 900), (Asks::Hup, 9000), (Asks::Term, 9001)]),
            [Means::Stop, Means::Nothing, Means::Nothing, Means::Nothing, Means::Hurry]
        );
        assert_eq!(meanings(&[(Asks::Int, 0), (Asks::Hup, 1)]), [Means::Stop, Means::Nothing]);
        assert_eq!(Asks::Hup.exit(), Exit::Terminated);
    }

    #[test]
    fn a_later_term_hurries() {
        assert_eq!(meanings(&[(Asks::Int, 0), (Asks::Term, 2001)]), [Means::Stop, Means::Hurry]);
    }
}
