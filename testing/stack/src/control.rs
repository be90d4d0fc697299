//! What is said between a test and the supervisor of a stack: one JSON line each way on a Unix socket.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Something that goes wrong on purpose. It stays until it is taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The cloud has no quota for machines of this type: they go to `Failed`.
    Quota {
        /// For instance `g4dn.xlarge`.
        instance_type: String,
    },
    /// The cloud has no machine of this type left in one zone: they go to `Failed`.
    NoStock {
        /// For instance `g4dn.xlarge`.
        instance_type: String,
        /// For instance `us-test-1a`.
        zone: String,
    },
    /// Nodes of this type join and never become Ready.
    NodeNotReady {
        /// For instance `g4dn.xlarge`.
        instance_type: String,
    },
    /// The image of pods with this label cannot be pulled: they wait in `ImagePullBackOff`.
    ImagePull {
        /// `key=value`.
        label: String,
    },
    /// The container of pods with this label exits again and again: they wait in `CrashLoopBackOff`. Driver pods
    /// on nodes with a driver toolkit have `openshift.driver-toolkit=true`.
    CrashLoop {
        /// `key=value`.
        label: String,
    },
    /// gpu-burn finds errors on the first GPU of every node.
    GpuFaulty,
}

/// What a test asks of the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    Status,
    /// Stops a part and leaves it stopped.
    Stop {
        part: String,
    },
    Start {
        part: String,
    },
    /// Kills a part, which is then started again at once.
    Kill {
        part: String,
    },
    Set {
        fault: Fault,
    },
    Clear {
        fault: Fault,
    },
}

/// How far a stack has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// On its way; the text names what is waited for.
    Starting(String),
    /// Everything is there.
    Ready,
    /// It will not come up, and why.
    Failed(String),
}

/// One program of the stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartStatus {
    /// For instance `kube-apiserver` or `nfd-worker/NODE`.
    pub name: String,
    /// Whether it runs at the moment.
    pub running: bool,
    /// How often it was started again after it had ended.
    pub restarts: u32,
    /// Why it does not run.
    pub note: String,
}

/// The state of a running stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// How far it has come.
    pub phase: Phase,
    /// What was done so far, with the seconds it took.
    pub timings: Vec<(String, f64)>,
    /// Every program.
    pub parts: Vec<PartStatus>,
    /// The faults that are set.
    pub faults: Vec<Fault>,
}

pub(crate) type Answer = Result<Status, String>;

/// Sends one request and reads the answer.
pub(crate) async fn ask(socket: &Path, request: &Request) -> Result<Status> {
    let exchange = async {
        let mut stream = UnixStream::connect(socket).await.context("the supervisor of the stack does not answer")?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        if answer.is_empty() {
            bail!("the supervisor of the stack hung up");
        }
        serde_json::from_str::<Answer>(&answer)?.map_err(|text| anyhow!(text))
    };
    tokio::time::timeout(Duration::from_secs(30), exchange)
        .await
        .context("the supervisor of the stack gave no answer within 30 s")?
}
