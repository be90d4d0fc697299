//! Processes of this machine, told apart from later ones that got the same number.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process by number and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// In clock ticks since boot, as `/proc/PID/stat` has it.
    started: u64,
}

impl Identity {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let (_, started) = stat(pid)?;
        Some(Self { pid, started })
    }

    pub(crate) fn alive(self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| started == self.started && state != 'Z' && state != 'X')
    }

    pub(crate) fn kill(self) {
        if self.alive() {
            // It may be gone between the look and the signal, which is what we want anyway.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }

    /// Asks it to end.
    pub(crate) fn terminate(self) {
        if self.alive() {
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGTERM);
        }
    }

    /// Waits until the process is gone.
    pub(crate) async fn gone(self, what: &str, patience: Duration) -> Result<()> {
        let started = Instant::now();
        while self.alive() {
            if started.elapsed() > patience {
                bail!("{what} (process {}) is still there after {} s", self.pid, patience.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// State letter and start time of a process.
fn stat(pid: i32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, which may itself hold blanks and brackets.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_with_its_number_is_not() {
        let me = Identity::of(std::process::id().try_into().unwrap()).unwrap();
        assert!(me.alive());
        assert!(!Identity { started: me.started + 1, ..me }.alive());
    }
}
