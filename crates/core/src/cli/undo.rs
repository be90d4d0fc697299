//! Taking back what a run made and changed: by uid, last first, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use toolbox_cluster::{Cluster, MANAGED_BY, MANAGER, Object, Query, RUN, conditions, kinds};
use toolbox_engine::event::{Ended, Event, Reporter, Role, Stamped};
use toolbox_engine::journal::{Entry, GENERATED, may_be_named};
use toolbox_engine::plan::{Act, Effect, StepSpec};
use toolbox_engine::run::Journal;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Plan, Step, StepCx, Why};

use super::checks::ended;
use super::identity;
use super::run::run_id_of;
use super::verb::{Verb, VerbEnv, VerbName};

/// How long one object may take to be gone.
const EACH: Duration = Duration::from_secs(120);

/// The finalizer's id.
pub(crate) const UNDO: &str = "undo";

/// What could not be taken back.
#[derive(Debug)]
enum UndoCause {
    Stays { what: Vec<String> },
    Inhabited { others: Vec<String> },
    Masked,
    Gone,
    Damaged { lines: Vec<usize> },
}

impl Cause for UndoCause {
    fn code(&self) -> &'static str {
        match self {
            UndoCause::Stays { .. } => "not-taken-back",
            UndoCause::Inhabited { .. } => "namespace-inhabited",
            UndoCause::Masked => "undo-masked",
            UndoCause::Gone => "object-replaced",
            UndoCause::Damaged { .. } => "journal-damaged",
        }
    }
    fn text(&self) -> String {
        match self {
            UndoCause::Stays { what } => match &what[..] {
                [one] => one.clone(),
                all => format!("{} things could not be taken back", all.len()),
            },
            UndoCause::Inhabited { others } => {
                format!("stays, as others use it now: {}", others.join(", "))
            }
            UndoCause::Masked => {
                "its former value held a secret, which no file keeps: it cannot be put back".to_owned()
            }
            UndoCause::Gone => "is another object of the same name now".to_owned(),
            UndoCause::Damaged { lines } => {
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                format!("line {} cannot be read, so what it names may still be there", lines.join(", "))
            }
        }
    }
    fn next(&self) -> String {
        match self {
            UndoCause::Damaged { .. } => format!(
                "look for what carries the label {MANAGED_BY}={MANAGER} and the annotation {RUN} of this run: kubectl get all -A -l {MANAGED_BY}={MANAGER}"
            ),
            _ => "look at what is listed, then take the run back again: tbx cleanup RUN_DIR".to_owned(),
        }
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Infrastructure
    }
    fn exit(&self) -> Exit {
        Exit::CleanUp
    }
}

/// Takes everything back, last first. What stays is reported as left over and ends the step with exit code 6.
pub(crate) async fn take_back(cx: &StepCx, cluster: &Cluster, journal: &Journal, run: &str) -> Result<Step<()>, Why> {
    let (mut taken, mut gone) = (0u32, 0u32);
    let mut stays: Vec<Why> = Vec::new();
    for entry in journal.entries().iter().rev() {
        let done = match entry {
            Entry::Made { object, .. } if !was_deleted(journal, object) => delete(cx, cluster, object).await,
            Entry::Making { step, object } if is_lost(journal, step, object) => {
                delete_lost(cx, cluster, object, run).await
            }
            Entry::Changed { object, undo, .. } => put_back(cx, cluster, object, undo).await,
            Entry::Decided { .. } | Entry::Making { .. } | Entry::Made { .. } | Entry::Deleted { .. } => continue,
        };
        match done {
            Ok(true) => taken += 1,
            Ok(false) => gone += 1,
            Err(why) => {
                cx.leftover(&why.object);
                cx.note(format!("stays: {why}"));
                stays.push(why);
            }
        }
    }
    if !journal.damaged.is_empty() {
        let file = ObjectRef::thing("file", "journal.jsonl");
        stays.push(Why::new(file, &UndoCause::Damaged { lines: journal.damaged.clone() }));
    }
    if let Some(first) = stays.first() {
        let what: Vec<String> = stays.iter().map(ToString::to_string).collect();
        let cause = UndoCause::Stays { what: if stays.len() == 1 { vec![first.cause.clone()] } else { what.clone() } };
        let mut why = Why::new(first.object.clone(), &cause).with("stays", what.join("\n"));
        if stays.len() == 1 {
            why.next.clone_from(&first.next);
        }
        return Err(why);
    }
    Ok(match (taken, gone) {
        (0, 0) => Step::AlreadySo((), "the run left nothing to take back".to_owned()),
        (0, gone) => Step::AlreadySo((), format!("all {gone} were gone already")),
        (taken, 0) => Step::Changed((), format!("took back {taken}")),
        (taken, gone) => Step::Changed((), format!("took back {taken}, {gone} were gone already")),
    })
}

fn was_deleted(journal: &Journal, object: &ObjectRef) -> bool {
    !journal.leftovers().contains(object)
}

fn is_lost(journal: &Journal, step: &str, object: &ObjectRef) -> bool {
    journal.lost.iter().any(|lost| lost.step == step && lost.object == *object)
}

/// Deletes one object and waits until it is gone. `false` when it was. A namespace in which others live now stays.
async fn delete(cx: &StepCx, cluster: &Cluster, object: &ObjectRef) -> Result<bool, Why> {
    if (object.api_version.as_str(), object.kind.as_str()) == ("v1", "Namespace") {
        let others = others(cluster, object).await?;
        if !others.is_empty() {
            return Err(Why::new(object.clone(), &UndoCause::Inhabited { others }));
        }
    }
    if !cluster.delete(cx, object).await? {
        return Ok(false);
    }
    if cx.dry() {
        return Ok(true);
    }
    let kind = cluster.kind(&object.api_version, &object.kind).await?;
    let watched = cluster.watch(Query::named(&kind, object.namespace.as_deref(), &object.name));
    // With its definition an object goes too.
    let judge = || watched.judge_absence(|objects| conditions::gone(objects, object));
    let gone = cx.wait(watched.changes(), judge);
    tokio::select! {
        biased;
        gone = gone => gone.map(|()| true),
        () = cx.clock().sleep(EACH) => {
            match judge() {
                toolbox_engine::Verdict::Done(()) => Ok(true),
                toolbox_engine::Verdict::Pending(why) | toolbox_engine::Verdict::Failed(why) => {
                    Err(why.timed_out(EACH))
                }
            }
        }
    }
}

/// What others have put into a namespace that the run made: it would go along. Only what somebody must have wanted counts,
/// not what operators and the cluster itself leave everywhere.
async fn others(cluster: &Cluster, namespace: &ObjectRef) -> Result<Vec<String>, Why> {
    let same = cluster.get(&kinds::NAMESPACE, None, &namespace.name).await?;
    let same = same.is_some_and(|found| namespace.uid.as_deref().is_none_or(|uid| uid == found.uid()));
    if !same {
        return Ok(Vec::new());
    }
    let wanted =
        [kinds::SUBSCRIPTION, kinds::OPERATOR_GROUP, kinds::DEPLOYMENT, kinds::DAEMON_SET, kinds::JOB, kinds::POD];
    let mut others = Vec::new();
    for kind in wanted {
        let found = match cluster.list(&Query::within(&kind, &namespace.name)).await {
            Ok(found) => found,
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(error.into()),
        };
        let theirs = found
            .iter()
            .filter(|one| one.label(MANAGED_BY) != Some(MANAGER) && one.owner_uids().is_empty() && !one.is_deleting());
        others.extend(theirs.map(|one| format!("{} {}", kind.kind, one.name())));
    }
    Ok(others)
}

/// Takes back what came of a create whose answer was lost.
async fn delete_lost(cx: &StepCx, cluster: &Cluster, object: &ObjectRef, run: &str) -> Result<bool, Why> {
    let mut any = false;
    for one in of_lost_create(cluster, object, run).await? {
        any |= delete(cx, cluster, &one.refer()).await?;
    }
    Ok(any)
}

/// What came of a create whose answer was lost: what carries the run's id under a name that the object may have.
pub(crate) async fn of_lost_create(cluster: &Cluster, object: &ObjectRef, run: &str) -> Result<Vec<Object>, Why> {
    let kind = match cluster.kind(&object.api_version, &object.kind).await {
        Ok(kind) => kind,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let all = match &object.namespace {
        Some(namespace) => Query::within(&kind, namespace),
        None => Query::all(&kind),
    };
    let ours = format!("{}={}", toolbox_cluster::MANAGED_BY, toolbox_cluster::MANAGER);
    let mut found = match cluster.list(&all.labels(ours)).await {
        Ok(found) => found,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    found.retain(|one| one.annotation(RUN) == Some(run) && may_be_named(&object.name, one.name()));
    Ok(found)
}

/// Puts an object's fields back as they were, if it still is the same object.
async fn put_back(cx: &StepCx, cluster: &Cluster, object: &ObjectRef, undo: &Value) -> Result<bool, Why> {
    let change = toolbox_engine::run::Change { step: cx.id().to_owned(), object: object.clone(), undo: undo.clone() };
    if !change.can_be_undone() {
        return Err(Why::new(object.clone(), &UndoCause::Masked));
    }
    let kind = match cluster.kind(&object.api_version, &object.kind).await {
        Ok(kind) => kind,
        Err(error) if error.is_absent() => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let namespace = object.namespace.as_deref();
    let found = match cluster.get(&kind, namespace, &object.name).await {
        Ok(found) => found,
        Err(error) if error.is_absent() => None,
        Err(error) => return Err(error.into()),
    };
    let Some(found) = found else { return Ok(false) };
    if object.uid.as_deref().is_some_and(|uid| uid != found.uid()) {
        return Err(Why::new(object.clone(), &UndoCause::Gone));
    }
    let applied = cluster.patch(cx, &kind, namespace, &object.name, undo.clone()).await?;
    Ok(applied.is_change())
}

/// Watches a run, so that the undo knows whether it is wanted and when the captures are done.
#[derive(Debug)]
pub(crate) struct Watchman {
    seen: watch::Sender<Seen>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    failed: bool,
    finalizers: BTreeSet<String>,
}

impl Watchman {
    pub(crate) fn new() -> Self {
        Self { seen: watch::Sender::new(Seen::default()) }
    }

    /// Waits until every other finalizer has ended; says whether the run failed or was interrupted.
    pub(crate) async fn verdict(&self) -> bool {
        let mut seen = self.seen.subscribe();
        let found = seen.wait_for(|seen| seen.finalizers.is_empty()).await;
        found.is_ok_and(|seen| seen.failed)
    }
}

impl Reporter for Watchman {
    fn event(&self, event: &Stamped) {
        match &event.event {
            Event::Planned { steps } => {
                let finalizers = steps
                    .iter()
                    .filter(|step| step.role == Role::Finalizer && step.id != UNDO)
                    .map(|step| step.id.clone())
                    .collect();
                self.seen.send_modify(|seen| seen.finalizers = finalizers);
            }
            Event::Interrupted { .. } => self.seen.send_modify(|seen| seen.failed = true),
            Event::Ended { step, ended } => self.seen.send_modify(|seen| {
                let finalizer = seen.finalizers.remove(step);
                seen.failed |= !finalizer && matches!(ended, Ended::Failed { .. });
            }),
            _ => {}
        }
    }
}

/// `tbx cleanup RUN_DIR`: takes a finished run back.
pub(crate) fn clean_up(run_dir: &Path) -> Result<Box<dyn Verb>, Why> {
    let journal = ended("RUN_DIR", run_dir)?;
    let run = run_id_of(&journal);
    Ok(Box::new(CleanUp { journal, run }))
}

struct CleanUp {
    journal: Journal,
    run: String,
}

impl Verb for CleanUp {
    fn name(&self) -> VerbName {
        VerbName::new("tbx", "cleanup")
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new("tbx cleanup");
        let entries = self.journal.entries().len();
        let limit = EACH.saturating_mul(u32::try_from(entries.max(1)).unwrap_or(u32::MAX));
        let mut spec = StepSpec::change("cleanup.take-back", "Take back what the run made and changed")
            .deadline(limit.min(Duration::from_secs(3600)));
        for entry in self.journal.entries() {
            let (act, object) = match entry {
                Entry::Made { object, .. } | Entry::Making { object, .. } => (Act::Delete, object),
                Entry::Changed { object, .. } => (Act::Patch, object),
                Entry::Decided { .. } | Entry::Deleted { .. } => continue,
            };
            let Some(kind) = kinds::find(&object.api_version, &object.kind) else { continue };
            let namespace = object.namespace.as_deref();
            spec = spec.does(match object.name.strip_suffix(GENERATED) {
                Some(_) => Effect::any(act, &kind, namespace),
                None => Effect::on(act, &kind, namespace, &object.name),
            });
        }
        let cluster = env.cluster.clone();
        plan.step(spec, (), move |cx, ()| async move {
            let before = self.journal.decisions.get(identity::KEY).and_then(Value::as_str);
            identity::check("RUN_DIR", before, identity::of(&cluster).await.as_deref())?;
            take_back(&cx, &cluster, &self.journal, &self.run).await
        });
        Ok(plan)
    }
}
