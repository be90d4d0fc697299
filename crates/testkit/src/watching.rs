//! Watching a simulated cluster beside a run, and waiting for it to come to rest.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolbox_cluster::{Object, Query};
use toolbox_engine::plan::{Out, RunOptions, run};
use toolbox_engine::{ObjectRef, Plan, Step, StepSpec, Verdict, Why};

use crate::{Ran, Rehearsed};

/// Between two looks of [`Rehearsed::until`].
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Rehearsed {
    /// Runs a plan and watches the cluster beside it, over a connection of its own: also says when the objects of `query`
    /// first were as `fits` says, in seconds on the cluster's clock.
    pub async fn run_watched(
        &self,
        plan: Plan,
        query: Query,
        fits: impl FnMut(&[Object]) -> bool + Send + 'static,
    ) -> (Ran, f64) {
        tokio::join!(self.run(plan), self.seen(query, fits))
    }

    /// When the objects of a query first are as `fits` says, in seconds on the cluster's clock.
    async fn seen(&self, query: Query, mut fits: impl FnMut(&[Object]) -> bool + Send + 'static) -> f64 {
        let mut plan = Plan::new("observer");
        let spec = StepSpec::wait("observer.seen", "the state that is looked for", Duration::from_secs(7200));
        let cluster = self.another();
        let clock = self.clock.clone();
        let seen: Out<f64> = plan.step(spec, (), move |cx, ()| async move {
            let watched = cluster.watch(query);
            cx.wait(watched.changes(), || {
                watched.judge(|objects| {
                    if fits(objects) {
                        return Verdict::Done(());
                    }
                    Verdict::Pending(Why::waiting(ObjectRef::thing("state", "<any>"), "not-yet", "is not there yet"))
                })
            })
            .await?;
            Ok(Step::AlreadySo(clock.elapsed().as_secs_f64(), String::new()))
        });
        plan.answer(&seen, |at| toolbox_engine::Report { text: String::new(), json: (*at).into() });
        let outcome = run(plan, RunOptions::new(self.clock.clone())).await;
        let report = outcome.report.expect("the cluster comes to the state that the test looks for");
        report.json.as_f64().expect("invariant: a number of seconds")
    }

    /// Waits in the cluster's time until it is as `fits` says, at most so long. Gives what it then is, so that a test can
    /// say how it is not what it should be.
    pub async fn until(
        &self,
        at_most: Duration,
        fits: impl Fn(&BTreeMap<String, Value>) -> bool,
    ) -> BTreeMap<String, Value> {
        let limit = self.clock.elapsed() + at_most;
        loop {
            let now = self.snapshot();
            if fits(&now) || self.clock.elapsed() >= limit {
                return now;
            }
            self.clock.sleep(LOOK_AGAIN).await;
        }
    }
}
