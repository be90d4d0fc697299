//! `cargo xtask stack`: the real stack from a shell.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use testing_stack::{Extent, Fault, Options, Phase, Stack, Status, Supervise, Version};

/// Starts and stops the real stack: a control plane and operators as processes on this machine.
#[derive(clap::Args)]
pub(crate) struct StackArgs {
    /// Stacks of different names run side by side.
    #[arg(long, global = true, default_value = "default")]
    name: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Builds what is missing, starts what does not run, waits until everything is ready.
    Up {
        /// Which Kubernetes: 1.24 holds the whole GPU flow, 1.34 everything but the GPU Operator.
        #[arg(long, value_parser = version, default_value = "1.24")]
        kubernetes: Version,
        /// Kubernetes and kwok only: no OLM, no machines, no operators.
        #[arg(long)]
        control_plane: bool,
    },
    /// Stops everything and removes its files.
    Down {
        /// Leave the log files.
        #[arg(long)]
        keep_logs: bool,
    },
    /// Says what runs; ends with 1 when the stack is not ready.
    Status,
    /// Prints the lines that point KUBECONFIG at the stack and put its `kubectl` first: `eval "$(cargo xtask stack env)"`.
    Env {
        /// For the user who may do nothing.
        #[arg(long)]
        without_rights: bool,
    },
    /// Makes something go wrong, or takes it back.
    Fault {
        /// Take it back.
        #[arg(long)]
        clear: bool,
        /// `quota:TYPE`, `no-stock:TYPE@ZONE`, `image-pull:KEY=VALUE`, `crash-loop:KEY=VALUE`, `node-not-ready:TYPE`, `gpu-faulty`.
        #[arg(value_parser = fault)]
        fault: Fault,
    },
    /// Stops, starts or kills one program; a killed one is started again at once.
    Part {
        /// What to do.
        action: Action,
        /// As `status` lists it, for instance `kube-apiserver`.
        part: String,
    },
    /// Holds a stack; started by `up`.
    #[command(hide = true)]
    Supervise {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        tied: bool,
        #[arg(long)]
        inner: bool,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Action {
    Stop,
    Start,
    Kill,
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.24" => Ok(Version::V1_24),
        "1.34" => Ok(Version::V1_34),
        _ => Err("there are 1.24 and 1.34".into()),
    }
}

fn fault(text: &str) -> Result<Fault, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let whole =
        || if rest.is_empty() { Err(format!("`{kind}` needs a value after a colon")) } else { Ok(rest.to_owned()) };
    match kind {
        "quota" => Ok(Fault::Quota { instance_type: whole()? }),
        "no-stock" => {
            let (instance_type, zone) = rest.split_once('@').ok_or("`no-stock` needs TYPE@ZONE")?;
            Ok(Fault::NoStock { instance_type: instance_type.to_owned(), zone: zone.to_owned() })
        }
        "image-pull" => Ok(Fault::ImagePull { label: whole()? }),
        "crash-loop" => Ok(Fault::CrashLoop { label: whole()? }),
        "node-not-ready" => Ok(Fault::NodeNotReady { instance_type: whole()? }),
        "gpu-faulty" => Ok(Fault::GpuFaulty),
        _ => Err(format!("there is no fault `{kind}`")),
    }
}

pub(crate) fn run(args: StackArgs) -> Result<()> {
    if let Command::Supervise { dir, tied, inner } = args.command {
        return testing_stack::supervise(Supervise { dir, tied, inner });
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(outside(&args.name, args.command))
}

async fn outside(name: &str, command: Command) -> Result<()> {
    match command {
        Command::Up { kubernetes, control_plane } => {
            up(name, kubernetes, if control_plane { Extent::ControlPlane } else { Extent::Everything }).await
        }
        Command::Down { keep_logs } => {
            let started = Instant::now();
            if let Some(logs) = Stack::down(name, keep_logs).await? {
                note(&format!("logs: {}", logs.display()));
            }
            note(&format!("down in {:.1} s", started.elapsed().as_secs_f64()));
            Ok(())
        }
        Command::Status => {
            let status = find(name)?.status().await?;
            show(&status);
            anyhow::ensure!(status.phase == Phase::Ready, "the stack is not ready");
            Ok(())
        }
        Command::Env { without_rights } => {
            let stack = find(name)?;
            let path = if without_rights { stack.kubeconfig_without_rights() } else { stack.kubeconfig() };
            result(&format!("export KUBECONFIG={}", path.display()));
            if let Some(dir) = stack.kubectl()?.parent() {
                result(&format!("export PATH={}:$PATH", dir.display()));
            }
            Ok(())
        }
        Command::Fault { clear, fault } => {
            let stack = find(name)?;
            if clear { stack.mend(fault).await } else { stack.break_(fault).await }
        }
        Command::Part { action, part } => {
            let stack = find(name)?;
            match action {
                Action::Stop => stack.stop_part(&part).await,
                Action::Start => stack.start_part(&part).await,
                Action::Kill => stack.kill_part(&part).await,
            }
        }
        Command::Supervise { .. } => Ok(()),
    }
}

async fn up(name: &str, version: Version, extent: Extent) -> Result<()> {
    let started = Instant::now();
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let stack = Stack::up(Options {
        name: name.to_owned(),
        version,
        extent,
        supervisor: vec![program.into(), "stack".into(), "supervise".into()],
        tied: false,
        patience: Duration::from_secs(300),
        progress: |what, took| note(&format!("{:>8.1} s  {what}", took.as_secs_f64())),
    })
    .await?;
    note(&format!("up in {:.1} s; logs: {}", started.elapsed().as_secs_f64(), stack.logs().display()));
    Ok(())
}

fn find(name: &str) -> Result<Stack> {
    Stack::find(name).with_context(|| format!("no stack `{name}` is up: run `cargo xtask stack up`"))
}

fn show(status: &Status) {
    let phase = match &status.phase {
        Phase::Ready => "ready".to_owned(),
        Phase::Starting(what) => format!("starting: {what}"),
        Phase::Failed(why) => format!("failed: {why}"),
    };
    result(&phase);
    for part in &status.parts {
        let state = if part.running { "running" } else { "stopped" };
        result(&format!("  {state}  {}  restarts {}  {}", part.name, part.restarts, part.note));
    }
    for fault in &status.faults {
        result(&format!("  fault    {fault:?}"));
    }
}

#[expect(clippy::print_stdout, reason = "the result of the command")]
fn result(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "progress for the person who waits")]
fn note(line: &str) {
    eprintln!("{line}");
}
