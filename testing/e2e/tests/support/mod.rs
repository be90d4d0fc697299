//! Runs of the `tbx` program on a stack, and what they leave.

// Each test file uses a part of it.
#![expect(dead_code, reason = "shared by several test programs")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testing_stack::{Options, Stack};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// Longer than any run takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// A stack and a folder for the artifacts of the runs on it.
pub(crate) struct Bench {
    pub(crate) stack: Stack,
    pub(crate) client: kube::Client,
    pub(crate) folder: PathBuf,
    kubeconfig: PathBuf,
    tbx: PathBuf,
    /// What the programs printed.
    pub(crate) printed: String,
}

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) dir: PathBuf,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A run that goes on.
pub(crate) struct Running {
    child: Child,
    errors: Lines<BufReader<ChildStderr>>,
    seen: String,
    dir: PathBuf,
}

impl Bench {
    pub(crate) async fn new(name: &str) -> Result<Self> {
        let stack = Stack::up(Options::test(name)).await?;
        let client = stack.client().await?;
        let folder = std::env::temp_dir().join(format!("tbx-e2e-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let kubeconfig = stack.kubeconfig();
        Ok(Self { stack, client, folder, kubeconfig, tbx: tbx().await?, printed: String::new() })
    }

    pub(crate) async fn finish(self) -> Result<()> {
        self.stack.finish().await?;
        fs::remove_dir_all(&self.folder)?;
        let _ = fs::remove_file(self.folder.with_extension("kubeconfig"));
        Ok(())
    }

    fn command(&self, artifacts: &str, words: &str) -> Command {
        let mut command = Command::new(&self.tbx);
        command
            .args(words.split_whitespace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("ARTIFACT_DIR", self.folder.join(artifacts))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs it to its end. Its artifacts are below a folder of this name.
    pub(crate) async fn run(&mut self, artifacts: &str, words: &str) -> Result<Run> {
        let output = timeout(PATIENCE, self.command(artifacts, words).output())
            .await
            .with_context(|| format!("`tbx {words}` took more than {PATIENCE:?}"))??;
        Ok(self.ended(artifacts, output))
    }

    /// The same, when it has to end with 0.
    pub(crate) async fn pass(&mut self, artifacts: &str, words: &str) -> Result<Run> {
        let run = self.run(artifacts, words).await?;
        ensure!(run.code == 0, "`tbx {words}` ended with {}:\n{}", run.code, run.first_lines());
        Ok(run)
    }

    /// The same, when it has to end with another code: what its first line of error says.
    pub(crate) async fn fail(&mut self, code: i32, artifacts: &str, words: &str) -> Result<(Run, String)> {
        let run = self.run(artifacts, words).await?;
        ensure!(run.code == code, "`tbx {words}` ended with {}:\n{}", run.code, run.first_lines());
        let error = run.stderr.lines().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned);
        let error = error.with_context(|| format!("`tbx {words}` names no error:\n{}", run.first_lines()))?;
        Ok((run, error))
    }

    fn ended(&mut self, artifacts: &str, output: Output) -> Run {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let named = stderr.lines().rev().find_map(|line| line.strip_prefix("run directory: "));
        let dir = named.map_or_else(|| self.folder.join(artifacts), PathBuf::from);
        self.printed.extend([stdout.as_str(), stderr.as_str()]);
        // A signal that was not handled.
        let code = output.status.code().unwrap_or(-1);
        Run { code, dir, stdout, stderr }
    }

    /// Starts it and lets it run.
    pub(crate) fn start(&self, artifacts: &str, words: &str) -> Result<Running> {
        let mut child = self.command(artifacts, words).spawn()?;
        let errors = child.stderr.take().context("standard error is piped")?;
        let errors = BufReader::new(errors).lines();
        Ok(Running { child, errors, seen: String::new(), dir: self.folder.join(artifacts) })
    }

    /// Waits for the end of a run that was started.
    pub(crate) async fn end(&mut self, running: Running) -> Result<Run> {
        let Running { mut child, errors, mut seen, dir } = running;
        let mut errors = errors.into_inner();
        let mut stdout = child.stdout.take().context("standard output is piped")?;
        let mut output = Output { status: std::process::ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() };
        let rest = async {
            let mut rest = String::new();
            tokio::try_join!(errors.read_to_string(&mut rest), stdout.read_to_end(&mut output.stdout))?;
            seen.push_str(&rest);
            output.status = child.wait().await?;
            Ok::<_, std::io::Error>(())
        };
        timeout(PATIENCE, rest).await.context("the run does not end")??;
        output.stderr = seen.into_bytes();
        let artifacts = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        Ok(self.ended(&artifacts, output))
    }

    /// Every object of these kinds, by path, with its version.
    pub(crate) async fn objects(&self, paths: &[&str]) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        for path in paths {
            let request = http::Request::get(*path).body(Vec::new())?;
            let list: Value = match self.client.request(request).await {
                Ok(list) => list,
                // A kind that is not there has no objects.
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot list {path}")),
            };
            for item in list["items"].as_array().into_iter().flatten() {
                let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
                let key = format!("{path}: {}/{}", text("namespace"), text("name"));
                found.insert(key, text("resourceVersion").to_owned());
            }
        }
        Ok(found)
    }

    /// Fails when one of the texts is in a file below the folder, or was printed.
    pub(crate) fn has_none_of(&self, secrets: &[(&str, &str)]) -> Result<()> {
        let mut files = 0;
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path != self.kubeconfig {
                    files += 1;
                    let bytes = fs::read(&path)?;
                    let text = String::from_utf8_lossy(&bytes);
                    for (name, secret) in secrets {
                        ensure!(!text.contains(secret), "the {name} is in {}", path.display());
                    }
                }
            }
        }
        ensure!(files > 50, "only {files} files were looked at");
        for (name, secret) in secrets {
            ensure!(!self.printed.contains(secret), "the {name} was printed");
        }
        Ok(())
    }

    /// Use this kubeconfig from now on.
    pub(crate) fn kubeconfig(&mut self, path: PathBuf) {
        self.kubeconfig = path;
    }
}

impl Running {
    /// Reads on until a line has this text.
    pub(crate) async fn says(&mut self, text: &str) -> Result<()> {
        let reading = async {
            while let Some(line) = self.errors.next_line().await? {
                self.seen.push_str(&line);
                self.seen.push('\n');
                if line.contains(text) {
                    return Ok(());
                }
            }
            bail!("it ended before it said `{text}`:\n{}", self.seen)
        };
        timeout(PATIENCE, reading).await.with_context(|| format!("it does not say `{text}`:\n{}", self.seen))?
    }

    /// Reads on for a number of lines.
    pub(crate) async fn lines(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.says("").await?;
        }
        Ok(())
    }

    pub(crate) async fn signal(&self, name: &str) -> Result<()> {
        let pid = self.child.id().context("it has ended")?;
        let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().await?;
        ensure!(status.success(), "cannot send {name}");
        Ok(())
    }
}

impl Run {
    pub(crate) fn summary(&self) -> Result<Value> {
        self.json("summary.json")
    }

    pub(crate) fn json(&self, name: &str) -> Result<Value> {
        let text = self.file(name)?;
        serde_json::from_str(&text).with_context(|| format!("{name} of {}", self.dir.display()))
    }

    pub(crate) fn file(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.dir.join(name))
            .with_context(|| format!("cannot read {name} in {}:\n{}", self.dir.display(), self.first_lines()))
    }

    /// A file of one of the directories of a flow's parts.
    pub(crate) fn part(&self, part: &str, name: &str) -> Result<String> {
        let of_part = |path: &Path| path.to_string_lossy().ends_with(part);
        let mut folders: Vec<PathBuf> = fs::read_dir(&self.dir)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| of_part(path))
            .collect();
        folders.sort();
        let folder = folders.pop().with_context(|| format!("there is no part {part} in {}", self.dir.display()))?;
        fs::read_to_string(folder.join(name)).with_context(|| format!("{name} of {}", folder.display()))
    }

    /// The ids of the steps that ended this way.
    pub(crate) fn steps(&self, state: &str) -> Result<Vec<String>> {
        let events = self.file("events.jsonl")?;
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ended = events.filter(|event| event["event"] == "ended" && event["state"] == state);
        Ok(ended.filter_map(|event| event["step"].as_str().map(str::to_owned)).collect())
    }

    /// What there is to see when something is wrong.
    pub(crate) fn first_lines(&self) -> String {
        let mut text = format!("run directory {}\n", self.dir.display());
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            text.extend(["  ", &*entry.file_name().to_string_lossy(), "\n"]);
        }
        let summary = fs::read_to_string(self.dir.join("summary.json")).unwrap_or_default();
        for line in summary.lines().take(30) {
            text.extend(["  ", line, "\n"]);
        }
        let lines: Vec<&str> = self.stderr.lines().collect();
        text.push_str(&lines[lines.len().saturating_sub(40)..].join("\n"));
        text
    }
}

/// The program: the one that `cargo xtask test` has built beside the tests, or else one that is built now.
async fn tbx() -> Result<PathBuf> {
    let tests = std::env::current_exe()?;
    let beside = tests.parent().and_then(Path::parent).map(|folder| folder.join("tbx"));
    if let Some(built) = beside.filter(|path| path.exists()) {
        return Ok(built);
    }
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "tbx", "--bin", "tbx", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .await?;
    ensure!(output.status.success(), "tbx cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo did not say where tbx is")
}
