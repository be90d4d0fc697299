//! The process that holds a stack: it makes the namespaces, and a gate from this machine's loopback into them.
//!
//! Everything that the stack consists of runs in network, process and mount namespaces of its own. Fixed
//! ports therefore clash with nobody, nothing listens on the machine but the gate, mounts stay inside, and
//! when the first process in there ends the kernel ends all others. That first process ends when its
//! standard input does, which is held here: whatever kills the keeper takes the stack along.

use std::fs::File;
use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UnixStream};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::build::Built;
use crate::process::Identity;
use crate::state::{Dir, State};

pub(crate) const BUILT: &str = "built.json";

/// Runs until the stack ends, or until standard input does when `tied`.
pub(crate) async fn run(dir: &Dir, tied: bool) -> Result<()> {
    let built: Built = serde_json::from_slice(&std::fs::read(dir.join(BUILT)).context("cannot read what was built")?)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on loopback")?;
    let port = listener.local_addr()?.port();

    let log = File::options().create(true).append(true).open(dir.supervisor_log())?;
    let mut arguments = std::env::args_os();
    arguments.next();
    let mut inner = Command::new("unshare")
        .args(if nix::unistd::geteuid().is_root() { [].as_slice() } else { ["--map-root-user"].as_slice() })
        .args(["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"])
        .arg(std::env::current_exe().context("cannot tell which program this is")?)
        .args(arguments)
        .arg("--inner")
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("cannot run `unshare`, which the private namespaces of the stack need")?;
    // Waiting for a child closes its standard input, unless it is held elsewhere.
    let lifeline = inner.stdin.take();
    let pid = i32::try_from(inner.id().context("`unshare` ended at once")?)?;
    let me = i32::try_from(std::process::id())?;
    State {
        keeper: Identity::of(me).context("cannot read this process's start time")?,
        namespaces: Identity::of(pid).context("`unshare` ended at once")?,
        port,
        built,
    }
    .write(dir)?;

    let gate = async {
        loop {
            let Ok((mut client, _)) = listener.accept().await else { continue };
            let socket = dir.gate();
            tokio::spawn(async move {
                if let Ok(mut server) = UnixStream::connect(socket).await {
                    // Either side may hang up at any time.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let owner = async {
        if tied {
            let mut rest = Vec::new();
            let _ = tokio::io::stdin().read_to_end(&mut rest).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        status = inner.wait() => {
            status?;
        }
        () = gate => {}
        () = owner => {}
        _ = terminate.recv() => {}
    }
    drop(lifeline);
    inner.wait().await?;
    Ok(())
}
