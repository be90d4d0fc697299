//! The scenario as it is at the moment: faults that strike later change it while everything runs.

use std::sync::Arc;

use toolbox_engine::watch::{Receiver, Sender};

use crate::scenario::Scenario;

/// The present scenario. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Live(Arc<Sender<Arc<Scenario>>>);

impl Live {
    pub(crate) fn new(scenario: Arc<Scenario>) -> Self {
        Self(Arc::new(Sender::new(scenario)))
    }

    /// Changes it, and wakes every controller.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Scenario)) {
        self.0.send_modify(|present| change(Arc::make_mut(present)));
    }

    pub(super) fn watch(&self) -> Receiver<Arc<Scenario>> {
        self.0.subscribe()
    }
}
