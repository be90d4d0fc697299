//! `tbx foo`: another program called `tbx-foo`, as git does it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The program for an unknown word, if the PATH has one.
pub(crate) fn find(program: &str, word: &OsStr, path: Option<&str>) -> Option<PathBuf> {
    let word = word.to_str()?;
    let plain =
        !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || letter == '-' || letter == '_');
    if !plain {
        return None;
    }
    let name = format!("{program}-{word}");
    let here = std::env::current_dir().ok()?;
    which::which_in(&name, path, here).ok()
}

/// Becomes that program. Returns only when it cannot.
pub(crate) fn become_it(program: &std::path::Path, words: &[OsString]) -> std::io::Error {
    Command::new(program).args(words).exec()
}
