//! The first process inside the stack's namespaces: starts everything, plays what only a cloud and
//! hardware can, and answers requests.

mod control_plane;
mod objects;
mod olm;
mod parts;
mod pki;
mod root;
mod server;
mod shared;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;

use crate::build::Extent;
use crate::catalog;
use crate::control::Phase;
use crate::state::{Dir, State};
use crate::{keeper, standin};
pub(crate) use objects::{Applier, resource};
pub(crate) use parts::Part;
pub(crate) use pki::{ACCOUNT, ADMIN_TOKEN, account};
pub(crate) use root::PrivateRoot;
pub(crate) use shared::{Shared, say, until};

/// Arguments of the process that holds a stack. A program that starts stacks parses them and calls [`supervise`].
#[derive(Clone, Debug)]
pub struct Supervise {
    /// The folder of the stack.
    pub dir: PathBuf,
    /// Whether the stack ends when standard input does.
    pub tied: bool,
    /// Set on the second call, inside the namespaces.
    pub inner: bool,
}

/// Holds a stack until it is told to end. Everything it started is gone when it returns.
pub fn supervise(args: Supervise) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let dir = Dir::new(args.dir);
    let result =
        if args.inner { runtime.block_on(inside(dir)) } else { runtime.block_on(keeper::run(&dir, args.tied)) };
    // A thread that reads standard input cannot be ended; nobody waits for it.
    runtime.shutdown_background();
    result
}

async fn inside(dir: Dir) -> Result<()> {
    loopback_up()?;
    let state = until("the keeper's state file", Duration::from_secs(10), async || Ok(State::read(&dir))).await?;
    let shared = Shared::new(dir.clone(), state.built.clone());
    let server = server::serve(shared.clone());
    let boot = async {
        match boot(&shared, state.port).await {
            Ok(()) => shared.set_phase(Phase::Ready),
            Err(error) => {
                say(&format!("not up: {error:#}"));
                shared.set_phase(Phase::Failed(format!("{error:#}")));
            }
        }
        std::future::pending::<()>().await;
    };
    let keeper_gone = async {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    tokio::select! {
        result = server => result,
        () = boot => Ok(()),
        // Ours is the first process here: when it returns, the kernel ends all others.
        () = keeper_gone => Ok(()),
    }
}

/// A new network has a loopback device that is down.
fn loopback_up() -> Result<()> {
    let with_ip = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    if with_ip.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let script = "mount -t sysfs sysfs /sys && echo 0x9 > /sys/class/net/lo/flags";
    let status = Command::new("sh").args(["-c", script]).status().context("cannot run `sh`")?;
    anyhow::ensure!(status.success(), "cannot bring up loopback: neither `ip link set lo up` nor sysfs works here");
    Ok(())
}

async fn boot(shared: &Shared, port: u16) -> Result<()> {
    shared
        .step("certificates", async {
            pki::write(&shared.dir, port)?;
            std::fs::create_dir_all(shared.dir.join("tmp"))?;
            Ok(())
        })
        .await?;
    shared.step("etcd", control_plane::etcd(shared)).await?;
    shared.step("API server", control_plane::api_server(shared)).await?;
    let client = crate::client::connect(&shared.dir.kubeconfig_inside()).await?;
    control_plane::controllers(shared)?;
    if shared.built.extent == Extent::ControlPlane {
        shared.step("CRDs and stages of kwok", objects::install_kwok(shared, &client)).await?;
        control_plane::nodes(shared)?;
        return shared.step("default service account", control_plane::accounts_ready(&client)).await;
    }

    let catalogs = shared.step("catalog files", async { catalog::write(shared) }).await?;
    shared.step("CRDs and cluster objects", objects::install(shared, &client)).await?;
    control_plane::machines(shared)?;
    control_plane::nodes(shared)?;
    olm::start(shared, &catalogs)?;
    standin::start(shared, &client);
    shared.step("worker nodes", standin::workers_ready(&client)).await?;
    shared.step("catalogs and package manifests", olm::ready(&client, &catalogs)).await
}
