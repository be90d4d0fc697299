//! Shared watches: one list and watch per equal query, whatever the number of waits.
//!
//! A wait never asks the server; it looks at what the watch has seen and is woken when that changes. Nothing that the
//! API does to us ends or falsifies a wait: while the objects cannot be had, every verdict is pending and says why.

mod feed;
mod follow;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::task::JoinHandle;
use toolbox_engine::plan::Changes;
use toolbox_engine::{Verdict, Why};

use self::feed::{Feed, View};
use crate::object::Object;
use crate::query::Query;
use crate::transport::Transport;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All watches of a cluster.
pub(crate) struct Hub {
    transport: Arc<Transport>,
    running: Mutex<BTreeMap<Query, Weak<Running>>>,
}

impl Hub {
    pub(crate) fn new(transport: Arc<Transport>) -> Arc<Self> {
        Arc::new(Self { transport, running: Mutex::default() })
    }

    /// The watch for a query: the one that is running, or a new one that starts when it is first looked at.
    pub(crate) fn watch(self: &Arc<Self>, query: Query) -> Watched {
        let mut running = lock(&self.running);
        running.retain(|_, watch| watch.strong_count() > 0);
        if let Some(watch) = running.get(&query).and_then(Weak::upgrade) {
            return Watched { running: watch };
        }
        let feed = Feed::new(query.clone(), self.transport.clone(), Arc::downgrade(self));
        let watch = Arc::new(Running { feed: Arc::new(feed), task: Mutex::default() });
        running.insert(query, Arc::downgrade(&watch));
        Watched { running: watch }
    }
}

impl Hub {
    /// We changed an object: the watches that show it have to catch up before they are believed again.
    pub(crate) fn wrote(&self, object: &Object) {
        for watch in lock(&self.running).values().filter_map(Weak::upgrade) {
            watch.feed.expect(object);
        }
    }
}

/// Ends the watch when nobody looks at it any more.
struct Running {
    feed: Arc<Feed>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Running {
    fn start(&self) {
        lock(&self.task).get_or_insert_with(|| tokio::spawn(follow::follow(self.feed.clone())));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// A share in a watch. The watch starts when it is first looked at and stops with its last share.
#[derive(Clone)]
pub struct Watched {
    running: Arc<Running>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({})", self.running.feed.query)
    }
}

impl Watched {
    /// What is watched.
    pub fn query(&self) -> &Query {
        &self.running.feed.query
    }

    /// What a wait listens to. Must be called inside a tokio runtime.
    pub fn changes(&self) -> Changes {
        self.running.start();
        Changes::of(self.running.feed.version.subscribe())
    }

    /// Judges the objects as they are. Pending, with the reason, while they cannot be had: not listed yet, kind not
    /// served yet, API server away. Failed when they never can: no right, credentials refused.
    pub fn judge<T>(&self, judge: impl FnOnce(&[Object]) -> Verdict<T>) -> Verdict<T> {
        match self.view() {
            View::Objects(objects) => judge(&objects),
            View::NotServed(why) | View::Pending(why) => Verdict::Pending(why),
            View::Failed(why) => Verdict::Failed(why),
        }
    }

    /// The same for waits that want objects to be gone: a kind that is not served any more has none.
    pub fn judge_absence<T>(&self, judge: impl FnOnce(&[Object]) -> Verdict<T>) -> Verdict<T> {
        match self.view() {
            View::Objects(objects) => judge(&objects),
            View::NotServed(_) => judge(&[]),
            View::Pending(why) => Verdict::Pending(why),
            View::Failed(why) => Verdict::Failed(why),
        }
    }

    /// The same for one object, asked for by name.
    pub fn judge_one<T>(&self, judge: impl FnOnce(Option<&Object>) -> Verdict<T>) -> Verdict<T> {
        self.judge(|objects| judge(objects.first()))
    }

    /// The objects last seen, by namespace and name; none before the first list.
    pub fn objects(&self) -> Vec<Object> {
        self.running.start();
        self.running.feed.last_seen().to_vec()
    }

    /// Why the objects cannot be had at present, if so.
    pub fn trouble(&self) -> Option<Why> {
        match self.view() {
            View::Objects(_) => None,
            View::NotServed(why) | View::Pending(why) | View::Failed(why) => Some(why),
        }
    }

    fn view(&self) -> View {
        self.running.start();
        self.running.feed.view()
    }

    /// Grows with every change; for those inside that wait without a step.
    pub(crate) fn subscribe(&self) -> toolbox_engine::watch::Receiver<u64> {
        self.running.start();
        self.running.feed.version.subscribe()
    }
}
