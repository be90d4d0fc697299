//! `rehearse --serve`: the simulated cluster for other programs, over HTTPS on loopback, in real or scaled time.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use toolbox_engine::{Clock, Exit, Why};
use toolbox_rehearsal::serve::{ServeOptions, serve};
use toolbox_rehearsal::{Scenario, World};

use super::output;
use super::own::RehearseArgs;
use super::rehearse::{label, seed};
use super::signals::Signals;
use crate::EnvMap;
use crate::config::{ConfigError, plain};

/// Serves until a signal comes or the command ends; gives the process's exit code. The runtime must not be paused.
pub(crate) async fn serve_it(args: &RehearseArgs, scenario: Scenario, env: &EnvMap) -> Result<u8, Why> {
    let signals = Signals::default();
    let clock = Clock::scaled(jiff::Timestamp::now(), args.speed);
    let label = label(args, &scenario);
    if let Some(n) = scenario.faults.iter().position(|fault| fault.when.is_some()) {
        let problem = "a cluster that is served does not see the steps of whoever uses it";
        let error = ConfigError::file(args.scenario(), problem).at(format!("faults[{n}].when"), None);
        return Err(error.help("say the moment in seconds, with `at`").into());
    }
    let seed = seed(args, &scenario);
    let failed = |what: &dyn std::error::Error| {
        let source = what.source().map(|source| format!(": {source}")).unwrap_or_default();
        ConfigError::file("rehearsal", format!("{what}{source}"))
    };
    let world = World::start(scenario, seed, clock).await.map_err(|error| failed(&error))?;
    let options = ServeOptions { port: args.port, ..ServeOptions::default() };
    let served = serve(world.api().clone(), options).await.map_err(|error| failed(&error))?;
    let file = Kubeconfig::write(env, &served.kubeconfig())?;
    output::complain(&format!("REHEARSAL: {label}, at {} times real time; nothing here is real", args.speed));
    output::complain(&format!("serving https://{}", served.address()));
    let code = if let Some((program, words)) = args.command.split_first() {
        tokio::select! {
            biased;
            () = signals.listen() => 1,
            code = child(program, words, &file.0, &signals) => code?,
        }
    } else {
        let line = format!("export KUBECONFIG={}", file.0.display());
        output::print(&line).map_err(|problem| ConfigError::file("stdout", problem))?;
        output::complain("until Ctrl-C");
        tokio::select! {
            biased;
            () = signals.listen() => {}
            () = signals.stopped.cancelled() => {}
        }
        0
    };
    served.shutdown().await;
    Ok(code)
}

async fn child(program: &OsStr, words: &[std::ffi::OsString], kubeconfig: &Path, signals: &Signals) -> Result<u8, Why> {
    let cannot = |error: &std::io::Error| {
        let problem = format!("cannot be started: {}", plain(error));
        Why::from(ConfigError::file(program.to_string_lossy(), problem).help("check the words after `--`"))
    };
    let mut child = tokio::process::Command::new(program)
        .args(words)
        .env("KUBECONFIG", kubeconfig)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| cannot(&error))?;
    let status = tokio::select! {
        biased;
        status = child.wait() => status,
        () = signals.stopped.cancelled() => {
            pass_on(&child, signals.first().1);
            child.wait().await
        }
    };
    let status = status.map_err(|error| cannot(&error))?;
    let signal = || status.signal().map_or(1, |signal| 128 + signal);
    Ok(u8::try_from(status.code().unwrap_or_else(signal)).unwrap_or(1))
}

/// A signal to this program is one to the command. Ctrl-C in a terminal has reached it already.
fn pass_on(child: &tokio::process::Child, exit: Exit) {
    let signal = match exit {
        Exit::Interrupted if std::io::stdin().is_terminal() => return,
        Exit::Interrupted => Signal::SIGINT,
        _ => Signal::SIGTERM,
    };
    let process = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(process) = process {
        // It may have ended in this moment; then there is nobody to tell.
        let _ = kill(Pid::from_raw(process), signal);
    }
}

/// The file that holds the way in; only for its owner, and gone with the server.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn write(env: &EnvMap, content: &str) -> Result<Self, Why> {
        use std::os::unix::fs::OpenOptionsExt;
        let parent = PathBuf::from(env.get("TMPDIR").unwrap_or("/tmp"));
        let path = parent.join(format!("tbx-rehearsal-{}.kubeconfig", std::process::id()));
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()));
        match written {
            Ok(()) => Ok(Self(path)),
            Err(error) => {
                let problem = format!("the kubeconfig cannot be written: {}", plain(&error));
                Err(ConfigError::file(path.display().to_string(), problem).into())
            }
        }
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // It is of no use to anybody without the server.
        let _ = std::fs::remove_file(&self.0);
    }
}
