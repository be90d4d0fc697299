//! `rehearse`: a verb against a simulated cluster, in the same process and in virtual time.

use std::path::Path;
use std::sync::Arc;

use toolbox_cluster::{Cluster, ClusterInfo, Patience};
use toolbox_engine::event::{Event, Reporter, Stamped};
use toolbox_engine::{Clock, Exit, Plan, Redactor, Report, Why};
use toolbox_rehearsal::scenario::{Fault, Needs, Scenario, ScenarioError};
use toolbox_rehearsal::{FloorRequest, Witness, World};

use super::own::RehearseArgs;
use super::run::{Context, Finished, Rehearsal, Stage, verb};
use super::signals::Signals;
use super::verb::{FloorJob, Verb, VerbEnv};
use crate::config::{ConfigError, read_file};

/// The moment at which every rehearsal begins: its files must not know the real time.
const BEGIN: &str = "2026-01-01T00:00:00Z";

/// The lists that were asked for instead of a verb.
pub(crate) fn lists(args: &RehearseArgs) -> Option<Report> {
    let rows: Vec<(String, String)> = if args.list_faults {
        toolbox_rehearsal::scenario::faults().map(|(name, what)| (name.to_owned(), what.to_owned())).collect()
    } else if args.list_scenarios {
        Scenario::embedded_names()
            .map(|name| {
                let what = Scenario::embedded(name).map(|scenario| scenario.description);
                (name.to_owned(), what.unwrap_or_default())
            })
            .collect()
    } else {
        return None;
    };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(name, what)| format!("{name:width$}  {what}")).collect();
    let json = rows.iter().map(|(name, what)| serde_json::json!({"name": name, "description": what})).collect();
    Some(Report { text: lines.join("\n"), json })
}

/// The scenario, with the faults asked for.
pub(crate) fn scenario(args: &RehearseArgs) -> Result<Scenario, Why> {
    let name = args.scenario();
    let named = Scenario::embedded_names().any(|known| known == name);
    let looks_like_a_file = name.contains(['/', '.']);
    let scenario = if named || !looks_like_a_file {
        Scenario::embedded(name)
    } else {
        let text = read_file(Path::new(name), "scenario")?;
        Scenario::from_yaml(name, &text)
    };
    let scenario = scenario.map_err(|error| wrong(name, &error))?;
    let faults: Result<Vec<Fault>, ScenarioError> = args.faults.iter().map(|name| name.parse()).collect();
    let faults = faults.map_err(|error| wrong("--fault", &error))?;
    Ok(scenario.with_faults(&faults))
}

fn wrong(file: &str, error: &ScenarioError) -> Why {
    let error = match error {
        ScenarioError::UnknownScenario { .. } => ConfigError::file(file, error.to_string())
            .help("name one of them, or a file (with a `/` or `.` in its name)"),
        ScenarioError::UnknownFault { .. } => {
            ConfigError::file(file, error.to_string()).help("see them with --list-faults")
        }
        ScenarioError::Newer { version, .. } => {
            let problem = format!(
                "it is written for version {version} of scenario files, and {} is the newest that this program knows",
                toolbox_rehearsal::scenario::SCHEMA
            );
            ConfigError::file(file, problem).help("use a newer program, or write the file for this one")
        }
        ScenarioError::Wrong { line, field, problem, .. } => {
            ConfigError::file(file, problem.clone()).at(field.clone(), *line).help("correct the scenario")
        }
    };
    error.into()
}

/// Says what is simulated.
pub(crate) fn label(args: &RehearseArgs, scenario: &Scenario) -> String {
    let name = if scenario.name.is_empty() { args.scenario() } else { &scenario.name };
    let faults = if scenario.faults.is_empty() {
        "no faults".to_owned()
    } else {
        let faults: Vec<String> = scenario.faults.iter().map(ToString::to_string).collect();
        format!("faults {}", faults.join(", "))
    };
    format!("scenario {name}, {faults}, seed {}", seed(args, scenario))
}

/// The seed of everything that is left to chance.
pub(crate) fn seed(args: &RehearseArgs, scenario: &Scenario) -> u64 {
    args.seed.or(scenario.seed).unwrap_or(0)
}

/// What a verb needs of the cluster so that it can pass, as far as its plan and its job say so.
fn needs(asked: &dyn Verb, plan: Option<&Plan>) -> Needs {
    let job = asked.floor();
    let waits = plan.map(Plan::planned).unwrap_or_default();
    Needs {
        gpu_labels: waits.iter().any(|step| step.wait.as_deref() == Some("gpu-label")),
        instance_type: job.as_ref().map(|job| job.instance_type.clone()),
        packages: job.map(|job| vec![job.gpu_package, job.nfd_package]).unwrap_or_default(),
    }
}

/// Refuses what could never pass. `twin` is the same verb once more, whose plan is only looked at.
fn possible(
    args: &RehearseArgs,
    scenario: &Scenario,
    asked: &dyn Verb,
    twin: Box<dyn Verb>,
    cluster: &Cluster,
) -> Result<(), Why> {
    // What is wrong with the plan itself is the run's to say.
    let plan = twin.plan(&VerbEnv::new(cluster.clone())).ok();
    match scenario.denies(&needs(asked, plan.as_ref())) {
        None => Ok(()),
        Some((field, problem)) => {
            let help = "change the scenario, or say in it what the run is to end with (expect)";
            Err(ConfigError::file(args.scenario(), problem).at(field, None).help(help).into())
        }
    }
}

/// Tells the world what happens in the run, for faults that wait for it.
struct Telling(Witness);

impl Reporter for Telling {
    fn event(&self, stamped: &Stamped) {
        match &stamped.event {
            Event::Started { step, .. } => self.0.step_started(step),
            Event::Pending { why, .. } => self.0.waits_because(&why.to_string()),
            _ => {}
        }
    }
}

/// Runs a verb against a new simulated cluster. The runtime must be single-threaded and paused; no child process and
/// no blocking work may run in it, because time jumps whenever nothing else is to be done.
pub(crate) async fn rehearse(
    context: &Context<'_>,
    args: &RehearseArgs,
    scenario: Scenario,
    (asked, twin): (Box<dyn Verb>, Box<dyn Verb>),
    redactor: &Redactor,
) -> Finished {
    let begin = BEGIN.parse().expect("invariant: the constant is a time");
    let clock = Clock::starting_at(begin);
    let label = label(args, &scenario);
    let seed = seed(args, &scenario);
    let (version, openshift) = (scenario.kubernetes.clone(), scenario.openshift.clone());
    let world = match World::start(scenario, seed, clock.clone()).await {
        Ok(world) => std::rc::Rc::new(world),
        Err(error) => {
            let mut problem = error.to_string();
            if let Some(source) = std::error::Error::source(&error) {
                problem = format!("{problem}: {source}");
            }
            let why: Why = ConfigError::file(args.scenario(), problem).into();
            return refused(why);
        }
    };
    let info = ClusterInfo {
        server: "https://rehearsal.invalid:6443".to_owned(),
        version: format!("v{}", version.trim_start_matches('v')),
        openshift_version: Some(openshift).filter(|version| !version.is_empty()),
        source: "the rehearsal".to_owned(),
        context: None,
        user: None,
        namespace: "default".to_owned(),
        ..ClusterInfo::default()
    };
    let api = world.api().clone();
    let cluster = Cluster::from_clients(move || api.client(), info, clock.clone(), Patience::default());
    if let Err(why) = possible(args, world.scenario(), &*asked, twin, &cluster) {
        return refused(why);
    }
    let floors = world.clone();
    let witness = world.witness();
    let stage = Stage {
        clock,
        rehearsal: Some(Rehearsal {
            label,
            seed,
            floor: Box::new(move |job| floors.floor(&request(job))),
            listener: Arc::new(Telling(witness.clone())),
        }),
    };
    let signals = Signals::default();
    let connecting = async { Ok(cluster) };
    let finished = tokio::select! {
        biased;
        // First, so that a signal is heard before the first step runs.
        () = signals.listen() => unreachable(),
        finished = verb(context, &stage, &signals, asked, redactor, connecting) => finished,
    };
    for fault in witness.not_struck().iter().filter(|_| finished.run_dir.is_some()) {
        super::output::complain(&format!("note: {fault}: no step of that id started, and no wait gave such a reason"));
    }
    finished
}

fn refused(why: Why) -> Finished {
    super::output::complain(&format!("error: {why}\nnext: {}", why.next));
    Finished { exit: why.exit, answer: None, why: Some(why), run_dir: None }
}

/// Listening to signals never ends.
pub(crate) fn unreachable() -> Finished {
    Finished { exit: Exit::Bug, answer: None, why: None, run_dir: None }
}

fn request(job: &FloorJob) -> FloorRequest {
    FloorRequest {
        instance_type: job.instance_type.clone(),
        replicas: job.replicas,
        burn_seconds: job.burn_seconds,
        gpu_package: job.gpu_package.clone(),
        nfd_package: job.nfd_package.clone(),
    }
}
