//! A watch that never ends, and tells when objects are gone even if it was cut off meanwhile.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::api::Api;
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::supervise::say;

/// An object as it is now, or for the last time.
pub(super) enum Change<K> {
    Seen(K),
    Gone(K),
}

/// Every change, for ever.
pub(super) fn watch<K>(api: Api<K>, what: &'static str) -> mpsc::Receiver<Change<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (send, receive) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut known = Known { now: BTreeMap::new(), listed: BTreeMap::new() };
        let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    for change in known.take(event) {
                        if send.send(change).await.is_err() {
                            return;
                        }
                    }
                }
                Err(error) => {
                    say(&format!("watch of {what}: {error}"));
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
        }
    });
    receive
}

struct Known<K> {
    now: BTreeMap<String, K>,
    listed: BTreeMap<String, K>,
}

impl<K: Resource + Clone> Known<K> {
    fn take(&mut self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Apply(object) => {
                self.now.insert(key(&object), object.clone());
                vec![Change::Seen(object)]
            }
            Event::Delete(object) => {
                self.now.remove(&key(&object));
                vec![Change::Gone(object)]
            }
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(key(&object), object.clone());
                vec![Change::Seen(object)]
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let before = std::mem::replace(&mut self.now, listed);
                before
                    .into_iter()
                    .filter(|(name, _)| !self.now.contains_key(name))
                    .map(|(_, object)| Change::Gone(object))
                    .collect()
            }
        }
    }
}

/// An object that was deleted and made again is another one.
fn key<K: Resource>(object: &K) -> String {
    object.uid().unwrap_or_default()
}
