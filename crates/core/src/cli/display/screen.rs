//! Where lines go: a terminal, a pipe, the log of a CI.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Paint;
use crate::EnvMap;
use crate::cli::args::Color;

/// What is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// A terminal: what runs now is redrawn below the lines.
    Live,
    /// A pipe or file: lines.
    Lines,
    /// The log of GitHub Actions.
    GitHub,
    /// The log of GitLab.
    GitLab,
}

impl Surface {
    /// Chosen from the environment and from what stderr is.
    pub(crate) fn detect(env: &EnvMap, rehearsal: bool) -> Self {
        if env.get("GITHUB_ACTIONS") == Some("true") {
            Surface::GitHub
        } else if env.get("GITLAB_CI") == Some("true") {
            Surface::GitLab
        } else if !rehearsal && std::io::stderr().is_terminal() && env.get("TERM") != Some("dumb") {
            Surface::Live
        } else {
            Surface::Lines
        }
    }
}

impl Paint {
    /// Chosen from `--color`, NO_COLOR, CLICOLOR_FORCE and from what stderr is.
    pub(crate) fn detect(color: Color, env: &EnvMap) -> Self {
        Self(match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                env.get("NO_COLOR").is_none()
                    && (env.get("CLICOLOR_FORCE").is_some_and(|force| force != "0")
                        || (std::io::stderr().is_terminal() && env.get("TERM") != Some("dumb")))
            }
        })
    }
}

/// Keeps what is written instead of showing it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    /// Everything so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes lines, and below them, on a terminal, what runs now.
pub(crate) struct Screen {
    surface: Surface,
    paint: Paint,
    out: Box<dyn Write + Send>,
    live: Option<Live>,
    group: Option<String>,
}

struct Live {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
    rows: usize,
}

impl Screen {
    /// Writes to stderr.
    pub(crate) fn stderr(surface: Surface, paint: Paint, env: &EnvMap) -> Self {
        let rows = env.get("LINES").and_then(|rows| rows.parse().ok());
        let live = (surface == Surface::Live).then(|| Live {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)),
            bars: Vec::new(),
            rows: rows.unwrap_or(24),
        });
        Self { live, ..Self::new(surface, paint, Box::new(std::io::stderr())) }
    }

    /// Writes to `out`, without live lines.
    pub(crate) fn new(surface: Surface, paint: Paint, out: Box<dyn Write + Send>) -> Self {
        Self { surface, paint, out, live: None, group: None }
    }

    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Writes a line. Nobody is left to tell when stderr is gone, so that is no error.
    pub(crate) fn line(&mut self, line: &str) {
        let line = harmless(line);
        match &self.live {
            Some(live) => {
                let _ = live.all.println(line);
            }
            None => {
                let _ = writeln!(self.out, "{line}");
            }
        }
    }

    /// Replaces the live lines.
    pub(crate) fn live(&mut self, lines: &[String]) {
        let Some(live) = &mut self.live else { return };
        // Half the terminal at most; the rest is for what has happened.
        let room = (live.rows / 2).max(3);
        let shown = &lines[..lines.len().min(room)];
        while live.bars.len() > shown.len() {
            if let Some(bar) = live.bars.pop() {
                bar.finish_and_clear();
                live.all.remove(&bar);
            }
        }
        while live.bars.len() < shown.len() {
            let bar = live.all.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            live.bars.push(bar);
        }
        for (bar, line) in live.bars.iter().zip(shown) {
            bar.set_message(harmless(line));
            bar.tick();
        }
    }

    /// Takes the live lines away.
    pub(crate) fn clear_live(&mut self) {
        self.live(&[]);
        if let Some(live) = &self.live {
            let _ = live.all.clear();
        }
    }

    /// Begins a part of the log that can be folded.
    pub(crate) fn group(&mut self, name: &str) {
        self.end_group();
        match self.surface {
            Surface::GitHub => self.raw(&format!("::group::{name}")),
            Surface::GitLab => {
                let id = name.to_lowercase().replace(' ', "_");
                self.raw(&format!("\x1b[0Ksection_start:0:{id}\r\x1b[0K{name}"));
            }
            Surface::Live | Surface::Lines => return,
        }
        self.group = Some(name.to_owned());
    }

    /// Ends it.
    pub(crate) fn end_group(&mut self) {
        let Some(name) = self.group.take() else {
            return;
        };
        match self.surface {
            Surface::GitHub => self.raw("::endgroup::"),
            Surface::GitLab => {
                let id = name.to_lowercase().replace(' ', "_");
                self.raw(&format!("\x1b[0Ksection_end:0:{id}\r\x1b[0K"));
            }
            Surface::Live | Surface::Lines => {}
        }
    }

    /// Puts a failure where the CI shows it first.
    pub(crate) fn annotate(&mut self, text: &str) {
        if self.surface == Surface::GitHub {
            let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
            self.raw(&format!("::error title=tbx::{text}"));
        }
    }

    fn raw(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
    }
}

/// What a cluster says must not move the cursor, nor give commands to the CI.
fn harmless(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut escape = false;
    for letter in line.chars() {
        match letter {
            // Our own colours are the only sequences that pass: ESC [ … m.
            '\x1b' => {
                escape = true;
                clean.push(letter);
            }
            'm' if escape => {
                escape = false;
                clean.push(letter);
            }
            '[' | ';' | '0'..='9' if escape => clean.push(letter),
            _ => {
                if escape {
                    // Not a colour after all: take its beginning back.
                    if let Some(at) = clean.rfind('\x1b') {
                        clean.truncate(at);
                    }
                    escape = false;
                }
                if letter == '\t' || letter == '\n' || !letter.is_control() {
                    clean.push(letter);
                }
            }
        }
    }
    let commands = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
    if clean.lines().any(commands) {
        clean = clean.replace("::", ": :").replace("##[", "# #[");
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_pass_and_everything_else_that_moves_the_cursor_does_not() {
        assert_eq!(harmless("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
        assert_eq!(harmless("a\x1b[2Jb\x07\rc"), "aJbc");
    }

    #[test]
    fn a_cluster_gives_no_commands_to_the_ci() {
        assert_eq!(harmless("  ::add-mask::x"), "  : :add-mask: :x");
        assert_eq!(harmless("x::y"), "x::y");
    }

    #[test]
    fn the_ci_is_known_by_its_variables() {
        let github = EnvMap::new([("GITHUB_ACTIONS", "true")]);
        assert_eq!(Surface::detect(&github, false), Surface::GitHub);
        let gitlab = EnvMap::new([("GITLAB_CI", "true")]);
        assert_eq!(Surface::detect(&gitlab, true), Surface::GitLab);
        assert_eq!(Surface::detect(&EnvMap::default(), true), Surface::Lines);
    }
}
