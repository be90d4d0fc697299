//! The loop of every controller: look at everything, act, wait for a change or a deadline.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use toolbox_engine::Clock;

use super::{Cache, HandsOff, Kind, Live, RETRY, Timers};
use crate::scenario::{Dice, Dist, Scenario};

/// What a controller is given.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// As it was when the present round of a controller began.
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) live: Live,
    pub(crate) hands_off: HandsOff,
    pub(crate) dice: Dice,
}

impl Context {
    /// A time of the scenario for one identity.
    pub(crate) fn draw(&self, dist: Dist, concern: &str, identity: &str) -> Duration {
        self.dice.draw(dist, concern, identity)
    }

    /// The present moment, to the second, as Kubernetes writes it.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.clock.now())
    }
}

/// A moment as Kubernetes writes it.
pub(crate) fn stamp(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A controller that looks at the whole state of its kinds whenever anything changes.
pub(crate) trait Controller: Send + 'static {
    /// Kinds it watches from the start.
    const KINDS: &'static [Kind];

    /// Brings the world one step nearer to what it should be. Must write nothing when nothing is to be done.
    fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;
}

/// Runs a controller until it is dropped.
pub(crate) async fn run<C: Controller>(mut controller: C, mut context: Context) {
    let mut cache = Cache::new(&context, C::KINDS);
    let mut timers = Timers::new(context.clock.clone());
    let mut scenario = context.live.watch();
    cache.synced().await;
    loop {
        context.scenario = scenario.borrow_and_update();
        let outcome = controller.reconcile(&context, &mut cache, &mut timers).await;
        let next = match outcome {
            Ok(()) => {
                timers.end_round();
                timers.next()
            }
            Err(error) => {
                tracing::debug!(%error, "controller tries again");
                Some(RETRY)
            }
        };
        let alarm = async {
            match next {
                Some(wait) => context.clock.sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cache.changed() => {}
            _ = scenario.changed() => {}
            () = alarm => {}
        }
    }
}
