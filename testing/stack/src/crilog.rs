//! Container logs in the format that kubelets write and kwok reads: `<time> <stream> F <text>`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Appends lines to a container log.
pub(crate) fn append(path: &Path, lines: &[&str]) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&record("stdout", line));
    }
    open(path)?.write_all(text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))
}

fn record(stream: &str, line: &str) -> String {
    format!("{} {stream} F {line}\n", stamp())
}

/// Nine digits of fraction, always: the reader expects RFC 3339 with nanoseconds.
fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()
}

fn open(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    File::options().create(true).append(true).open(path).with_context(|| format!("cannot open `{}`", path.display()))
}

/// Copies a program's output into a container log until it ends.
pub(crate) fn copy(
    path: PathBuf,
    stdout: Option<impl AsyncRead + Unpin + Send + 'static>,
    stderr: Option<impl AsyncRead + Unpin + Send + 'static>,
) {
    if let Some(stream) = stdout {
        tokio::spawn(copy_one(path.clone(), "stdout", stream));
    }
    if let Some(stream) = stderr {
        tokio::spawn(copy_one(path, "stderr", stream));
    }
}

async fn copy_one(path: PathBuf, name: &'static str, stream: impl AsyncRead + Unpin) {
    let Ok(mut file) = open(&path) else { return };
    let mut lines = BufReader::new(stream).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        // One write per line: both streams go to the same file.
        let _ = file.write_all(record(name, &String::from_utf8_lossy(&line)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_carries_a_time_and_its_stream() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pods/a.log");
        append(&path, &["one", "10%\r20%"]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with(" stdout F one"));
        assert_eq!(lines[0].split(' ').next().unwrap().len(), "2022-06-01T00:00:00.123456789Z".len());
        assert!(lines[1].ends_with(" stdout F 10%\r20%"));
    }
}
