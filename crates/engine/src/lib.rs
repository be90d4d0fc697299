//! Plans, wait verdicts, causes, the clock and the run directory.
//!
//! A verb returns a [`Plan`]: named steps with needs. [`run`](plan::run) starts each step the moment its needs are met;
//! a wait answers with a [`Verdict`], and everything that holds something up or fails is a [`Why`]: an object, a cause,
//! evidence and the next action.
//!
//! A [`RunDir`] keeps what happens in files that can be published: a [`Redactor`] takes every [`Secret`] out of them.
//!
//! This crate must not know Kubernetes' client or the command line: no kube, no clap.

pub mod clock;
pub mod event;
pub mod journal;
pub mod plan;
pub mod run;
pub mod secret;
mod verdict;
pub mod watch;
pub mod why;

pub use clock::Clock;
pub use plan::{Guard, Plan, Report, Step, StepCx, StepSpec};
pub use run::{Record, RunDir};
pub use secret::{Redactor, Secret};
pub use verdict::Verdict;
pub use why::{Cause, Exit, FailureVerdict, ObjectRef, Why};
