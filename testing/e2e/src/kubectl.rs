//! A session with kubectl, played against any server, and what of it is compared.
//!
//! The commands are in `kubectl/session.txt`, their inputs beside it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use regex::Regex;

/// Longer than any command of the session takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// What is compared of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Everything,
    Sorted,
    LastLine,
    ExitCode,
}

/// A command of the session.
#[derive(Clone, Debug)]
pub struct Step {
    compared: Compared,
    command: String,
}

/// The session's commands, in order.
pub fn session() -> Vec<Step> {
    let marks = [("sorted: ", Compared::Sorted), ("last: ", Compared::LastLine), ("code: ", Compared::ExitCode)];
    let lines = include_str!("../kubectl/session.txt").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let marked = marks.iter().find_map(|(mark, compared)| Some((line.strip_prefix(mark)?, *compared)));
            let (command, compared) = marked.unwrap_or((line, Compared::Everything));
            Step { compared, command: command.to_owned() }
        })
        .collect()
}

/// What a command has printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Said {
    out: String,
    err: String,
    code: Option<i32>,
}

/// Plays a session. The server's way in is the text of a kubeconfig, which the session may change.
pub async fn play(kubectl: &Path, kubeconfig: &str, steps: &[Step]) -> Result<Vec<Said>> {
    let home = tempfile::tempdir()?;
    let config = home.path().join("kubeconfig");
    std::fs::write(&config, kubeconfig)?;
    let inputs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("kubectl");
    let programs = kubectl.parent().context("kubectl is in no folder")?.display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut all = Vec::new();
    for step in steps {
        let run = tokio::process::Command::new("/bin/sh")
            .args(["-c", &step.command])
            .current_dir(&inputs)
            .env("PATH", &path)
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .env("KUBECONFIG", &config)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let run =
            tokio::time::timeout(PATIENCE, run).await.with_context(|| format!("{} does not end", step.command))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&home.path().display().to_string(), "TMP");
        all.push(Said { out: text(&run.stdout), err: text(&run.stderr), code: run.status.code() });
    }
    Ok(all)
}

/// A command whose answers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The command.
    pub command: String,
    /// Lines of the first side only (`-`), and of the second only (`+`).
    pub lines: Vec<String>,
}

/// Where two plays of a session differ, after what differs by nature is made equal.
pub fn compare(steps: &[Step], left: &[Said], right: &[Said]) -> Result<Vec<Difference>> {
    ensure!(steps.len() == left.len() && steps.len() == right.len(), "not the same session");
    let plain = Plain::new()?;
    let mut out = Vec::new();
    for ((step, left), right) in steps.iter().zip(left).zip(right) {
        let (left, right) = (plain.lines(step.compared, left), plain.lines(step.compared, right));
        if left != right {
            let only = |mark: &str, own: &[String], other: &[String]| -> Vec<String> {
                own.iter().filter(|line| !other.contains(line)).map(|line| format!("{mark} {line}")).collect()
            };
            let mut lines = only("-", &left, &right);
            lines.extend(only("+", &right, &left));
            if lines.is_empty() {
                lines.push("the same lines in another order".to_owned());
            }
            out.push(Difference { command: step.command.clone(), lines });
        }
    }
    Ok(out)
}

/// What differs from run to run, or from cluster to cluster, and the word that stands for it.
const VARYING: [(&str, &str); 19] = [
    (r"([Nn]ode(?:Name)?: +)worker-\d", "$1 NODE"),
    (r"lastProbeTime: null\n +", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d{4}|Z)?", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]+ [+-]\d{4}", "TIME"),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    (r"\b\d{1,3}(\.\d{1,3}){3}\b", "IP"),
    (r"\b(LIVE|MERGED)-\d+", "$1"),
    (r#""stack"|"rehearsal""#, "CONTEXT"),
    (r"\b(web|made)-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "$1-HASH-NAME"),
    (r"\b(sum|made|now|web)-[a-z0-9]{5}\b", "$1-NAME"),
    (r"\b(web|made)-[a-z0-9]{8,10}\b", "$1-HASH"),
    (r"(pod-template-hash[=:]) ?[a-z0-9]+", "$1 HASH"),
    (r#"(resourceVersion: "|Resource Version: +)\d+"#, "$1 N"),
    (r"\bgo1\.\d+(\.\d+)?\b", "GO"),
    (r#"("gitCommit": ")[0-9a-f]+"#, "$1 COMMIT"),
    (r"(worker\S* +\S+ +)v1\.[\w.+]+", "$1 VERSION"),
    (r"( \(x\d+ over \w+\))", ""),
    (r"\b(\d+d)?(\d+h)?(\d+m)?\d+s\b|\b\d+[mhd]\b", "AGE"),
];

/// Lines that only one of the sides can have: the stack runs without the admission of service accounts, and kwok pulls no
/// images.
const LEFT_OUT: [&str; 5] =
    ["imageID:", "serviceAccount: default", "serviceAccountName: default", "Service Account:", "Image ID:"];

struct Plain(Vec<(Regex, &'static str)>);

impl Plain {
    fn new() -> Result<Self> {
        let read = |(pattern, word): &(&str, &'static str)| Ok((Regex::new(pattern)?, *word));
        Ok(Self(VARYING.iter().map(read).collect::<Result<_>>()?))
    }

    fn lines(&self, compared: Compared, said: &Said) -> Vec<String> {
        let code = format!("exit code {:?}", said.code);
        if compared == Compared::ExitCode {
            return vec![code];
        }
        let mut lines = self.text(&said.out);
        if compared == Compared::LastLine {
            lines.drain(..lines.len().saturating_sub(1));
        }
        lines.extend(self.text(&said.err).into_iter().map(|line| format!("stderr: {line}")));
        if compared == Compared::Sorted {
            lines.sort();
        }
        lines.push(code);
        lines
    }

    fn text(&self, text: &str) -> Vec<String> {
        let mut text = text.to_owned();
        for (pattern, word) in &self.0 {
            text = pattern.replace_all(&text, *word).into_owned();
        }
        let lines = text
            .lines()
            .filter(|line| !LEFT_OUT.iter().any(|part| line.trim().trim_start_matches("- ").starts_with(part)));
        lines.map(columns).filter(|line| !line.is_empty()).collect()
    }
}

/// A line without the width of its columns. How far it stands in is kept, but for lines that stand in a column.
fn columns(line: &str) -> String {
    let text = line.trim_start();
    let mut out = " ".repeat((line.len() - text.len()).min(8));
    let mut blanks = 0;
    for letter in text.chars() {
        if letter == ' ' || letter == '\t' {
            blanks += 1;
            continue;
        }
        match blanks {
            0 => {}
            1 => out.push(' '),
            _ => out.push_str("  "),
        }
        blanks = 0;
        out.push(letter);
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(out: &str) -> Said {
        Said { out: out.to_owned(), err: String::new(), code: Some(0) }
    }

    fn differences(compared: Compared, left: &str, right: &str) -> Vec<String> {
        let steps = [Step { compared, command: "c".into() }];
        let found = compare(&steps, &[said(left)], &[said(right)]).unwrap();
        found.into_iter().flat_map(|one| one.lines).collect()
    }

    #[test]
    fn what_differs_by_nature_is_equal() {
        let left = "NAME                   READY   AGE\nweb-5754d4b879-x7k2p   1/1     5s\n";
        let right = "NAME                   READY   AGE\nweb-gn7kst2x2r-h2w2t   1/1     3m10s\n";
        assert!(differences(Compared::Everything, left, right).is_empty());
    }

    #[test]
    fn what_differs_is_shown() {
        assert_eq!(differences(Compared::Everything, "a\nb  1\n", "a\nb  2\n"), ["- b  1", "+ b  2"]);
        assert_eq!(differences(Compared::Everything, "a\nb\n", "b\na\n"), ["the same lines in another order"]);
        assert!(differences(Compared::Sorted, "a\nb\n", "b\na\n").is_empty());
        assert!(differences(Compared::LastLine, "x\nb\n", "y\nb\n").is_empty());
    }

    #[test]
    fn the_session_is_read() {
        let steps = session();
        assert!(steps.len() > 200 && steps.iter().all(|step| step.command.starts_with("kubectl ")));
    }
}
