//! A place of its own for each test, and the program run there.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A directory and an environment that hold nothing of the machine's.
pub(crate) struct World {
    root: tempfile::TempDir,
    env: std::cell::RefCell<Vec<(String, String)>>,
}

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program of the tests: the example, which cargo builds with them.
pub(crate) fn program() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    me.parent().and_then(Path::parent).unwrap().join("examples/demo")
}

impl World {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), env: Vec::new().into() }
    }

    pub(crate) fn root(&self) -> String {
        self.root.path().display().to_string()
    }

    /// A path in the artifact directory.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.root.path().join("artifacts").join(path)
    }

    /// Writes a file beside the artifact directory, where the program is started.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.root.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Every file in the artifact directory.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    walk(&entry.path(), found);
                } else {
                    found.push(entry.path());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.file(""), &mut found);
        found
    }

    /// Sets a variable for the runs that follow.
    pub(crate) fn env(&self, name: &str, value: &str) -> &Self {
        self.env.borrow_mut().push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(words)
            .current_dir(self.root.path())
            .env_clear()
            .env("HOME", self.root.path())
            .env("TMPDIR", self.root.path())
            .env("PATH", self.root.path())
            .env("ARTIFACT_DIR", self.file(""))
            .envs(self.env.borrow().iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Run {
        self.command(words).output().unwrap().into()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn assert(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// stdout as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// stderr, without what differs from machine to machine.
    pub(crate) fn shown(&self, world: &World) -> String {
        self.err.replace(&format!("{}/artifacts", world.root()), "[DIR]").replace("[DIR]//", "[DIR]/")
    }
}

/// Sends a signal to a run.
pub(crate) fn send(child: &Child, signal: &str) {
    let done = Command::new("/bin/sh").arg("-c").arg(format!("kill -{signal} {}", child.id())).status().unwrap();
    assert!(done.success());
}

/// Starts a run that holds at a step, and waits until it does.
pub(crate) fn held(world: &World, words: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut child = world.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("held here") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "ended before it held");
    }
    (child, err)
}
