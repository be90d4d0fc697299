//! A stack as a test or a person sees it from outside.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::build::{self, Built, Extent, Version};
use crate::control::{Fault, Phase, Request, Status, ask};
use crate::keeper::BUILT;
use crate::paths;
use crate::process::Identity;
use crate::state::{Dir, State, write_json};

/// How to bring a stack up.
pub struct Options {
    /// Stacks of different names run side by side.
    pub name: String,
    /// Which control plane it runs.
    pub version: Version,
    /// How much of it runs.
    pub extent: Extent,
    /// Program and arguments that end in [`supervise`](crate::supervise). Empty: `stackd` of this workspace, built first.
    pub supervisor: Vec<OsString>,
    /// Whether the stack ends with the process that brought it up.
    pub tied: bool,
    /// How long everything may take once it is built.
    pub patience: Duration,
    /// Hears what was done and how long it took.
    pub progress: fn(&str, Duration),
}

impl Options {
    /// A stack of its own for a test: it ends with the test's process.
    pub fn test(name: &str) -> Self {
        Self {
            name: format!("{name}-{}", std::process::id()),
            version: Version::default(),
            extent: Extent::default(),
            supervisor: Vec::new(),
            tied: true,
            patience: Duration::from_secs(300),
            progress: |_, _| {},
        }
    }
}

/// A running stack.
pub struct Stack {
    name: String,
    dir: Dir,
    state: State,
    /// Only for the one who started it: its standard input ties the stack to this process.
    keeper: Option<Child>,
}

impl Stack {
    /// Builds what is missing, starts what does not run, and waits until everything is ready.
    pub async fn up(options: Options) -> Result<Self> {
        let (version, extent, progress) = (options.version, options.extent, options.progress);
        let built = tokio::task::spawn_blocking(move || build::build(version, extent, &progress)).await??;
        let dir = Dir::new(paths::state_dir(&options.name));
        let parent = dir.path().parent().context("the state folder has a parent")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot create `{}`", parent.display()))?;
        let lock = File::create(lock_file(&dir))?;
        let _lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await??;

        let stack = match State::read(&dir) {
            Some(state) if state.alive() => {
                let built = &state.built;
                if (built.version, built.extent) != (options.version, options.extent) {
                    bail!(
                        "a stack `{}` is up already, and it is another one (Kubernetes {}, {:?}): take it down first",
                        options.name,
                        built.version.git_version(),
                        built.extent
                    );
                }
                Self { name: options.name.clone(), dir, state, keeper: None }
            }
            leftover => {
                remove_leftovers(&dir, leftover, false).await?;
                Self::start(&options, dir, built).await?
            }
        };
        stack.ready(&options).await?;
        Ok(stack)
    }

    /// The running stack of this name, if there is one.
    pub fn find(name: &str) -> Option<Self> {
        let dir = Dir::new(paths::state_dir(name));
        let state = State::read(&dir).filter(State::alive)?;
        Some(Self { name: name.to_owned(), dir, state, keeper: None })
    }

    /// Stops the stack of this name and removes its files; with `keep_logs` the logs stay and their folder is returned.
    pub async fn down(name: &str, keep_logs: bool) -> Result<Option<PathBuf>> {
        let dir = Dir::new(paths::state_dir(name));
        let state = State::read(&dir);
        remove_leftovers(&dir, state, keep_logs).await?;
        remove_lock(&dir);
        Ok(dir.logs().exists().then(|| dir.logs()))
    }

    async fn start(options: &Options, dir: Dir, built: Built) -> Result<Self> {
        let supervisor = if options.supervisor.is_empty() { stackd().await? } else { options.supervisor.clone() };
        let (program, arguments) = supervisor.split_first().context("the supervisor has no name")?;
        fs::create_dir_all(dir.logs()).with_context(|| format!("cannot create `{}`", dir.logs().display()))?;
        write_json(&dir.join(BUILT), &built)?;
        let log = File::options().create(true).append(true).open(dir.supervisor_log())?;
        // A session of its own: neither a closed terminal nor its Ctrl-C reaches the stack.
        let mut command = Command::new("setsid");
        command.arg(program).args(arguments).arg("--dir").arg(dir.path());
        if options.tied {
            command.arg("--tied").stdin(Stdio::piped());
        } else {
            command.stdin(Stdio::null());
        }
        let keeper = command
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start `{}`", program.to_string_lossy()))?;
        let pid = i32::try_from(keeper.id())?;
        let identity = Identity::of(pid).context("the supervisor ended at once")?;
        let started = Instant::now();
        let state = loop {
            if let Some(state) = State::read(&dir) {
                break state;
            }
            if !identity.alive() || started.elapsed() > Duration::from_secs(20) {
                bail!("the supervisor did not start:\n{}", end_of(&dir.supervisor_log()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        Ok(Self { name: options.name.clone(), dir, state, keeper: Some(keeper) })
    }

    /// Waits until the stack is ready and passes on what was done meanwhile.
    async fn ready(&self, options: &Options) -> Result<()> {
        let started = Instant::now();
        let mut told = 0;
        let mut waiting = String::from("the supervisor");
        loop {
            if let Ok(status) = ask(&self.dir.control(), &Request::Status).await {
                for (what, seconds) in status.timings.iter().skip(told) {
                    (options.progress)(what, Duration::from_secs_f64(*seconds));
                }
                told = told.max(status.timings.len());
                match status.phase {
                    Phase::Ready => return Ok(()),
                    Phase::Failed(why) => bail!("the stack did not come up: {why}\nlogs: {}", self.logs().display()),
                    Phase::Starting(what) => waiting = what,
                }
            } else if !self.state.alive() {
                bail!("the stack ended while it started:\n{}", end_of(&self.dir.supervisor_log()));
            }
            if started.elapsed() > options.patience {
                bail!(
                    "the stack is not ready after {} s: waiting for {waiting}\nlogs: {}",
                    options.patience.as_secs(),
                    self.logs().display()
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.kubeconfig()
    }

    /// Kubeconfig of a user who is known to the API server and may do nothing.
    pub fn kubeconfig_without_rights(&self) -> PathBuf {
        self.dir.kubeconfig_without_rights()
    }

    /// The `kubectl` that was built along, of version 1.34.
    pub fn kubectl(&self) -> Result<PathBuf> {
        self.state.built.binary("kubectl")
    }

    /// The administrator's bearer token, for kubeconfigs of a test's own.
    pub fn token(&self) -> &'static str {
        crate::supervise::ADMIN_TOKEN
    }

    /// One log file per program.
    pub fn logs(&self) -> PathBuf {
        self.dir.logs()
    }

    /// A client with all rights.
    pub async fn client(&self) -> Result<kube::Client> {
        crate::client::connect(&self.kubeconfig()).await
    }

    /// What runs, and which faults are set.
    pub async fn status(&self) -> Result<Status> {
        ask(&self.dir.control(), &Request::Status).await
    }

    /// Makes something go wrong from now on.
    pub async fn break_(&self, fault: Fault) -> Result<()> {
        ask(&self.dir.control(), &Request::Set { fault }).await.map(drop)
    }

    /// Takes a fault back. Machines that have failed stay so; pods get going again.
    pub async fn mend(&self, fault: Fault) -> Result<()> {
        ask(&self.dir.control(), &Request::Clear { fault }).await.map(drop)
    }

    /// Stops one program, for instance `catalog/certified-operators`, and leaves it stopped.
    pub async fn stop_part(&self, part: &str) -> Result<()> {
        ask(&self.dir.control(), &Request::Stop { part: part.to_owned() }).await.map(drop)
    }

    /// Starts a stopped program.
    pub async fn start_part(&self, part: &str) -> Result<()> {
        ask(&self.dir.control(), &Request::Start { part: part.to_owned() }).await.map(drop)
    }

    /// Kills one program, for instance `kube-apiserver`; the supervisor starts it again at once.
    pub async fn kill_part(&self, part: &str) -> Result<()> {
        ask(&self.dir.control(), &Request::Kill { part: part.to_owned() }).await.map(drop)
    }
}

impl Stack {
    /// Stops it and leaves nothing behind. A stack of a test that is only dropped leaves its logs.
    pub async fn finish(mut self) -> Result<()> {
        // The files name the processes, so that it does not matter who started them.
        remove_leftovers(&self.dir, Some(self.state.clone()), false).await?;
        remove_lock(&self.dir);
        if let Some(mut keeper) = self.keeper.take() {
            keeper.wait()?;
        }
        Ok(())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let Some(mut keeper) = self.keeper.take() else { return };
        // Tied: its standard input is closed now, and it ends with everything it holds.
        if keeper.stdin.take().is_some() {
            let _ = keeper.wait();
        }
    }
}

async fn remove_leftovers(dir: &Dir, state: Option<State>, keep_logs: bool) -> Result<()> {
    if let Some(state) = state {
        state.keeper.terminate();
        if state.keeper.gone("the supervisor", Duration::from_secs(5)).await.is_err() {
            state.keeper.kill();
            state.keeper.gone("the supervisor", Duration::from_secs(10)).await?;
        }
        // With the keeper its end of the pipe is gone; if the inner side did not notice, help it.
        if state.namespaces.gone("the stack", Duration::from_secs(5)).await.is_err() {
            state.namespaces.kill();
            state.namespaces.gone("the stack", Duration::from_secs(10)).await?;
        }
    }
    let Ok(entries) = fs::read_dir(dir.path()) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if keep_logs && path == dir.logs() {
            continue;
        }
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("cannot remove `{}`", path.display()))?;
    }
    if !keep_logs {
        fs::remove_dir(dir.path()).with_context(|| format!("cannot remove `{}`", dir.path().display()))?;
    }
    Ok(())
}

/// Held while a stack is brought up, beside its folder.
fn lock_file(dir: &Dir) -> PathBuf {
    let mut path = dir.path().as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

/// And the folder around, when this was the last stack.
fn remove_lock(dir: &Dir) {
    let _ = fs::remove_file(lock_file(dir));
    if let Some(parent) = dir.path().parent() {
        let _ = fs::remove_dir(parent);
    }
}

/// Builds the supervisor's program and says where it is.
async fn stackd() -> Result<Vec<OsString>> {
    let output = tokio::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "testing-stack", "--bin", "stackd", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .await
        .context("cannot run `cargo build` for the supervisor")?;
    if !output.status.success() {
        bail!("the supervisor cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(OsString::from))
        .map(|program| vec![program])
        .context("cargo did not say where the supervisor is")
}

fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
