//! A run that goes on: what is told, prepared, run beside each other, and said at the end.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use toolbox_cluster::Cluster;
use toolbox_engine::event::{Event, Reporter, Role, Stamped};
use toolbox_engine::journal::{Entry, Records};
use toolbox_engine::plan::{self, Effect, RunOptions, StepSpec};
use toolbox_engine::{Exit, ObjectRef, Plan, Report, RunDir, Step, Why};

use super::bug::Bug;
use super::{Context, Finished, Stage, proof};
use crate::cli::display::{Display, Ending};
use crate::cli::lease::{self, Holder, Lease};
use crate::cli::signals::Signals;
use crate::cli::undo::{UNDO, Watchman, take_back};
use crate::cli::verb::{Verb, VerbName};
use crate::cli::{checks, identity};

/// How often the display looks at the time.
const TICK: Duration = Duration::from_millis(200);

/// Everything that is open while a verb runs.
pub(super) struct Going<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) stage: &'a Stage,
    pub(super) name: VerbName,
    pub(super) run: RunDir,
    pub(super) run_id: String,
    pub(super) flow: bool,
    pub(super) report: String,
    pub(super) display: Arc<Display>,
    pub(super) floor: Option<f64>,
}

impl Going<'_> {
    fn tell(&self, event: Event) {
        let elapsed = self.stage.clock.elapsed().as_secs_f64();
        let stamped = Stamped { at: self.stage.clock.now(), t: (elapsed * 1000.0).round() / 1000.0, event };
        self.run.event(&stamped);
        self.display.event(&stamped);
    }

    /// From the first event to the last, even when a bug of ours comes between.
    pub(super) async fn whole<C>(&self, verb: Box<dyn Verb>, signals: &Signals, connecting: C) -> Finished
    where
        C: Future<Output = Result<Cluster, Why>>,
    {
        let whole = AssertUnwindSafe(self.told(verb, signals, connecting));
        match whole.catch_unwind().await {
            Ok(finished) => finished,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let cause = Bug(text.unwrap_or_default());
                let why = Why::new(ObjectRef::thing("program", self.context.program), &cause);
                self.finish(Exit::Bug, Some(why), None, false)
            }
        }
    }

    async fn told<C>(&self, verb: Box<dyn Verb>, signals: &Signals, connecting: C) -> Finished
    where
        C: Future<Output = Result<Cluster, Why>>,
    {
        let flow = verb.flow();
        self.tell(Event::RunStarted {
            name: flow.clone().unwrap_or_else(|| self.name.to_string()),
            command: self.command(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            resumes: self.resumes(),
            rehearsal: self.stage.rehearsal.as_ref().map(|rehearsal| rehearsal.label.clone()),
        });
        let prepared = tokio::select! {
            biased;
            () = signals.stopped.cancelled() => Err(None),
            prepared = self.prepare(verb, connecting) => prepared.map_err(Some),
        };
        let (cluster, plan, lease) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => return self.unprepared(why, signals),
        };
        let probe = plan.is_probe();
        if probe {
            self.display.asks();
        }
        let outcome = self.run(plan, &cluster, lease, signals).await;
        if outcome.exit != Exit::Done {
            proof::prove_lost(&cluster, &self.run, &self.run_id).await;
        }
        let traffic = cluster.traffic();
        self.tell(Event::Traffic { requests: traffic.requests, watch_events: traffic.watch_events });
        if let Some(seconds) = self.floor {
            self.tell(Event::Floor { seconds });
        }
        self.finish(outcome.exit, outcome.why, outcome.report, probe)
    }

    /// Something was wrong, or a signal came, before anything was done.
    fn unprepared(&self, why: Option<Why>, signals: &Signals) -> Finished {
        if let Some(why) = why {
            return self.finish(why.exit, Some(why), None, false);
        }
        let (by, exit) = signals.first();
        self.tell(Event::Interrupted { by });
        self.finish(exit, None, None, false)
    }

    fn finish(&self, exit: Exit, why: Option<Why>, answer: Option<Report>, probe: bool) -> Finished {
        self.tell(Event::RunEnded { exit, why: why.clone() });
        if self.flow && exit != Exit::Done {
            let text = why.as_ref().map_or_else(|| exit.meaning().to_owned(), ToString::to_string);
            self.run.mark_failure(&text);
        }
        let record = self.run.record();
        let trouble = self.run.trouble();
        self.display.end(&Ending {
            record: &record,
            exit,
            why: why.as_ref(),
            probe,
            run_dir: Some(self.run.path()),
            report: Some(self.run.path().join(&self.report)).filter(|path| path.exists()),
            trouble: trouble.as_ref(),
        });
        Finished {
            exit,
            answer: answer.filter(|_| exit == Exit::Done || probe),
            why,
            run_dir: Some(self.run.path().to_owned()),
        }
    }

    /// The words that repeat the run. Where its files go is no part of it.
    fn command(&self) -> Vec<String> {
        let mut words = vec![self.context.program.to_owned()];
        let mut rest = self.context.words.iter();
        while let Some(word) = rest.next() {
            match word.replace('_', "-").as_str() {
                "--artifact-dir" | "--resume" => {
                    rest.next();
                }
                word if word.starts_with("--artifact-dir=") || word.starts_with("--resume=") => {}
                _ => words.push(word.clone()),
            }
        }
        words
    }

    fn resumes(&self) -> Option<String> {
        let directory = self.context.globals.resume.as_ref()?;
        Some(match &self.stage.rehearsal {
            Some(_) => "an earlier rehearsal".to_owned(),
            None => directory.display().to_string(),
        })
    }

    /// Everything that can be refused before anything changes.
    async fn prepare<C>(&self, verb: Box<dyn Verb>, connecting: C) -> Result<(Cluster, Plan, Option<Lease>), Why>
    where
        C: Future<Output = Result<Cluster, Why>>,
    {
        let cluster = connecting.await?;
        let info = cluster.info();
        self.tell(Event::Cluster {
            server: info.server.clone(),
            version: info
                .openshift_version
                .as_ref()
                .map_or_else(|| info.version.clone(), |openshift| format!("{} (OpenShift {openshift})", info.version)),
            source: info.source.clone(),
        });
        for line in self.stage.describe(&cluster) {
            self.display.say(&line);
        }
        self.display.say(&format!("run directory: {}", self.run.path().display()));
        let cluster = cluster.with_run_id(&self.run_id).with_force_conflicts(self.context.globals.force_conflicts);
        self.same_cluster(&cluster).await?;
        let mut env = self.context.verb_env(&cluster, self.stage);
        env.run = Some(self.run.clone());
        let plan = verb.plan(&env)?;
        checks::names(self.context.globals, &plan)?;
        let effects = plan.effects();
        let gaps = cluster.access_gaps(&effects).await?;
        if let Some(why) = cluster.access_why(&gaps) {
            return Err(why);
        }
        let lease = if changes(&effects) { self.lease(&cluster).await? } else { None };
        if self.context.globals.resume.is_some() {
            proof::prove_all(&cluster, &self.run, &self.run_id).await?;
        }
        Ok((cluster, plan, lease))
    }

    /// Keeps which cluster this is, and refuses to resume a run of another one. Every rehearsal has a cluster of its own.
    async fn same_cluster(&self, cluster: &Cluster) -> Result<(), Why> {
        if self.stage.rehearsal.is_some() {
            return Ok(());
        }
        let now = identity::of(cluster).await;
        let before = self.run.recall(identity::KEY);
        identity::check("--resume", before.as_ref().and_then(|id| id.as_str()), now.as_deref())?;
        if let (None, Some(now)) = (before, now) {
            self.run.journal(&Entry::Decided { key: identity::KEY.to_owned(), value: now.into() });
        }
        Ok(())
    }

    async fn lease(&self, cluster: &Cluster) -> Result<Option<Lease>, Why> {
        let real = self.stage.rehearsal.is_none();
        let holder = Holder {
            verb: self.name.to_string(),
            host: if real { host() } else { "rehearsal".to_owned() },
            pid: if real { std::process::id() } else { 0 },
            run: self.run_id.clone(),
        };
        match lease::ask(cluster, holder, self.context.globals.force_lock).await? {
            lease::Asked::Ours(lease) => Ok(Some(lease)),
            lease::Asked::Without(reason) => {
                self.tell(Event::Note {
                    step: None,
                    text: format!("other runs on this cluster are not kept out: {reason}"),
                });
                Ok(None)
            }
        }
    }

    /// Runs the plan, with everything that goes on beside it.
    async fn run(
        &self,
        mut plan: Plan,
        cluster: &Cluster,
        mut lease: Option<Lease>,
        signals: &Signals,
    ) -> plan::Outcome {
        let globals = self.context.globals;
        let mut reporters: Vec<Arc<dyn Reporter>> = vec![self.display.clone()];
        reporters.extend(self.stage.rehearsal.as_ref().map(|rehearsal| rehearsal.listener.clone()));
        if globals.undo_on_failure && plan.planned().iter().any(|step| step.role == Role::Change) {
            let watchman = Arc::new(Watchman::new());
            reporters.push(watchman.clone());
            self.undo_on_failure(&mut plan, cluster, watchman);
        }
        let deadlines = self.context.settings.deadlines();
        let options = RunOptions {
            records: Arc::new(self.run.clone()),
            reporters,
            deadlines: deadlines.into_iter().map(|(name, (limit, _))| (name, limit)).collect(),
            run_deadline: globals.run_deadline,
            fail_fast: globals.fail_fast,
            grace: globals.grace.unwrap_or(Duration::from_secs(15)),
            hold_at: globals.hold_at.clone(),
            interrupt: signals.interrupt.clone(),
            ..RunOptions::new(self.stage.clock.clone())
        };
        let outcome = {
            let beside = async {
                tokio::join!(self.keep(&mut lease, cluster), self.ticks());
            };
            tokio::select! {
                biased;
                outcome = plan::run(plan, options) => Some(outcome),
                () = beside => None,
            }
        };
        if let Some(lease) = lease {
            lease.give_up(cluster).await;
        }
        outcome.expect("invariant: what goes on beside a run never ends")
    }

    async fn keep(&self, lease: &mut Option<Lease>, cluster: &Cluster) {
        if let Some(held) = lease {
            let text = held.keep(cluster).await;
            self.tell(Event::Warning { step: None, name: "lease".to_owned(), text });
        }
        std::future::pending::<()>().await;
    }

    /// Moves the display on, where somebody could look: a rehearsal is over before.
    async fn ticks(&self) {
        if self.stage.rehearsal.is_some() || self.context.heard.is_some() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(TICK).await;
            self.display.tick(self.stage.clock.elapsed().as_secs_f64());
        }
    }

    fn undo_on_failure(&self, plan: &mut Plan, cluster: &Cluster, watchman: Arc<Watchman>) {
        let spec =
            StepSpec::change(UNDO, "Take back what this run made, if it failed").deadline(Duration::from_secs(1800));
        let (run, cluster, id) = (self.run.clone(), cluster.clone(), self.run_id.clone());
        plan.finalizer(spec, move |cx| async move {
            if !watchman.verdict().await {
                return Ok(Step::Skipped((), "nothing failed".to_owned()));
            }
            take_back(&cx, &cluster, &run.journal_so_far(), &id).await
        });
    }
}

fn changes(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| !effect.act.is_read_only())
}

/// The machine's name, for those who meet our lease.
fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
