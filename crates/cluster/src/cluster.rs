//! The cluster as the tools see it: reading.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use toolbox_engine::plan::Kind;
use toolbox_engine::{Clock, ObjectRef};

use crate::error::ClusterError;
use crate::hub::{Hub, Watched};
use crate::kinds;
use crate::list::list_patiently;
use crate::object::Object;
use crate::query::{Query, path, with_parameters};
use crate::transport::{Call, Patience, Reload, Traffic, Transport};

/// Which cluster this is, and how we came to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// URL of the API server.
    pub server: String,
    /// What the server says of itself: `v1.24.17`.
    pub version: String,
    /// OpenShift's version, when it is an OpenShift.
    pub openshift_version: Option<String>,
    /// Where the configuration came from, in words.
    pub source: String,
    /// The context of the kubeconfig.
    pub context: Option<String>,
    /// The user of the kubeconfig, or the one that is acted as.
    pub user: Option<String>,
    /// The namespace of the context.
    pub namespace: String,
    /// The proxy that is gone through.
    pub proxy: Option<String>,
    /// What was odd on the way, one line each.
    pub notes: Vec<String>,
}

/// How much of a log is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// No more than this, from the beginning of what is left.
    pub limit_bytes: Option<u64>,
    /// The container's previous life.
    pub previous: bool,
}

/// A cluster. Cheap to clone; clones share connections, watches and counters.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run_id: Arc<str>,
    pub(crate) force_conflicts: bool,
}

pub(crate) struct Shared {
    pub(crate) transport: Arc<Transport>,
    pub(crate) hub: Arc<Hub>,
    info: ClusterInfo,
    /// Kinds that are not among ours, learned from the server: (API version, kind).
    learned: Mutex<BTreeMap<(String, String), Kind>>,
    /// Counts creates, so that each can be told from the others.
    pub(crate) creates: AtomicU64,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("server", &self.shared.info.server).finish_non_exhaustive()
    }
}

impl Cluster {
    /// A cluster behind a client: for the rehearsal and for tests. The client must not retry by itself. Must be
    /// called inside a tokio runtime.
    pub fn from_client(client: kube::Client, info: ClusterInfo, clock: Clock) -> Self {
        Self::with_transport(client, None, info, clock, Patience::default())
    }

    /// The same with another patience.
    pub fn from_client_with(client: kube::Client, info: ClusterInfo, clock: Clock, patience: Patience) -> Self {
        Self::with_transport(client, None, info, clock, patience)
    }

    /// The same with a way to have a client with newer credentials, which is taken when the server refuses those at
    /// hand or shows a certificate that they do not trust.
    pub fn from_clients(
        make: impl Fn() -> kube::Client + Send + Sync + 'static,
        info: ClusterInfo,
        clock: Clock,
        patience: Patience,
    ) -> Self {
        let client = make();
        let reload: Reload = Box::new(move || {
            let client = make();
            Box::pin(async move { Ok(client) })
        });
        Self::with_transport(client, Some(reload), info, clock, patience)
    }

    pub(crate) fn with_transport(
        client: kube::Client,
        reload: Option<Reload>,
        info: ClusterInfo,
        clock: Clock,
        patience: Patience,
    ) -> Self {
        let server = match &info.proxy {
            Some(proxy) => format!("{} (through {proxy})", info.server),
            None => info.server.clone(),
        };
        let transport = Transport::new(client, reload, clock, patience, server, info.user.clone());
        let shared = Shared {
            hub: Hub::new(transport.clone()),
            transport,
            info,
            learned: Mutex::default(),
            creates: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), run_id: Arc::from(""), force_conflicts: false }
    }

    /// The same cluster; what is created through it carries this run's id.
    #[must_use]
    pub fn with_run_id(&self, run_id: &str) -> Self {
        Self { run_id: Arc::from(run_id), ..self.clone() }
    }

    /// The same cluster; fields that other managers own are taken over.
    #[must_use]
    pub fn with_force_conflicts(&self, force: bool) -> Self {
        Self { force_conflicts: force, ..self.clone() }
    }

    /// Which cluster this is.
    pub fn info(&self) -> &ClusterInfo {
        &self.shared.info
    }

    /// The clock that this cluster lives by.
    pub fn clock(&self) -> &Clock {
        &self.shared.transport.clock
    }

    /// The present moment by the cluster's clock, as its answers tell it: what stamps of the cluster, and of other
    /// machines that use it, are compared with. Durations of our own are measured with [`Self::clock`].
    pub fn now(&self) -> jiff::Timestamp {
        self.shared.transport.now()
    }

    /// Requests made and events received so far.
    pub fn traffic(&self) -> Traffic {
        self.shared.transport.traffic()
    }

    /// An object, or `None` when there is none of that name. A kind that is not served is an error.
    pub async fn get(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<Option<Object>, ClusterError> {
        let object = kind.object(namespace, name);
        let call = Call::read("get", path(kind, namespace, name), object.clone());
        match self.shared.transport.call(&call).await {
            Ok(answer) => Ok(Some(Object::of_kind(parse(&answer.body, &object)?, kind))),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects that a query asks for, every page. A kind that is not served is an error.
    pub async fn list(&self, query: &Query) -> Result<Vec<Object>, ClusterError> {
        let items = list_patiently(&self.shared.transport, query).await?;
        let objects = items.into_iter().map(|item| Object::of_kind(item, &query.kind));
        Ok(objects.collect())
    }

    /// A share in the watch for a query; it starts when it is first looked at.
    pub fn watch(&self, query: Query) -> Watched {
        self.shared.hub.watch(query)
    }

    /// Whether the cluster serves a kind, in this group and version.
    pub async fn serves(&self, kind: &Kind) -> Result<bool, ClusterError> {
        let served = self.resources(&kind.api_version()).await?;
        Ok(served.iter().any(|found| found.plural == kind.plural))
    }

    /// The kinds of a group and version; empty when it is not served.
    pub async fn resources(&self, api_version: &str) -> Result<Vec<Kind>, ClusterError> {
        let path =
            if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") };
        let object = ObjectRef::thing("API group", api_version);
        let call = Call::read("discover", path, object.clone());
        let answer = match self.shared.transport.call(&call).await {
            Ok(answer) => answer,
            Err(error) if error.is_absent() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let list = parse(&answer.body, &object)?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resources = list["resources"].as_array().map_or(&[][..], Vec::as_slice);
        let kinds = resources.iter().filter_map(|resource| {
            let plural = resource["name"].as_str()?;
            (!plural.contains('/')).then(|| Kind {
                group: group.to_owned().into(),
                version: version.to_owned().into(),
                kind: resource["kind"].as_str().unwrap_or_default().to_owned().into(),
                plural: plural.to_owned().into(),
                namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
            })
        });
        Ok(kinds.collect())
    }

    /// The kind that a manifest or a reference names: one of ours, or asked from the server.
    pub async fn kind(&self, api_version: &str, kind: &str) -> Result<Kind, ClusterError> {
        if let Some(known) = kinds::find(api_version, kind) {
            return Ok(known);
        }
        let key = (api_version.to_owned(), kind.to_owned());
        let learned = || self.shared.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = learned().get(&key) {
            return Ok(known.clone());
        }
        let served = self.resources(api_version).await?;
        let found = served.into_iter().find(|found| found.kind == kind);
        let found = found
            .ok_or_else(|| ClusterError::NotServed { object: ObjectRef::new(api_version, kind, None, "<any>") })?;
        learned().insert(key, found.clone());
        Ok(found)
    }

    /// The log of a container; bytes that are no text are replaced. `container` may be left out when there is one.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        options: &LogOptions,
    ) -> Result<String, ClusterError> {
        let mut parameters = Vec::new();
        if let Some(container) = container {
            parameters.push(("container", container.to_owned()));
        }
        if let Some(lines) = options.tail_lines {
            parameters.push(("tailLines", lines.to_string()));
        }
        if let Some(bytes) = options.limit_bytes {
            parameters.push(("limitBytes", bytes.to_string()));
        }
        if options.previous {
            parameters.push(("previous", "true".to_owned()));
        }
        let path = format!("{}/log", path(&kinds::POD, Some(namespace), pod));
        let object = kinds::POD.object(Some(namespace), pod);
        let call = Call::read("log", with_parameters(&path, &parameters), object);
        let answer = self.shared.transport.call(&call).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }
}

/// Reads an answer that should be JSON.
pub(crate) fn parse(body: &[u8], object: &ObjectRef) -> Result<Value, ClusterError> {
    serde_json::from_slice(body).map_err(|error| ClusterError::Other {
        object: object.clone(),
        code: 200,
        reason: String::new(),
        message: format!("what came back is no object: {error}"),
    })
}
