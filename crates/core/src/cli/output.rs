//! Writing to stdout and stderr. A reader that has gone away is no error.

use std::io::{self, Write};

use serde_json::Value;
use toolbox_engine::Report;

use super::args::Output;
use crate::config::to_yaml;

/// Writes a line or more to stderr.
pub(crate) fn complain(text: &str) {
    // Nobody is left to tell when this does not work.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes to stdout. `Err` says why nobody got it; a closed pipe is fine.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| {
        if text.is_empty() || text.ends_with('\n') {
            out.flush()
        } else {
            out.write_all(b"\n").and_then(|()| out.flush())
        }
    });
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the result cannot be written to stdout: {}", crate::config::plain(&error)))
        }
        _ => Ok(()),
    }
}

/// A result in the form that was asked for.
pub(crate) fn form(report: &Report, output: Output) -> String {
    match output {
        Output::Text => report.text.clone(),
        Output::Json => pretty(&report.json),
        Output::Yaml => to_yaml(&report.json).unwrap_or_else(|_| pretty(&report.json)),
    }
}

/// JSON for people as well.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}
