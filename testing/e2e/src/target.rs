//! One way to ask either the rehearsal or a real API server.

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::AsyncBufRead;
use futures::io::AsyncBufReadExt;
use http::{HeaderMap, Method, Request};
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use testing_stack::{Extent, Options, Stack, Version};
use toolbox_rehearsal::{Scenario, World};

/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster that questions are put to.
pub struct Target {
    client: Client,
    /// Kubernetes' minor version.
    pub minor: u32,
    cluster: Cluster,
}

enum Cluster {
    Rehearsal(Box<World>),
    Real(Stack),
}

impl Target {
    /// The rehearsal as this version of Kubernetes, with all controllers, in virtual time. Needs a paused runtime.
    pub async fn rehearsal(version: Version) -> Result<Self> {
        let mut scenario = Scenario::embedded("default")?;
        version.git_version().trim_start_matches('v').clone_into(&mut scenario.kubernetes);
        let start = "2026-01-01T00:00:00Z".parse().context("the stamp is one")?;
        let world = World::start(scenario, 1, toolbox_engine::Clock::starting_at(start)).await?;
        Ok(Self { client: world.client(), minor: minor(version), cluster: Cluster::Rehearsal(Box::new(world)) })
    }

    /// A control plane of its own, of real programs.
    pub async fn real(name: &str, version: Version) -> Result<Self> {
        let options = Options { version, extent: Extent::ControlPlane, ..Options::test(name) };
        Self::of_stack(Stack::up(options).await?, version).await
    }

    /// A stack that is up.
    pub async fn of_stack(stack: Stack, version: Version) -> Result<Self> {
        let file = Kubeconfig::read_from(stack.kubeconfig())?;
        let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        // What is asked is a server's answer, not what a client makes of it.
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config)?, minor: minor(version), cluster: Cluster::Real(stack) })
    }

    /// Ends it and leaves nothing behind.
    pub async fn finish(self) -> Result<()> {
        match self.cluster {
            Cluster::Rehearsal(_) => Ok(()),
            Cluster::Real(stack) => stack.finish().await,
        }
    }

    /// Whether this is the rehearsal.
    pub fn is_rehearsal(&self) -> bool {
        matches!(self.cluster, Cluster::Rehearsal(_))
    }

    /// The simulated cluster, when it is one.
    pub fn world(&self) -> Option<&World> {
        match &self.cluster {
            Cluster::Rehearsal(world) => Some(world),
            Cluster::Real(_) => None,
        }
    }

    /// The stack, when it is one.
    pub fn stack(&self) -> Option<&Stack> {
        match &self.cluster {
            Cluster::Rehearsal(_) => None,
            Cluster::Real(stack) => Some(stack),
        }
    }

    /// An ordinary client of the administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// One request, whatever the answer's code.
    pub async fn ask(&self, ask: Ask) -> Result<Answer> {
        let what = format!("{} {}", ask.method, ask.path);
        let answer = self.client.send(ask.request()?).await.with_context(|| format!("no answer to {what}"))?;
        let (parts, body) = answer.into_parts();
        let bytes = body.collect_bytes().await.with_context(|| format!("a broken answer to {what}"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.ask(Ask::get(path)).await
    }

    /// POST.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Answer> {
        self.ask(Ask::new(Method::POST, path).json(object)).await
    }

    /// PUT.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Answer> {
        self.ask(Ask::new(Method::PUT, path).json(object)).await
    }

    /// PATCH of one kind: `merge`, `strategic-merge`, `json` or `apply`.
    pub async fn patch(&self, kind: &str, path: &str, patch: &Value) -> Result<Answer> {
        let content = match kind {
            "json" => "application/json-patch+json".to_owned(),
            "apply" => "application/apply-patch+yaml".to_owned(),
            _ => format!("application/{kind}-patch+json"),
        };
        self.ask(Ask::new(Method::PATCH, path).json(patch).header("content-type", &content)).await
    }

    /// DELETE, with options.
    pub async fn delete(&self, path: &str, options: Option<&Value>) -> Result<Answer> {
        let ask = Ask::new(Method::DELETE, path);
        self.ask(options.map_or(ask.clone(), |options| ask.json(options))).await
    }

    /// Opens a watch; `path` has its `watch=true` already.
    pub async fn watch(&self, path: &str) -> Result<Events> {
        let answer = self.client.send(Ask::get(path).request()?).await?;
        ensure!(answer.status().is_success(), "the watch {path} was answered with {}", answer.status());
        let body = futures::TryStreamExt::map_err(
            http_body_util::BodyDataStream::new(answer.into_body()),
            std::io::Error::other,
        );
        Ok(Events { lines: Box::pin(futures::TryStreamExt::into_async_read(body)) })
    }

    /// Reads an object until it is as wanted, a moment apart; says how it was last.
    pub async fn until(&self, path: &str, what: &str, wanted: impl Fn(&Answer) -> bool) -> Result<Answer> {
        self.ask_until(&Ask::get(path), what, wanted).await
    }

    /// Asks until the answer is as wanted, a moment apart: what a server knows through a cache takes a moment to count.
    /// Says what was answered last.
    pub async fn ask_until(&self, ask: &Ask, what: &str, wanted: impl Fn(&Answer) -> bool) -> Result<Answer> {
        let start = tokio::time::Instant::now();
        loop {
            let answer = self.ask(ask.clone()).await?;
            if wanted(&answer) {
                return Ok(answer);
            }
            if start.elapsed() > PATIENCE {
                let (path, after) = (&ask.path, PATIENCE.as_secs());
                bail!("{path} is not {what} after {after} s: {} {}", answer.code, answer.body);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Makes a namespace that can be written to: its default account is there where accounts are made.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create("/api/v1/namespaces", &object).await?.expect(201)?;
        Ok(())
    }
}

fn minor(version: Version) -> u32 {
    match version {
        Version::V1_24 => 24,
        Version::V1_34 => 34,
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    /// A request without a body.
    pub fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// GET.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// With any body.
    #[must_use]
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("content-type", content_type)
    }

    /// With a header; one said again replaces the earlier.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(own, _)| own != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn request(self) -> Result<Request<Body>> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        Ok(request.body(Body::from(self.body))?)
    }
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub code: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; text when it is no JSON.
    pub body: Value,
}

impl Answer {
    /// The body of an answer with this code; anything else is an error that shows the body.
    pub fn expect(&self, code: u16) -> Result<&Value> {
        ensure!(self.code == code, "answered {} where {code} is right: {}", self.code, self.body);
        Ok(&self.body)
    }

    /// A text in the body, by JSON pointer; empty when there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Code, reason and message of a refusal.
    pub fn refusal(&self) -> (u16, &str, &str) {
        (self.code, self.text("/reason"), self.text("/message"))
    }

    /// `metadata.resourceVersion`.
    pub fn version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }
}

/// An open watch.
pub struct Events {
    lines: Pin<Box<dyn AsyncBufRead + Send>>,
}

impl Events {
    /// The next event: `{"type": …, "object": …}`. `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.lines.read_line(&mut line)).await;
        match read.context("no event came")?? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }

    /// The next event's type and its object's name.
    pub async fn step(&mut self) -> Result<(String, String)> {
        let event = self.next().await?.context("the watch has ended")?;
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok((text("/type"), text("/object/metadata/name")))
    }
}
