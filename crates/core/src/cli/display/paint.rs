//! Colours, or none.

use owo_colors::Style;

/// Whether and how words are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.0 { style.style(text).to_string() } else { text.to_owned() }
    }

    /// Something went wrong.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with(Style::new().red().bold(), text)
    }

    /// Something was done or holds.
    pub(crate) fn good(self, text: &str) -> String {
        self.with(Style::new().green(), text)
    }

    /// Something to look at.
    pub(crate) fn odd(self, text: &str) -> String {
        self.with(Style::new().yellow(), text)
    }

    /// Something that goes on.
    pub(crate) fn busy(self, text: &str) -> String {
        self.with(Style::new().cyan(), text)
    }

    /// Something that matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// Something that matters.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }
}
