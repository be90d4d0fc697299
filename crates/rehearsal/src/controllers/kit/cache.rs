//! What a controller knows of the cluster: watched kinds, and its own writes at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolbox_engine::Clock;

use super::{Context, HandsOff, Kind, Read};

/// Namespace and name.
pub(crate) type Key = (String, String);
type Update = (Kind, Result<Event<DynamicObject>, ()>);

/// Pause before a watch or a write is tried again.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Objects of some kinds, kept current by watches.
pub(crate) struct Cache {
    client: Client,
    clock: Clock,
    hands_off: HandsOff,
    streams: SelectAll<BoxStream<'static, Update>>,
    watched: BTreeMap<Kind, CancellationToken>,
    syncing: BTreeMap<Kind, BTreeSet<Key>>,
    objects: BTreeMap<Kind, BTreeMap<Key, Arc<DynamicObject>>>,
    gone: BTreeSet<String>,
}

impl Cache {
    pub(crate) fn new(context: &Context, kinds: &[Kind]) -> Self {
        let mut cache = Self {
            client: context.client.clone(),
            clock: context.clock.clone(),
            hands_off: context.hands_off.clone(),
            streams: SelectAll::new(),
            watched: BTreeMap::new(),
            syncing: BTreeMap::new(),
            objects: BTreeMap::new(),
            gone: BTreeSet::new(),
        };
        for kind in kinds {
            cache.watch(*kind);
        }
        cache
    }

    /// Starts to watch a kind, which must be served by now. Watching it already is fine.
    pub(crate) fn watch(&mut self, kind: Kind) {
        if self.watched.contains_key(&kind) {
            return;
        }
        let end = CancellationToken::new();
        self.watched.insert(kind, end.clone());
        self.syncing.insert(kind, BTreeSet::new());
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource());
        let clock = self.clock.clone();
        let stream = watcher::watcher(api, watcher::Config::default().timeout(3600).disable_bookmarks())
            .then(move |event| {
                let clock = clock.clone();
                async move {
                    if event.is_err() {
                        clock.sleep(RETRY).await;
                    }
                    (kind, event.map_err(|error| tracing::debug!(kind = kind.plural, %error, "watch")))
                }
            })
            .take_until(end.cancelled_owned())
            .boxed();
        self.streams.push(stream);
    }

    /// Forgets a kind that is no longer served, and ends its watch.
    pub(crate) fn unwatch(&mut self, kind: Kind) {
        if let Some(end) = self.watched.remove(&kind) {
            end.cancel();
            self.objects.remove(&kind);
            self.syncing.remove(&kind);
        }
    }

    /// Waits until the first list of every watched kind has come in.
    pub(crate) async fn synced(&mut self) {
        while !self.syncing.is_empty() {
            let Some(update) = self.streams.next().await else { return };
            self.take(update);
        }
    }

    /// Waits for a change, and takes in whatever else has already arrived.
    pub(crate) async fn changed(&mut self) {
        match self.streams.next().await {
            Some(update) => self.take(update),
            None => std::future::pending().await,
        }
        while let Some(Some(update)) = self.streams.next().now_or_never() {
            self.take(update);
        }
    }

    fn take(&mut self, (kind, event): Update) {
        if !self.watched.contains_key(&kind) {
            return;
        }
        match event {
            Err(()) => {}
            Ok(Event::Init) => {
                self.syncing.insert(kind, BTreeSet::new());
            }
            Ok(Event::InitApply(object)) => {
                if let Some(seen) = self.syncing.get_mut(&kind) {
                    seen.insert(key(&object));
                }
                self.keep(kind, object);
            }
            Ok(Event::InitDone) => {
                if let Some(seen) = self.syncing.remove(&kind) {
                    self.objects.entry(kind).or_default().retain(|key, _| seen.contains(key));
                }
            }
            Ok(Event::Apply(object)) => self.keep(kind, object),
            Ok(Event::Delete(object)) => self.forget(kind, &object),
        }
    }

    fn keep(&mut self, kind: Kind, object: DynamicObject) {
        if self.gone.contains(object.uid()) {
            return;
        }
        self.hands_off.seen(kind, &object);
        let known = self.objects.entry(kind).or_default();
        let newer = known.get(&key(&object)).is_none_or(|old| version(old) <= version(&object));
        if newer {
            known.insert(key(&object), Arc::new(object));
        }
    }

    fn forget(&mut self, kind: Kind, object: &DynamicObject) {
        self.gone.insert(object.uid().to_owned());
        let known = self.objects.entry(kind).or_default();
        if known.get(&key(object)).is_some_and(|old| old.uid() == object.uid()) {
            known.remove(&key(object));
        }
    }

    /// All objects of a kind, in order of namespace and name.
    pub(crate) fn all(&self, kind: Kind) -> Vec<Arc<DynamicObject>> {
        self.objects.get(&kind).map(|known| known.values().cloned().collect()).unwrap_or_default()
    }

    /// All objects of a kind in a namespace.
    pub(crate) fn within(&self, kind: Kind, namespace: &str) -> Vec<Arc<DynamicObject>> {
        let mut all = self.all(kind);
        all.retain(|object| object.namespace() == namespace);
        all
    }

    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.objects.get(&kind)?.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        if kind.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
        } else {
            Api::all_with(self.client.clone(), &kind.resource())
        }
    }

    /// Whether an object is played from a recording, so that nothing must be made of it.
    pub(super) fn is_held(&self, kind: Kind, object: &DynamicObject) -> bool {
        self.hands_off.holds(kind, object)
    }

    /// Creates an object; one that is already there is left as it is.
    pub(crate) async fn create(&mut self, kind: Kind, object: &DynamicObject) -> Result<(), kube::Error> {
        if self.hands_off.holds_owner(object) {
            return Ok(());
        }
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match self.api(kind, object.namespace()).create(&params, object).await {
            Ok(made) => self.keep(kind, made),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(kube::Error::Api(status)) if final_answer(status.code) => {
                tracing::debug!(kind = kind.plural, name = object.name(), message = %status.message, "create refused");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Merges `patch` into an object, unless that would change nothing.
    pub(crate) async fn patch(&mut self, kind: Kind, object: &DynamicObject, patch: Value) -> Result<(), kube::Error> {
        self.merge(kind, object, patch, None).await
    }

    /// Merges `status` into an object's status, unless that would change nothing.
    pub(crate) async fn status(
        &mut self,
        kind: Kind,
        object: &DynamicObject,
        status: Value,
    ) -> Result<(), kube::Error> {
        self.merge(kind, object, serde_json::json!({"status": status}), Some("status")).await
    }

    async fn merge(
        &mut self,
        kind: Kind,
        object: &DynamicObject,
        patch: Value,
        sub: Option<&str>,
    ) -> Result<(), kube::Error> {
        let present = self.get(kind, object.namespace(), object.name());
        let present_or_given = present.as_deref().unwrap_or(object);
        if self.is_held(kind, present_or_given) || !changes(present_or_given, &patch) {
            return Ok(());
        }
        let api = self.api(kind, object.namespace());
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let answer = match sub {
            Some(_) => api.patch_status(object.name(), &params, &Patch::Merge(patch)).await,
            None => api.patch(object.name(), &params, &Patch::Merge(patch)).await,
        };
        match answer {
            Ok(made) => self.keep(kind, made),
            Err(kube::Error::Api(status)) if final_answer(status.code) => {
                tracing::debug!(kind = kind.plural, name = object.name(), message = %status.message, "patch refused");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Deletes an object; `now` skips a pod's grace period.
    pub(crate) async fn delete(&mut self, kind: Kind, object: &DynamicObject, now: bool) -> Result<(), kube::Error> {
        if self.is_held(kind, object) {
            return Ok(());
        }
        let mut params = if now { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
        params.preconditions =
            Some(kube::api::Preconditions { uid: Some(object.uid().to_owned()), resource_version: None });
        match self.api(kind, object.namespace()).delete(object.name(), &params).await {
            Ok(either) => {
                if let Some(left) =
                    either.left().filter(|left| left.metadata.resource_version.is_some() && left.is_deleted())
                {
                    self.keep(kind, left);
                }
            }
            Err(kube::Error::Api(status)) if final_answer(status.code) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes a namespace's own finalizer away, which lets it go.
    pub(crate) async fn finalize_namespace(&mut self, namespace: &DynamicObject) -> Result<(), kube::Error> {
        let mut body = namespace.clone();
        body.data["spec"] = serde_json::json!({});
        let api = self.api(super::NAMESPACE, "");
        match api.replace_subresource("finalize", namespace.name(), &PostParams::default(), &body).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if final_answer(status.code) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Binds a pod to a node.
    pub(crate) async fn bind(&mut self, pod: &DynamicObject, node: &str) -> Result<(), kube::Error> {
        if self.is_held(super::POD, pod) {
            return Ok(());
        }
        let body = serde_json::json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name(), "namespace": pod.namespace()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let api = self.api(super::POD, pod.namespace());
        match api.create_subresource::<_, Value>("binding", pod.name(), &PostParams::default(), &body).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if final_answer(status.code) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether a merge patch would change an object. Only the parts that it names are looked at, since this is asked often.
fn changes(object: &DynamicObject, patch: &Value) -> bool {
    patch.as_object().into_iter().flatten().any(|(key, part)| {
        if key == "metadata" {
            let metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
            return differs(Some(&metadata), part);
        }
        differs(object.data.get(key), part)
    })
}

fn differs(present: Option<&Value>, patch: &Value) -> bool {
    match (present, patch) {
        (None | Some(Value::Null), Value::Null) => false,
        (Some(Value::Object(present)), Value::Object(patch)) => {
            patch.iter().any(|(key, part)| differs(present.get(key), part))
        }
        (Some(present), patch) => present != patch,
        (None, _) => true,
    }
}

/// Field manager of the simulated controllers.
const MANAGER: &str = "rehearsal";

/// Whether repeating the same request can only give the same answer.
fn final_answer(code: u16) -> bool {
    matches!(code, 400 | 403 | 404 | 405 | 409 | 422)
}

fn key(object: &DynamicObject) -> Key {
    (object.namespace().to_owned(), object.name().to_owned())
}

fn version(object: &DynamicObject) -> u64 {
    object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}
