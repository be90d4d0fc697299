//! The way of a verb: connect, say what was found, check the rights, take the lease, run, take back, sum up.

mod bug;
mod going;
mod proof;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use toolbox_cluster::Cluster;
use toolbox_engine::event::Reporter;
use toolbox_engine::journal::{Entry, Records};
use toolbox_engine::run::{Journal, Record, RunDirOptions};
use toolbox_engine::{Clock, Exit, Redactor, Report, RunDir, Why};

use super::args::GlobalArgs;
use super::display::{Display, Heard, Paint, Screen, Surface};
use super::signals::Signals;
use super::verb::{FloorJob, Verb, VerbEnv};
use super::{artifacts, checks, connect, preview};
use crate::EnvMap;
use crate::settings::Settings;
use going::Going;

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
    /// Keeps what would go to stderr.
    pub(crate) heard: Option<Heard>,
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
    /// Hears what happens in the run.
    pub(crate) listener: Arc<dyn Reporter>,
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
    let screen = match &context.heard {
        Some(heard) => Screen::new(context.surface, context.paint, Box::new(heard.clone())),
        None => Screen::stderr(context.surface, context.paint, context.env),
    };
    let display = Arc::new(Display::new(screen, redactor.clone()));
    for note in context.notes {
        display.say(&format!("note: {note}"));
    }
    if context.globals.plan {
        return tokio::select! {
            biased;
            () = signals.stopped.cancelled() => {
                Finished { exit: signals.first().1, answer: None, why: None, run_dir: None }
            }
            done = planned(context, stage, verb, &display, connecting) => done,
        };
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
        Some(directory) => Some(checks::resumable(directory, &verb.name(), verb.flow().as_deref(), &context.words)?),
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
