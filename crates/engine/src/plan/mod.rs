//! Plans: named steps with needs, which the runner starts the moment their needs are met.
//!
//! A step is added with [`Plan::step`] and returns an [`Out`]; what another step needs is that handle, so an order that
//! cannot hold does not compile and values flow along the needs. `--plan` runs the steps that only ask, and the
//! changes as dry runs; running the plan does the same with the changes for real.

mod context;
mod duration;
mod effect;
mod needs;
mod runner;
mod spec;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use context::{Changes, StepCx};
pub use duration::{parse_duration, show_duration};
pub use effect::{Act, Effect, Kind, Name};
pub use needs::{After, Needs, Out};
pub use runner::{Interrupt, Outcome, Preview, RunOptions, StepResult, preview, run};
pub use spec::StepSpec;

use crate::event::{PlannedStep, Role};
use crate::why::Why;
use needs::{StepIndex, Values};

type AnyValue = Arc<dyn Any + Send + Sync>;
type StepFuture = Pin<Box<dyn Future<Output = Result<Step<AnyValue>, Why>> + Send>>;
type Body = Box<dyn FnOnce(StepCx, &Values) -> Option<StepFuture> + Send>;
type Render = Box<dyn Fn(&AnyValue) -> Option<Report> + Send + Sync>;

/// What a finished step returns: its value, and whether anything had to be done.
#[derive(Clone, Debug)]
pub enum Step<T> {
    /// The cluster is different now; says how, in words.
    Changed(T, String),
    /// Nothing had to be done; says what was found.
    AlreadySo(T, String),
    /// Not done, on purpose; says why.
    Skipped(T, String),
}

impl<T> Step<T> {
    fn into_any(self) -> Step<AnyValue>
    where
        T: Send + Sync + 'static,
    {
        match self {
            Step::Changed(value, what) => Step::Changed(Arc::new(value), what),
            Step::AlreadySo(value, what) => Step::AlreadySo(Arc::new(value), what),
            Step::Skipped(value, reason) => Step::Skipped(Arc::new(value), reason),
        }
    }
}

/// Whether a part of a plan is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// It is.
    Needed,
    /// It is not; the reason is what each of its steps is skipped with.
    NotNeeded(String),
}

/// What a verb answers on stdout.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// For people.
    pub text: String,
    /// For programs.
    pub json: serde_json::Value,
}

struct PlanStep {
    spec: StepSpec,
    needs: Vec<StepIndex>,
    guards: Vec<StepIndex>,
    body: Option<Body>,
}

/// Named steps with needs.
pub struct Plan {
    name: String,
    steps: Vec<PlanStep>,
    scope: Vec<StepIndex>,
    output: Option<(StepIndex, Render)>,
    probe: bool,
}

impl Plan {
    /// An empty plan; `name` is the verb's or flow's.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), steps: Vec::new(), scope: Vec::new(), output: None, probe: false }
    }

    /// The verb's or flow's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a step. `run` is called with the values of `needs` once all of them are done.
    pub fn step<N, T, F, R>(&mut self, spec: StepSpec, needs: N, run: F) -> Out<T>
    where
        N: Needs,
        T: Send + Sync + 'static,
        F: FnOnce(StepCx, N::Values) -> R + Send + 'static,
        R: Future<Output = Result<Step<T>, Why>> + Send + 'static,
    {
        let mut indexes = Vec::new();
        needs.indexes(&mut indexes);
        let body: Body = Box::new(move |cx, values| {
            let needed = needs.take(values)?;
            let future = run(cx, needed);
            Some(Box::pin(async move { future.await.map(Step::into_any) }) as StepFuture)
        });
        self.push(spec, indexes, body)
    }

    /// Adds a step that runs after everything else, whatever happened, under its own deadline.
    pub fn finalizer<F, R>(&mut self, spec: StepSpec, run: F)
    where
        F: FnOnce(StepCx) -> R + Send + 'static,
        R: Future<Output = Result<Step<()>, Why>> + Send + 'static,
    {
        let spec = spec.with_role(Role::Finalizer);
        let _: Out<()> = self.push(
            spec,
            Vec::new(),
            Box::new(move |cx, _| {
                let future = run(cx);
                Some(Box::pin(async move { future.await.map(Step::into_any) }))
            }),
        );
    }

    /// Adds steps that run only if `guard` says they are needed; otherwise each is skipped with the guard's reason and
    /// the result is `None`.
    pub fn when<T, F>(&mut self, guard: &Out<Guard>, id: &str, add: F) -> Out<Option<Arc<T>>>
    where
        T: Send + Sync + 'static,
        F: FnOnce(&mut Plan) -> Out<T>,
    {
        self.scope.push(guard.index);
        let inner = add(self);
        self.scope.pop();
        let spec = StepSpec::ask(id, "joins").hidden();
        let index = inner.index;
        let body: Body = Box::new(move |_, values| {
            let value: Option<Arc<T>> = values.get(index);
            Some(Box::pin(async move { Ok(Step::AlreadySo(Arc::new(value) as AnyValue, String::new())) }))
        });
        self.push(spec, vec![guard.index, index], body)
    }

    /// What the verb prints on stdout when it is done.
    pub fn answer<T, F>(&mut self, out: &Out<T>, render: F)
    where
        T: Send + Sync + 'static,
        F: Fn(&T) -> Report + Send + Sync + 'static,
    {
        let render: Render = Box::new(move |value| value.downcast_ref::<T>().map(&render));
        self.output = Some((out.index, render));
    }

    /// Declares that this plan only asks a question: a failure with exit code 1 is the answer no.
    pub fn mark_probe(&mut self) {
        self.probe = true;
    }

    /// Whether this plan only asks a question.
    pub fn is_probe(&self) -> bool {
        self.probe
    }

    /// The steps as they are printed and recorded, in the order they were added.
    pub fn planned(&self) -> Vec<PlannedStep> {
        self.steps
            .iter()
            .filter(|step| !step.spec.is_hidden())
            .map(|step| step.spec.planned(self.visible_needs(step), None))
            .collect()
    }

    /// Everything the steps say they do, for access reviews.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self.steps.iter().flat_map(|step| step.spec.effects().to_vec()).collect();
        effects.sort();
        effects.dedup();
        effects
    }

    /// The ids of a step's needs, hidden joins replaced by what they join.
    fn visible_needs(&self, step: &PlanStep) -> Vec<String> {
        let mut ids = Vec::new();
        for index in step.guards.iter().chain(&step.needs) {
            let need = &self.steps[index.0];
            let found = if need.spec.is_hidden() { self.visible_needs(need) } else { vec![need.spec.id().to_owned()] };
            for id in found {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        ids
    }

    fn push<T>(&mut self, spec: StepSpec, needs: Vec<StepIndex>, body: Body) -> Out<T> {
        let index = StepIndex(self.steps.len());
        let guards = self.scope.clone();
        self.steps.push(PlanStep { spec, needs, guards, body: Some(body) });
        Out::new(index)
    }
}
