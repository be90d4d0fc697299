//! Finding the cluster: kubeconfig, context, proxy, credentials; and saying where it was found.

mod cause;
mod credentials;
mod kubeconfig;
mod pem;
mod proxy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt as _;
use kube::client::ClientBuilder;
use kube::config::ExecInteractiveMode;
use toolbox_engine::{Clock, ObjectRef, Why};

use self::cause::ConnectCause;
use self::kubeconfig::Chosen;
use crate::cluster::{Cluster, ClusterInfo, parse};
use crate::error::ClusterError;
use crate::kinds;
use crate::transport::{Call, Patience, Reload};

pub(crate) use credentials::credentials_trouble;

/// How long the first answer is waited for: a wrong address should not take minutes to be found out.
const FIRST_ANSWER: Duration = Duration::from_secs(15);

/// How to reach the cluster, as far as it was said.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// `--kubeconfig`: wins over the environment.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
    /// `--as`.
    pub impersonate: Option<String>,
    /// `--as-group`.
    pub impersonate_groups: Vec<String>,
    /// `--request-timeout`: how long one attempt may take; zero is no limit.
    pub request_timeout: Option<Duration>,
    /// How long a request is repeated while the API has trouble.
    pub retry_budget: Option<Duration>,
    /// Use the pod's service account and nothing else.
    pub in_cluster: bool,
    /// Whether a credential plugin may ask the person at the terminal.
    pub interactive: bool,
    /// The environment. Only `KUBECONFIG`, `HOME`, `KUBERNETES_SERVICE_*` and the proxy variables are looked at.
    pub environment: BTreeMap<String, String>,
}

impl ConnectOptions {
    fn patience(&self) -> Patience {
        let usual = Patience::default();
        Patience {
            budget: self.retry_budget.unwrap_or(usual.budget),
            attempt: match self.request_timeout {
                None => usual.attempt,
                Some(Duration::ZERO) => Duration::from_secs(24 * 3600),
                Some(limit) => limit,
            },
        }
    }
}

impl Cluster {
    /// Connects: decides on the configuration, makes a client of it, asks the server for its version. A source that
    /// is named and cannot be used is an error (exit code 3), never a reason to use another; a server that does not
    /// answer or does not know us is one too (exit code 4).
    pub async fn connect(options: &ConnectOptions, clock: Clock) -> Result<Self, Why> {
        let (client, mut info) = make_client_aside(options.clone()).await?;
        let patience = options.patience();
        let first = Patience { budget: patience.budget.min(FIRST_ANSWER), attempt: patience.attempt.min(FIRST_ANSWER) };
        let probe = Self::from_client_with(client.clone(), info.clone(), clock.clone(), first);
        info.version = probe.server_version().await?;
        let asked = probe.openshift_version().await;
        info.openshift_version = believed(asked, &mut info.notes)?;
        let again = options.clone();
        let reload: Reload = Box::new(move || {
            let options = again.clone();
            async move {
                let made = make_client_aside(options).await;
                made.map(|(client, _)| client).map_err(|why| why.to_string())
            }
            .boxed()
        });
        Ok(Self::with_transport(client, Some(reload), info, clock, patience))
    }

    async fn server_version(&self) -> Result<String, Why> {
        let object = ObjectRef::thing("server", &self.info().server);
        let call = Call::read("version", "/version".to_owned(), object.clone());
        let answer = self.shared.transport.call(&call).await?;
        let version = parse(&answer.body, &object)?;
        Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    /// OpenShift's version, if it is one. The first question that is not for everybody: credentials that are not
    /// accepted show here and not in the middle of the work.
    async fn openshift_version(&self) -> Result<Option<String>, ClusterError> {
        let Some(version) = self.get(&kinds::CLUSTER_VERSION, None, "version").await? else {
            return Ok(None);
        };
        // The newest that was completed: during an upgrade the desired one is not there yet.
        let history = version.list("/status/history").iter();
        let done = history.filter(|entry| entry["state"] == "Completed").find_map(|entry| entry["version"].as_str());
        Ok(done.or_else(|| version.text("/status/desired/version")).map(str::to_owned))
    }
}

/// What the answer means: only absence says that it is no OpenShift. Not being allowed to ask says nothing, and is no
/// reason to stop, since most work does not need to know; anything else is a cluster that does not answer.
fn believed(
    asked: Result<Option<String>, ClusterError>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, ClusterError> {
    match asked {
        Err(error) if error.is_absent() => Ok(None),
        Err(error @ ClusterError::Forbidden { .. }) => {
            notes.push(format!("whether it is an OpenShift, and which, is not known: ClusterVersion/version: {error}"));
            Ok(None)
        }
        asked => asked,
    }
}

/// Makes a client off the program's own thread: a plugin may take its time, and must hold up neither the waits nor a
/// signal. Never reached in a rehearsal.
async fn make_client_aside(options: ConnectOptions) -> Result<(kube::Client, ClusterInfo), Why> {
    let made = tokio::task::spawn_blocking(move || make_client(&options)).await;
    made.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(Why::new(
            ObjectRef::thing("kubeconfig", "any"),
            &ConnectCause::Unreadable { problem: error.to_string() },
        )),
    })
}

/// A client as the configuration says, and what it says.
fn make_client(options: &ConnectOptions) -> Result<(kube::Client, ClusterInfo), Why> {
    let chosen = kubeconfig::choose(options)?;
    let bad = |field, problem: String| Why::new(chosen.object.clone(), &ConnectCause::BadValue { field, problem });
    let server = chosen.cluster.server.clone().unwrap_or_default();
    let url: http::Uri = server.parse().map_err(|error| bad("server", format!("`{server}`: {error}")))?;
    if url.host().is_none() || url.scheme().is_none() {
        return Err(bad("server", format!("`{server}` is no URL")));
    }
    let mut config = kube::Config::new(url.clone());
    config.default_retry = false;
    config.connect_timeout = Some(FIRST_ANSWER);
    config.default_namespace.clone_from(&chosen.namespace);
    config.accept_invalid_certs = chosen.cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.tls_server_name.clone_from(&chosen.cluster.tls_server_name);
    config.root_cert = authorities(&chosen).map_err(|problem| bad("certificate-authority", problem))?;
    let proxy = proxy::choose(chosen.cluster.proxy_url.as_deref(), &url, &options.environment);
    if let Some(proxy) = &proxy {
        let shown = proxy::shown(proxy);
        let at = ObjectRef::thing("proxy", &shown);
        let parsed: http::Uri = proxy.parse().map_err(|error| bad("proxy-url", format!("`{shown}`: {error}")))?;
        let scheme = parsed.scheme_str().unwrap_or_default().to_owned();
        if !matches!(&*scheme, "http" | "https" | "socks5") {
            return Err(Why::new(at, &ConnectCause::Proxy { scheme }));
        }
        config.proxy_url = Some(parsed);
    }
    config.auth_info = chosen.user.clone();
    if let Some(user) = &options.impersonate {
        config.auth_info.impersonate = Some(user.clone());
    }
    if !options.impersonate_groups.is_empty() {
        config.auth_info.impersonate_groups = Some(options.impersonate_groups.clone());
    }
    if let Some(exec) = &mut config.auth_info.exec {
        let asks = exec.interactive_mode == Some(ExecInteractiveMode::Always);
        if !options.interactive && !asks {
            // Then its complaints come to us, and into the error.
            exec.interactive_mode = Some(ExecInteractiveMode::Never);
        }
    }
    let client = ClientBuilder::try_from(config).map_err(|error| refused(&error, &chosen))?;
    let info = ClusterInfo {
        server,
        source: chosen.source,
        context: chosen.context,
        user: options.impersonate.clone().or(chosen.user_name),
        namespace: chosen.namespace,
        proxy: proxy.as_deref().map(proxy::shown),
        notes: chosen.notes,
        ..ClusterInfo::default()
    };
    Ok((client.build(), info))
}

fn authorities(chosen: &Chosen) -> Result<Option<Vec<Vec<u8>>>, String> {
    let cluster = &chosen.cluster;
    let text = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) if !data.is_empty() => pem::decode(data)?,
        (_, Some(file)) if !file.is_empty() => std::fs::read(file).map_err(|error| format!("{file}: {error}"))?,
        _ => return Ok(None),
    };
    pem::certificates(&text).map(Some)
}

/// The library could not make a client.
fn refused(error: &kube::Error, chosen: &Chosen) -> Why {
    let exec = chosen.user.exec.as_ref();
    let cause = match error {
        kube::Error::Auth(error) => ConnectCause::Credentials {
            problem: credentials_trouble(error, exec.and_then(|exec| exec.command.as_deref())),
            hint: match error {
                kube::client::AuthError::AuthExecStart(_) => exec.and_then(|exec| exec.install_hint.clone()),
                _ => None,
            },
        },
        other => ConnectCause::BadValue { field: "client certificate or key", problem: crate::transport::root(other) },
    };
    let object = match &chosen.user_name {
        Some(user) => ObjectRef::thing("user", user),
        None => chosen.object.clone(),
    };
    Why::new(object, &cause).with("configuration", &chosen.source)
}
