//! The programs of the stack: started, started again when they end, stopped by name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::root::PrivateRoot;
use crate::control::PartStatus;
use crate::crilog;

/// One program and how it is run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// A map and no shell text: some of the operators' variables are no names that a shell accepts.
    pub(crate) env: BTreeMap<String, String>,
    /// Files at fixed paths that only this program sees.
    pub(crate) root: Option<PrivateRoot>,
    /// Where its output goes as a container log, besides nowhere else; otherwise to a plain log file.
    pub(crate) container_log: Option<PathBuf>,
}

impl Part {
    pub(crate) fn new(name: &str, program: PathBuf) -> Self {
        Self { name: name.to_owned(), program, ..Self::default() }
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// A flag and its path: `--flag=PATH`.
    pub(crate) fn flag(self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        let mut arg = OsString::from(format!("--{name}="));
        arg.push(value);
        self.arg(arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Run,
    Stop,
    /// Not needed any more: the entry goes.
    Forget,
}

struct Entry {
    wish: watch::Sender<Wish>,
    pid: Option<i32>,
    restarts: u32,
    note: String,
}

/// Every program of this stack.
#[derive(Clone)]
pub(crate) struct Parts {
    logs: PathBuf,
    scratch: PathBuf,
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
}

impl Parts {
    pub(crate) fn new(logs: PathBuf, scratch: PathBuf) -> Self {
        Self { logs, scratch, entries: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a program; nothing happens when one of this name is there.
    pub(crate) fn start(&self, part: Part) {
        let mut entries = self.lock();
        if entries.contains_key(&part.name) {
            return;
        }
        let (wish, wishes) = watch::channel(Wish::Run);
        entries.insert(part.name.clone(), Entry { wish, pid: None, restarts: 0, note: String::new() });
        tokio::spawn(self.clone().keep(part, wishes));
    }

    /// Stops a program for good.
    pub(crate) fn forget(&self, name: &str) {
        if let Some(entry) = self.lock().get(name) {
            entry.wish.send_replace(Wish::Forget);
        }
    }

    pub(crate) fn stop(&self, name: &str) -> Result<()> {
        self.wish(name, Wish::Stop)
    }

    pub(crate) fn resume(&self, name: &str) -> Result<()> {
        self.wish(name, Wish::Run)
    }

    pub(crate) fn kill(&self, name: &str) -> Result<()> {
        let pid = self.lock().get(name).with_context(|| format!("there is no part `{name}`"))?.pid;
        let Some(pid) = pid else { bail!("`{name}` does not run") };
        killpg(Pid::from_raw(pid), Signal::SIGKILL).with_context(|| format!("cannot kill `{name}`"))
    }

    fn wish(&self, name: &str, wish: Wish) -> Result<()> {
        let entries = self.lock();
        let Some(entry) = entries.get(name) else {
            let names: Vec<&str> = entries.keys().map(String::as_str).collect();
            bail!("there is no part `{name}`; there are: {}", names.join(", "));
        };
        entry.wish.send_replace(wish);
        Ok(())
    }

    pub(crate) fn status(&self) -> Vec<PartStatus> {
        let status = |(name, entry): (&String, &Entry)| PartStatus {
            name: name.clone(),
            running: entry.pid.is_some(),
            restarts: entry.restarts,
            note: entry.note.clone(),
        };
        self.lock().iter().map(status).collect()
    }

    fn update(&self, name: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.lock().get_mut(name) {
            change(entry);
        }
    }

    async fn keep(self, part: Part, mut wishes: watch::Receiver<Wish>) {
        loop {
            let wish = *wishes.borrow_and_update();
            match wish {
                Wish::Forget => break,
                Wish::Stop => {
                    if wishes.changed().await.is_err() {
                        break;
                    }
                    continue;
                }
                Wish::Run => {}
            }
            match self.spawn(&part) {
                Ok(mut child) => {
                    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
                    self.update(&part.name, |entry| {
                        entry.pid = pid;
                        entry.note.clear();
                    });
                    let note = tokio::select! {
                        status = child.wait() => match status {
                            Ok(status) => format!("ended: {status}"),
                            Err(error) => format!("ended: {error}"),
                        },
                        // Any change of the wish means that it is to end.
                        _ = wishes.changed() => {
                            end(&mut child).await;
                            "stopped".to_owned()
                        }
                    };
                    self.update(&part.name, |entry| {
                        entry.pid = None;
                        entry.note = note;
                    });
                }
                Err(error) => self.update(&part.name, |entry| entry.note = format!("{error:#}")),
            }
            if *wishes.borrow() == Wish::Run {
                self.update(&part.name, |entry| entry.restarts += 1);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
        self.lock().remove(&part.name);
    }

    fn spawn(&self, part: &Part) -> Result<Child> {
        let file_name = part.name.replace('/', "_");
        let mut command = if let Some(root) = &part.root {
            root.command(&self.scratch.join(&file_name), &part.program, &part.args, &part.env)?
        } else {
            let mut command = Command::new(&part.program);
            command.args(&part.args).envs(&part.env);
            command
        };
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        if let Some(path) = &part.container_log {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().with_context(|| format!("cannot start `{}`", part.program.display()))?;
            crilog::copy(path.clone(), child.stdout.take(), child.stderr.take());
            return Ok(child);
        }
        let log = open_log(&self.logs.join(format!("{file_name}.log")))?;
        command.stdout(log.try_clone()?).stderr(log);
        command.spawn().with_context(|| format!("cannot start `{}`", part.program.display()))
    }
}

fn open_log(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    File::options().create(true).append(true).open(path).with_context(|| format!("cannot open `{}`", path.display()))
}

/// Asks politely, then ends it: some of the servers take a minute to go.
async fn end(child: &mut Child) {
    let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) else { return };
    let group = Pid::from_raw(pid);
    let _ = killpg(group, Signal::SIGTERM);
    if tokio::time::timeout(Duration::from_secs(3), child.wait()).await.is_err() {
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.wait().await;
    }
}
