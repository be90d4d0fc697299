//! A value that is watched: as `tokio::sync::watch`, but who watches is woken in the order of subscription.
//!
//! Tokio's own wakes them in a random order, which is fair and makes two rehearsals of the same seed differ.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Every sender is gone, and the last value has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was watched is gone")]
pub struct Closed;

#[derive(Debug)]
struct State<T> {
    value: T,
    version: u64,
    senders: usize,
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

type Shared<T> = Arc<Mutex<State<T>>>;

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, State<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the value.
#[derive(Debug)]
pub struct Sender<T> {
    shared: Shared<T>,
}

/// Sees changes of the value.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Shared<T>,
    seen: u64,
    id: u64,
}

/// A sender with its first receiver.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Sender<T> {
    /// A sender that nobody watches yet.
    pub fn new(value: T) -> Self {
        let state = State { value, version: 0, senders: 1, next: 0, waiting: BTreeMap::new() };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// A receiver that has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(&self.shared, None)
    }

    /// Changes the value in place and tells everybody.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        let mut state = lock(&self.shared);
        change(&mut state.value);
        state.version += 1;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        wake(waiting);
    }

    /// Replaces the value, tells everybody, and returns the former one.
    pub fn send_replace(&self, value: T) -> T {
        let mut former = None;
        self.send_modify(|present| former = Some(std::mem::replace(present, value)));
        former.expect("invariant: the change was made")
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        lock(&self.shared).senders += 1;
        Self { shared: self.shared.clone() }
    }
}

/// In the order of subscription.
fn wake(waiting: BTreeMap<u64, Waker>) {
    for waker in waiting.into_values() {
        waker.wake();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.senders -= 1;
        if state.senders > 0 {
            return;
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        wake(waiting);
    }
}

impl<T> Receiver<T> {
    fn new(shared: &Shared<T>, seen: Option<u64>) -> Self {
        let mut state = lock(shared);
        let id = state.next;
        state.next += 1;
        Self { shared: shared.clone(), seen: seen.unwrap_or(state.version), id }
    }

    /// Waits until there is a value that this receiver has not seen, and counts it as seen.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        poll_fn(|cx| {
            let mut state = lock(&self.shared);
            if state.version != self.seen {
                self.seen = state.version;
                return Poll::Ready(Ok(()));
            }
            if state.senders == 0 {
                return Poll::Ready(Err(Closed));
            }
            state.waiting.insert(self.id, cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Whether there is a value that this receiver has not seen.
    pub fn has_changed(&self) -> Result<bool, Closed> {
        let state = lock(&self.shared);
        match state.version != self.seen {
            true => Ok(true),
            false if state.senders == 0 => Err(Closed),
            false => Ok(false),
        }
    }
}

impl<T: Clone> Receiver<T> {
    /// The present value.
    pub fn borrow(&self) -> T {
        lock(&self.shared).value.clone()
    }

    /// The present value, which counts as seen.
    pub fn borrow_and_update(&mut self) -> T {
        let state = lock(&self.shared);
        self.seen = state.version;
        state.value.clone()
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self::new(&self.shared, Some(self.seen))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        lock(&self.shared).waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn watchers_are_woken_in_the_order_in_which_they_came() {
        for _ in 0..20 {
            let sender = Sender::new(0);
            let order: Arc<Mutex<Vec<usize>>> = Arc::default();
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    let (mut receiver, order) = (sender.subscribe(), order.clone());
                    tokio::spawn(async move {
                        receiver.changed().await.unwrap();
                        order.lock().unwrap().push(number);
                    })
                })
                .collect();
            tokio::task::yield_now().await;
            sender.send_modify(|value| *value += 1);
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_change_is_seen_once_and_none_is_missed() {
        let (sender, mut receiver) = channel(0);
        assert_eq!(receiver.has_changed(), Ok(false));
        assert_eq!(sender.send_replace(1), 0);
        let mut other = receiver.clone();
        assert_eq!(receiver.has_changed(), Ok(true));
        receiver.changed().await.unwrap();
        assert_eq!((receiver.borrow(), receiver.has_changed()), (1, Ok(false)));
        assert_eq!((other.borrow_and_update(), other.has_changed()), (1, Ok(false)));
        sender.send_modify(|value| *value = 2);
        drop(sender);
        assert_eq!(receiver.changed().await, Ok(()));
        assert_eq!(receiver.changed().await, Err(Closed));
        assert_eq!(receiver.has_changed(), Err(Closed));
    }
}
