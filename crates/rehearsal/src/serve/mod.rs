//! The server over HTTPS on loopback, for kubectl and any other client.
//!
//! Time must pass by itself here (a real or a scaled clock): a paused runtime would skip ahead while a client thinks.

mod identity;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::client::Body;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use self::identity::{Identity, Pass};
use crate::api::{ApiBody, ApiError, ApiServer, User, error_response};

/// Why a server could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No port to listen on.
    #[error("cannot listen on loopback")]
    Listen(#[source] std::io::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate")]
    Certificate(#[source] rcgen::Error),
    /// The certificate could not be used.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

/// Where and to whom to serve.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The port on loopback; 0 for a free one.
    pub port: u16,
    /// Users besides the administrator; each gets a token and a certificate of its own.
    pub users: Vec<String>,
}

/// A server that is being served. It ends when this is dropped.
pub struct Served {
    address: SocketAddr,
    authority: String,
    users: Vec<Known>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bearer token of a user.
    pub fn token(&self, user: &str) -> Option<&str> {
        self.users.iter().find(|known| known.user.name == user).map(|known| known.token.as_str())
    }

    /// A kubeconfig for the administrator, and one context more for each other user. Each context has a twin, named
    /// with `-certificate`, that shows a certificate instead of a token.
    pub fn kubeconfig(&self) -> String {
        let authority = STANDARD.encode(&self.authority);
        let (mut contexts, mut users) = (Vec::new(), Vec::new());
        for known in &self.users {
            let user = &known.user.name;
            let name = if *user == User::admin().name { "rehearsal" } else { user };
            let (certificate, key) = (STANDARD.encode(&known.pass.certificate), STANDARD.encode(&known.pass.key));
            let ways = [
                ("", format!("token: {:?}", known.token)),
                ("-certificate", format!("client-certificate-data: {certificate}, client-key-data: {key}")),
            ];
            for (suffix, way) in ways {
                contexts.push(format!(
                    "- name: \"{name}{suffix}\"\n  context: {{cluster: rehearsal, user: \"{user}{suffix}\", namespace: default}}\n"
                ));
                users.push(format!("- name: \"{user}{suffix}\"\n  user: {{{way}}}\n"));
            }
        }
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: rehearsal\nclusters:\n- name: rehearsal\n  cluster:\n    \
             server: https://{}\n    certificate-authority-data: {authority}\ncontexts:\n{}users:\n{}",
            self.address,
            contexts.concat(),
            users.concat(),
        )
    }

    /// Stops listening, ends the open requests and waits until all is quiet.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        // The task ends by itself once told to; a panic inside it was already reported by the runtime.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}

/// Serves on loopback until the result is dropped.
pub async fn serve(api: ApiServer, options: ServeOptions) -> Result<Served, ServeError> {
    let identity = Identity::new()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await.map_err(ServeError::Listen)?;
    let address = listener.local_addr().map_err(ServeError::Listen)?;
    let mut users = Vec::new();
    for user in std::iter::once(User::admin()).chain(options.users.iter().map(|name| User::named(name))) {
        users.push(Known { token: api.new_token(), pass: identity.pass(&user)?, user });
    }
    let stop = CancellationToken::new();
    let front = Arc::new(Front::new(api, &users));
    let task = tokio::spawn(accept(listener, TlsAcceptor::from(identity.tls), front, stop.clone()));
    Ok(Served { address, authority: identity.authority, users, stop, task })
}

/// A user and what it shows.
struct Known {
    user: User,
    token: String,
    pass: Pass,
}

struct Front {
    api: ApiServer,
    tokens: BTreeMap<String, Arc<User>>,
    /// Only this server makes certificates of its authority, so it knows each by sight.
    certificates: BTreeMap<Vec<u8>, Arc<User>>,
}

impl Front {
    fn new(api: ApiServer, users: &[Known]) -> Self {
        let all = || users.iter().map(|known| (known, Arc::new(known.user.clone())));
        Self {
            api,
            tokens: all().map(|(known, user)| (known.token.clone(), user)).collect(),
            certificates: all().map(|(known, user)| (known.pass.der.clone(), user)).collect(),
        }
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, front: Arc<Front>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = stream else { continue };
        let (tls, front) = (tls.clone(), Arc::clone(&front));
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let shown =
                stream.get_ref().1.peer_certificates().and_then(|list| front.certificates.get(list.first()?.as_ref()));
            let user = shown.cloned();
            let service = service_fn(move |request| answer(Arc::clone(&front), user.clone(), request));
            let connection = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = connection.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(error, "connection ended");
            }
        });
    }
    connections.shutdown().await;
}

/// Paths that anybody may read.
fn is_open(path: &str) -> bool {
    ["/version", "/healthz", "/livez", "/readyz"].iter().any(|open| path.starts_with(open))
}

/// A certificate counts before a token, as with real servers.
async fn answer(
    front: Arc<Front>,
    shown: Option<Arc<User>>,
    request: Request<Incoming>,
) -> Result<Response<ApiBody>, BoxError> {
    let said = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = said.and_then(|said| said.strip_prefix("Bearer "));
    let known = |token: &str| front.tokens.get(token).cloned().or_else(|| front.api.bearer(token).map(Arc::new));
    let user = match shown.or_else(|| token.and_then(known)) {
        Some(user) => user,
        None if is_open(request.uri().path()) => Arc::new(User::named("system:anonymous")),
        None => return Ok(error_response(&ApiError::unauthorized())),
    };
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    front.api.answer(user, Request::from_parts(parts, Body::from(bytes))).await
}
