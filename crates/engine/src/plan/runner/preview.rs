//! What a plan would do on this cluster: what only asks is run, changes are dry runs, waits are named.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use super::drive::RunCause;
use super::{Phase, Preview, Readiness, RunOptions, Runner};
use crate::event::{PlannedStep, Role};
use crate::plan::{Plan, Step, StepCx};
use crate::why::{ObjectRef, Why};

/// Says what a plan would do on this cluster: runs what only asks, and the changes as dry runs.
pub async fn preview(plan: Plan, options: RunOptions) -> Vec<Preview> {
    let (mut runner, _) = Runner::new(plan, options, true);
    runner.preview_steps().await
}

impl Runner {
    async fn preview_steps(&mut self) -> Vec<Preview> {
        let planned: BTreeMap<String, PlannedStep> =
            self.plan.planned().into_iter().map(|step| (step.id.clone(), step)).collect();
        let never = CancellationToken::new();
        let mut previews = Vec::new();
        for at in 0..self.plan.steps.len() {
            let spec = self.plan.steps[at].spec.clone();
            let step = planned.get(spec.id()).cloned();
            let mut preview = step.map(|step| Preview { step, would: Vec::new(), note: String::new(), why: None });
            let unknown = self.unknown_need(at);
            match (spec.role(), self.readiness(at)) {
                (_, Readiness::Skip(reason)) => {
                    self.phases[at] = Phase::Skipped;
                    note(&mut preview, format!("skipped: {reason}"));
                }
                (Role::Ask | Role::Change, Readiness::Ready) if unknown.is_none() => {
                    let cx = StepCx::new(self.shared.clone(), spec.id(), never.clone());
                    let body = self.plan.steps[at].body.take();
                    let Some(future) = body.and_then(|body| body(cx.clone(), &self.values)) else {
                        self.phases[at] = Phase::Skipped;
                        continue;
                    };
                    let limited = tokio::time::timeout(spec.time_limit(), future).await;
                    let result = limited.unwrap_or_else(|_| {
                        let cause = RunCause::StillRunning(spec.time_limit());
                        Err(Why::new(ObjectRef::thing("step", spec.id()), &cause))
                    });
                    let would = cx.take_would();
                    match result {
                        Ok(Step::Changed(value, what) | Step::AlreadySo(value, what) | Step::Skipped(value, what)) => {
                            self.values.0[at] = Some(value);
                            self.phases[at] = Phase::Met;
                            note(&mut preview, what);
                        }
                        Err(why) => {
                            self.phases[at] = Phase::NotMet;
                            note(&mut preview, format!("would fail: {why}"));
                            if let Some(preview) = &mut preview {
                                preview.why = Some(why);
                            }
                        }
                    }
                    if let Some(preview) = &mut preview {
                        preview.would = would;
                    }
                }
                (Role::Finalizer, _) => note(&mut preview, "runs at the end, whatever happened".to_owned()),
                (_, Readiness::Never(reason)) => {
                    self.phases[at] = Phase::NotMet;
                    note(&mut preview, format!("would not run: {reason}"));
                }
                (Role::Wait, _) => {
                    self.phases[at] = Phase::Met;
                    note(&mut preview, "waits".to_owned());
                }
                (_, _) => {
                    self.phases[at] = Phase::Met;
                    let from = unknown.unwrap_or_else(|| "what comes before it".to_owned());
                    note(&mut preview, format!("decided from {from}"));
                }
            }
            previews.extend(preview);
        }
        previews
    }

    /// The need whose value is not known without running the plan.
    fn unknown_need(&self, at: usize) -> Option<String> {
        let step = &self.plan.steps[at];
        step.needs
            .iter()
            .find(|need| self.phases[need.0] == Phase::Met && self.values.0[need.0].is_none())
            .map(|need| self.plan.steps[need.0].spec.id().to_owned())
    }
}

fn note(preview: &mut Option<Preview>, text: String) {
    if let Some(preview) = preview {
        preview.note = text;
    }
}
