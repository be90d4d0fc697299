//! The server's state and its front door.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolbox_engine::Clock;
use tower::BoxError;

use super::{
    access::{Access, Deny, User},
    body::ApiBody,
    builtin,
    housekeeping::{self, Job},
    kinds::{Generation, KindDef, Kinds},
    logs::PodLogs,
    rbac,
    version::KubeVersion,
    virtual_::VirtualObjects,
};
use crate::{
    apifault::{ApiFaults, Session},
    store::{Resource, Store},
};

/// What a server is made from.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The only source of time.
    pub clock: Clock,
    /// The seed of uids, generated names and token suffixes.
    pub seed: u64,
    /// The version to be.
    pub version: KubeVersion,
    /// Whether OpenShift's and the Operator Lifecycle Manager's kinds are served from the start.
    pub openshift: bool,
}

/// Requests served so far, by verb (`get`, `list`, `watch`, `create`, …), and events sent to watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests by verb.
    pub by_verb: BTreeMap<String, u64>,
    /// The same for each user.
    pub by_user: BTreeMap<String, BTreeMap<String, u64>>,
    /// Events that watches were sent, bookmarks included.
    pub watch_events: u64,
}

impl RequestCounts {
    /// Requests of one verb.
    pub fn of(&self, verb: &str) -> u64 {
        self.by_verb.get(verb).copied().unwrap_or(0)
    }

    /// Requests by verb of one user.
    pub fn of_user(&self, user: &str) -> BTreeMap<String, u64> {
        self.by_user.get(user).cloned().unwrap_or_default()
    }

    /// Counts one request.
    pub(super) fn add(&mut self, user: &str, verb: &str) {
        *self.by_verb.entry(verb.to_owned()).or_default() += 1;
        *self.by_user.entry(user.to_owned()).or_default().entry(verb.to_owned()).or_default() += 1;
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.by_verb.values().sum()
    }
}

/// What changes while the server runs. Never locked across an await.
pub(super) struct State {
    pub(super) store: Store,
    pub(super) kinds: Kinds,
    pub(super) access: Access,
    pub(super) providers: BTreeMap<Resource, Arc<dyn VirtualObjects>>,
    pub(super) counts: RequestCounts,
    pub(super) jobs: Vec<(jiff::Timestamp, Job)>,
    rng: StdRng,
    next_address: u32,
}

impl State {
    /// A new uid.
    pub(super) fn uid(&mut self) -> String {
        let bits: u128 = self.rng.random();
        let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// A suffix for a generated name: five characters that spell nothing.
    pub(super) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.rng.random_range(0..LETTERS.len())])).collect()
    }

    /// A number in a range.
    pub(super) fn random(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.rng.random_range(range)
    }

    /// A free address for a service.
    pub(super) fn service_address(&mut self) -> String {
        self.next_address += 1;
        format!("172.30.{}.{}", (self.next_address >> 8) & 0xff, self.next_address & 0xff)
    }
}

/// Everything behind the server's handles.
pub(super) struct Inner {
    pub(super) clock: Clock,
    pub(super) version: KubeVersion,
    pub(super) faults: ApiFaults,
    pub(super) logs: PodLogs,
    pub(super) wake: Arc<Notify>,
    state: Mutex<State>,
    housekeeper: Mutex<Option<tokio::task::AbortHandle>>,
}

impl Inner {
    /// The state, for a moment.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present moment as objects carry it: whole seconds.
    pub(super) fn stamp(&self) -> String {
        stamp(self.clock.now())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let handle = self.housekeeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            handle.abort();
        }
    }
}

/// A uid that depends on nothing but the object's name: what a server brings along does not use up chance.
fn fixed_uid(plural: &str, name: &str) -> String {
    let seed = plural
        .bytes()
        .chain(name.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hex = format!("{seed:016x}");
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[..3], &hex[4..16])
}

/// A moment in the format of `metav1.Time`.
pub(super) fn stamp(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The API server. Clones are handles to the same server.
///
/// It must be made inside a tokio runtime: garbage collection and custom resource definitions are seen to by a task
/// that ends with the last handle.
#[derive(Clone)]
pub struct ApiServer {
    pub(super) inner: Arc<Inner>,
    user: Arc<User>,
    /// What the client was given when it was made; `None` for those whose credentials are not this layer's matter.
    session: Option<Session>,
}

impl ApiServer {
    /// A server with the built-in kinds, the usual namespaces and nothing else.
    pub fn new(options: ApiOptions) -> Self {
        let mut kinds = Kinds::default();
        for mut kind in builtin::kubernetes() {
            // Pods have a generation from 1.34 on.
            if options.version.minor >= 34 && kind.group.is_empty() && kind.plural == "pods" {
                kind.generation = Generation::Spec;
            }
            kinds.insert(kind);
        }
        if options.openshift {
            for kind in builtin::openshift().into_iter().chain(builtin::olm()) {
                kinds.insert(kind);
            }
        }
        let state = State {
            store: Store::default(),
            kinds,
            access: Access::default(),
            providers: BTreeMap::new(),
            counts: RequestCounts::default(),
            jobs: Vec::new(),
            rng: StdRng::seed_from_u64(options.seed),
            next_address: 0,
        };
        let inner = Arc::new(Inner {
            faults: ApiFaults::new(options.clock.clone(), options.seed),
            logs: PodLogs::new(options.clock.clone()),
            clock: options.clock,
            version: options.version,
            wake: Arc::new(Notify::new()),
            state: Mutex::new(state),
            housekeeper: Mutex::new(None),
        });
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let task = runtime.spawn(housekeeping::run(Arc::downgrade(&inner)));
            *inner.housekeeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        }
        let server = Self { inner, user: Arc::new(User::admin()), session: None };
        server.seed_objects();
        server
    }

    fn seed_objects(&self) {
        let stamp = self.inner.stamp();
        let mut state = self.inner.state();
        let resource = Resource::new("", "namespaces");
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let uid = state.uid();
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": name, "uid": uid, "creationTimestamp": stamp,
                    "labels": {"kubernetes.io/metadata.name": name},
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            state.store.put(&resource, namespace);
        }
        for (plural, mut object) in rbac::defaults(self.inner.version) {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            object["metadata"]["uid"] = fixed_uid(plural, name).into();
            object["metadata"]["creationTimestamp"] = stamp.clone().into();
            state.store.put(&Resource::new("rbac.authorization.k8s.io", plural), object);
        }
        rbac::aggregate(&mut state);
    }

    /// Stops serving a kind, as a cluster does that never had it.
    pub fn unregister(&self, group: &str, plural: &str) {
        self.inner.state().kinds.remove(&Resource::new(group, plural));
    }

    /// Serves one more kind.
    pub fn register(&self, kind: KindDef) {
        self.inner.state().kinds.insert(kind);
    }

    /// Gives the objects of a read-only kind to a provider.
    pub fn set_virtual(&self, kind: KindDef, provider: impl VirtualObjects) {
        let mut state = self.inner.state();
        state.providers.insert(kind.resource(), Arc::new(provider));
        state.kinds.insert(kind.provided());
    }

    /// A client in this process, as the cluster's administrator, with a token and a certificate as they are handed out
    /// now: those that expire later are no use to it any more.
    pub fn client(&self) -> kube::Client {
        self.clone().admitted()
    }

    /// A client in this process, as another user who may do everything that is not denied, with a token and a
    /// certificate of its own.
    pub fn client_as(&self, user: &str) -> kube::Client {
        self.as_user(User::trusted(user)).admitted()
    }

    /// A client that is part of the cluster: its credentials are always good.
    pub(crate) fn client_inside(&self, user: &str) -> kube::Client {
        kube::Client::new(self.as_user(User::trusted(user)), "default")
    }

    fn admitted(mut self) -> kube::Client {
        self.session = Some(self.inner.faults.session());
        kube::Client::new(self, "default")
    }

    /// The same server, seen as another user.
    #[must_use]
    pub fn as_user(&self, user: User) -> Self {
        Self { inner: Arc::clone(&self.inner), user: Arc::new(user), session: None }
    }

    /// Denies something to a user, whatever the user's roles say.
    pub fn deny(&self, user: &str, rule: Deny) {
        self.inner.state().access.deny(user, rule);
    }

    /// The faults of the API itself.
    pub fn faults(&self) -> &ApiFaults {
        &self.inner.faults
    }

    /// What the containers of pods have printed.
    pub fn logs(&self) -> &PodLogs {
        &self.inner.logs
    }

    /// Requests served so far.
    pub fn requests(&self) -> RequestCounts {
        self.inner.state().counts.clone()
    }

    /// The clock that this server reads.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// The version that it is.
    pub fn version(&self) -> KubeVersion {
        self.inner.version
    }

    /// Whom a token stands for that was asked for as a service account's.
    pub(crate) fn bearer(&self, token: &str) -> Option<User> {
        self.inner.state().access.bearer(token, self.inner.clock.now())
    }

    /// A new secret word for a client to show.
    pub(crate) fn new_token(&self) -> String {
        format!("rehearsal-{}", self.inner.state().uid())
    }

    /// Makes resuming from any revision before the present one fail with 410.
    pub fn compact(&self) {
        self.inner.state().store.compact();
    }

    /// All stored objects in order of group, plural, namespace and name: for tests that compare whole states.
    pub fn dump(&self) -> Vec<Value> {
        let state = self.inner.state();
        let resources = state.store.resources();
        resources
            .iter()
            .flat_map(|resource| state.store.list(resource, None))
            .map(|(_, object)| Value::clone(&object))
            .collect()
    }

    /// Whom a bearer token stands for is decided by whoever serves; this answers one request as that user.
    pub async fn answer(&self, user: Arc<User>, request: Request<Body>) -> Result<Response<ApiBody>, BoxError> {
        super::dispatch::answer(Arc::clone(&self.inner), user, None, request).await
    }
}

impl tower::Service<Request<Body>> for ApiServer {
    type Response = Response<ApiBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (inner, user) = (Arc::clone(&self.inner), Arc::clone(&self.user));
        Box::pin(super::dispatch::answer(inner, user, self.session, request))
    }
}
