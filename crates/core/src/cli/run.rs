//! The way of a verb: connect, say what was found, check the rights, take the lease, run, take back, sum up.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolbox_cluster::Cluster;
use toolbox_engine::event::{Event, Reporter, Role, Stamped};
use toolbox_engine::journal::{Entry, Records};
use toolbox_engine::plan::{self, Effect, RunOptions, StepSpec};
use toolbox_engine::run::{Journal, Record, RunDirOptions};
use toolbox_engine::{Clock, Exit, Plan, Redactor, Report, RunDir, Step, Why};

use super::args::GlobalArgs;
use super::display::{Display, Ending, Paint, Screen, Surface};
use super::lease::{self, Holder, Lease};
use super::signals::Signals;
use super::undo::{UNDO, Watchman, take_back};
use super::verb::{FloorJob, Verb, VerbEnv, VerbName};
use super::{artifacts, checks, connect, preview};
use crate::EnvMap;
use crate::settings::Settings;

/// How often the display looks at the time.
const TICK: Duration = Duration::from_millis(200);

/// The key under which a run's id is kept for those who resume it.
const RUN_ID: &str = "run.id";

/// What a command line said, as far as a run needs it.
pub(crate) struct Context<'a> {
    pub(crate) program: &'a str,
    pub(crate) globals: &'a GlobalArgs,
    pub(crate) settings: &'a Settings,
    pub(crate) env: &'a EnvMap,
    /// The words, without the program's name.
    pub(crate) words: Vec<String>,
    pub(crate) notes: &'a [String],
    pub(crate) paint: Paint,
    pub(crate) surface: Surface,
}

/// The cluster that a verb runs on, and the time that passes there.
pub(crate) struct Stage {
    pub(crate) clock: Clock,
    pub(crate) rehearsal: Option<Rehearsal>,
}

/// What a rehearsal knows besides.
pub(crate) struct Rehearsal {
    /// Scenario, faults and seed, in words.
    pub(crate) label: String,
    pub(crate) seed: u64,
    /// The least time a job can take.
    pub(crate) floor: Box<dyn Fn(&FloorJob) -> f64>,
}

/// How it ended, for `main`.
pub(crate) struct Finished {
    pub(crate) exit: Exit,
    /// What goes to stdout.
    pub(crate) answer: Option<Report>,
    /// The failure, for those who read JSON; people have seen it.
    pub(crate) why: Option<Why>,
    pub(crate) run_dir: Option<PathBuf>,
}

impl Finished {
    fn refused(why: Why) -> Self {
        Self { exit: why.exit, answer: None, why: Some(why), run_dir: None }
    }
}

/// Everything that is open while a verb runs.
struct Going<'a> {
    context: &'a Context<'a>,
    stage: &'a Stage,
    name: VerbName,
    run: RunDir,
    run_id: String,
    flow: bool,
    report: String,
    display: Arc<Display>,
    floor: Option<f64>,
}

/// Runs a verb from its first word to its last.
pub(crate) async fn verb<C>(
    context: &Context<'_>,
    stage: &Stage,
    signals: &Signals,
    verb: Box<dyn Verb>,
    redactor: &Redactor,
    connecting: C,
) -> Finished
where
    C: Future<Output = Result<Cluster, Why>>,
{
    for secret in verb.secrets() {
        redactor.secret(&secret);
    }
    let screen = Screen::stderr(context.surface, context.paint, context.env);
    let display = Arc::new(Display::new(screen, redactor.clone()));
    for note in context.notes {
        display.say(&format!("note: {note}"));
    }
    if context.globals.plan {
        return planned(context, stage, verb, &display, connecting).await;
    }
    let name = verb.name();
    let floor = stage.rehearsal.as_ref().and_then(|rehearsal| Some((rehearsal.floor)(&verb.floor()?)));
    let run = match open(context, stage, &*verb, redactor) {
        Ok(run) => run,
        Err(why) => {
            say_failure(&display, &why);
            return Finished::refused(why);
        }
    };
    super::panics::remember(run.path());
    let going = Going {
        context,
        stage,
        name,
        flow: verb.flow().is_some(),
        report: report_name(&*verb).unwrap_or_else(|| "report.html".to_owned()),
        run_id: run_id(&run, stage),
        run,
        display,
        floor,
    };
    going.whole(verb, signals, connecting).await
}

/// `--plan`: says what would be done, on the cluster that it would be done to.
async fn planned<C>(
    context: &Context<'_>,
    stage: &Stage,
    verb: Box<dyn Verb>,
    display: &Display,
    connecting: C,
) -> Finished
where
    C: Future<Output = Result<Cluster, Why>>,
{
    let found = async {
        let cluster = connecting.await?;
        for line in stage.describe(&cluster) {
            display.say(&line);
        }
        let env = context.verb_env(&cluster, stage);
        let plan = verb.plan(&env)?;
        checks::names(context.globals, &plan)?;
        preview::preview(context, stage, &cluster, plan).await
    };
    match found.await {
        Ok((answer, gaps)) => {
            if let Some(why) = &gaps {
                say_failure(display, why);
            }
            Finished {
                exit: gaps.as_ref().map_or(Exit::Done, |why| why.exit),
                answer: Some(answer),
                why: None,
                run_dir: None,
            }
        }
        Err(why) => {
            say_failure(display, &why);
            Finished::refused(why)
        }
    }
}

fn say_failure(display: &Display, why: &Why) {
    display.fail(why);
}

/// The run directory. Nothing was touched yet when it cannot be made.
fn open(context: &Context<'_>, stage: &Stage, verb: &dyn Verb, redactor: &Redactor) -> Result<RunDir, Why> {
    let resumes = match &context.globals.resume {
        Some(directory) => Some(checks::resumable(directory, &verb.name())?),
        None => None,
    };
    let name = verb.name();
    // A rehearsal's stamps are virtual, and its directory must be new all the same.
    let now = if stage.rehearsal.is_some() { jiff::Timestamp::now() } else { stage.clock.now() };
    let parent = artifacts::choose(context.settings, context.env, &name, now)?;
    let options = RunDirOptions { redactor: redactor.clone(), resumes, report: report_name(verb) };
    match verb.flow() {
        Some(_) => {
            let run = RunDir::unnumbered(&parent, &name, options)?;
            for part in verb.parts() {
                run.part(&part.name, &part.prefixes, &part.command)?;
            }
            Ok(run)
        }
        None => RunDir::create(&parent, &name, options),
    }
}

/// The report of a CI flow carries the name that Prow's viewer shows.
fn report_name(verb: &dyn Verb) -> Option<String> {
    verb.flow().map(|flow| format!("{flow}-summary.html"))
}

/// The id that the run's objects carry. A resumed run goes on under the id of the one it resumes.
fn run_id(run: &RunDir, stage: &Stage) -> String {
    if let Some(serde_json::Value::String(id)) = run.recall(RUN_ID) {
        return id;
    }
    let id = match &stage.rehearsal {
        Some(rehearsal) => format!("rehearsal-{}", rehearsal.seed),
        None => format!("{}-{}", stage.clock.now().strftime("%Y%m%d-%H%M%S"), std::process::id()),
    };
    run.journal(&Entry::Decided { key: RUN_ID.to_owned(), value: id.clone().into() });
    id
}

/// The id of a run that is to be taken back.
pub(crate) fn run_id_of(journal: &Journal) -> String {
    let id = journal.decisions.get(RUN_ID);
    id.and_then(|id| id.as_str()).unwrap_or_default().to_owned()
}

impl Stage {
    fn describe(&self, cluster: &Cluster) -> Vec<String> {
        match &self.rehearsal {
            Some(rehearsal) => vec![
                format!("REHEARSAL: {}; nothing here is real", rehearsal.label),
                connect::describe(cluster.info()).swap_remove(0),
            ],
            None => connect::describe(cluster.info()),
        }
    }
}

impl Context<'_> {
    fn verb_env(&self, cluster: &Cluster, stage: &Stage) -> VerbEnv {
        let mut env = VerbEnv::new(cluster.clone()).with_env(self.env.clone()).with_settings(self.settings.clone());
        env.rehearsal = stage.rehearsal.is_some();
        env
    }
}

impl Going<'_> {
    fn tell(&self, event: Event) {
        let elapsed = self.stage.clock.elapsed().as_secs_f64();
        let stamped = Stamped { at: self.stage.clock.now(), t: (elapsed * 1000.0).round() / 1000.0, event };
        self.run.event(&stamped);
        self.display.event(&stamped);
    }

    async fn whole<C>(&self, verb: Box<dyn Verb>, signals: &Signals, connecting: C) -> Finished
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
        let outcome = self.run(plan, &cluster, lease, signals).await;
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
        Ok((cluster, plan, lease))
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

    /// Moves the display on. A rehearsal is over before anybody could look.
    async fn ticks(&self) {
        if self.stage.rehearsal.is_some() {
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

/// What a failed run prints for programs.
pub(crate) fn failure_json(finished: &Finished) -> serde_json::Value {
    json!({
        "error": finished.why,
        "exit_code": finished.exit.code(),
        "run_dir": finished.run_dir.as_deref().map(Path::display).map(|path| path.to_string()),
    })
}

/// Reads a run again.
pub(crate) fn record(directory: &Path) -> Result<Record, Why> {
    Record::from_run_dir(directory).map_err(|error| {
        crate::config::ConfigError::file(
            directory.display().to_string(),
            format!("is no run directory: events.jsonl: {}", crate::config::plain(&error)),
        )
        .help("name a directory that holds events.jsonl and journal.jsonl")
        .into()
    })
}
