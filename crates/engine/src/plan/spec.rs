//! A step's description: everything about it but its code.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Effect;
use crate::event::{PlannedStep, Role};

/// Describes a step. Built top-down: `StepSpec::wait("nfd.wait-csv", "NFD's CSV succeeds").named("csv")…`.
#[derive(Clone, Debug)]
pub struct StepSpec {
    id: String,
    title: String,
    role: Role,
    wait: Option<&'static str>,
    deadline: Duration,
    effects: Vec<Effect>,
    per: Option<&'static str>,
    leaves: Option<String>,
    hidden: bool,
}

impl StepSpec {
    fn new(id: &str, title: impl Into<String>, role: Role, deadline: Duration) -> Self {
        Self {
            id: id.to_owned(),
            title: title.into(),
            role,
            wait: None,
            deadline,
            effects: Vec::new(),
            per: None,
            leaves: None,
            hidden: false,
        }
    }

    /// A step that reads and decides. Three minutes unless said otherwise: longer than a request is tried again, so
    /// that an API server that is away is what it fails with.
    pub fn ask(id: &str, title: impl Into<String>) -> Self {
        Self::new(id, title, Role::Ask, Duration::from_secs(180))
    }

    /// A step that changes the cluster. Five minutes unless said otherwise.
    pub fn change(id: &str, title: impl Into<String>) -> Self {
        Self::new(id, title, Role::Change, Duration::from_secs(300))
    }

    /// A step that watches until something holds, for at most `deadline`.
    pub fn wait(id: &str, title: impl Into<String>, deadline: Duration) -> Self {
        Self::new(id, title, Role::Wait, deadline)
    }

    /// The name a wait is known by, for `--deadline NAME=DURATION` and the display.
    #[must_use]
    pub fn named(mut self, wait: &'static str) -> Self {
        self.wait = Some(wait);
        self
    }

    /// How long it may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Something it does to the cluster.
    #[must_use]
    pub fn does(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Says that it makes one more step per such thing while it runs.
    #[must_use]
    pub fn per(mut self, thing: &'static str) -> Self {
        self.per = Some(thing);
        self
    }

    /// What stays behind when it fails, in words.
    #[must_use]
    pub fn leaves(mut self, what: impl Into<String>) -> Self {
        self.leaves = Some(what.into());
        self
    }

    pub(super) fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub(super) fn with_role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// The same description for one of several: its own id, the thing's name in the title, and the deadline given for
    /// the wait's name or the step's id.
    pub(super) fn renamed(&self, id: &str, key: &str, deadlines: &BTreeMap<String, Duration>) -> Self {
        let mut spec = Self { id: id.to_owned(), title: format!("{} ({key})", self.title), ..self.clone() };
        spec.override_deadline(deadlines);
        spec
    }

    /// Takes the deadline given for its id or its wait's name.
    pub(super) fn override_deadline(&mut self, deadlines: &BTreeMap<String, Duration>) {
        let given = deadlines.get(&self.id).or_else(|| self.wait.and_then(|wait| deadlines.get(wait)));
        if let Some(deadline) = given {
            self.deadline = *deadline;
        }
    }

    /// Its id, unique in the plan.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The wait's name, if it has one.
    pub fn wait_name(&self) -> Option<&'static str> {
        self.wait
    }

    /// How long it may take.
    pub fn time_limit(&self) -> Duration {
        self.deadline
    }

    /// What it does to the cluster.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// What stays behind when it fails, in words.
    pub fn leaves_behind(&self) -> Option<&str> {
        self.leaves.as_deref()
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.hidden
    }

    pub(super) fn planned(&self, needs: Vec<String>, parent: Option<&str>) -> PlannedStep {
        PlannedStep {
            id: self.id.clone(),
            title: self.title.clone(),
            role: self.role,
            needs,
            wait: self.wait.map(str::to_owned),
            deadline_s: self.deadline.as_secs_f64(),
            per: self.per.map(str::to_owned),
            parent: parent.map(str::to_owned),
            effects: self.effects.iter().map(ToString::to_string).collect(),
        }
    }
}
