//! `rehearse`: a verb against a simulated cluster, in the same process and in virtual time.

use std::path::Path;

use toolbox_cluster::{Cluster, ClusterInfo};
use toolbox_engine::{Clock, Exit, Redactor, Report, Why};
use toolbox_rehearsal::scenario::{Fault, Scenario, ScenarioError};
use toolbox_rehearsal::{FloorRequest, World};

use super::own::RehearseArgs;
use super::run::{Context, Finished, Rehearsal, Stage, verb};
use super::signals::Signals;
use super::verb::{FloorJob, Verb};
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
    let named = Scenario::embedded_names().any(|name| name == args.scenario);
    let looks_like_a_file = args.scenario.contains(['/', '.']);
    let scenario = if named || !looks_like_a_file {
        Scenario::embedded(&args.scenario)
    } else {
        let text = read_file(Path::new(&args.scenario), "scenario")?;
        Scenario::from_yaml(&args.scenario, &text)
    };
    let scenario = scenario.map_err(|error| wrong(&args.scenario, &error))?;
    let faults: Result<Vec<Fault>, ScenarioError> = args.faults.iter().map(|name| name.parse()).collect();
    let faults = faults.map_err(|error| wrong("--fault", &error))?;
    Ok(scenario.with_faults(&faults))
}

fn wrong(file: &str, error: &ScenarioError) -> Why {
    let mut problem = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        problem = format!("{problem}: {source}");
    }
    let help = match error {
        ScenarioError::UnknownScenario { .. } => "name one of them, or a file (with a `/` or `.` in its name)",
        ScenarioError::UnknownFault { .. } => "see them with --list-faults",
        _ => "correct the scenario",
    };
    ConfigError::file(file, problem).help(help).into()
}

/// Says what is simulated.
pub(crate) fn label(args: &RehearseArgs, scenario: &Scenario) -> String {
    let name = if scenario.name.is_empty() { &args.scenario } else { &scenario.name };
    let faults = if scenario.faults.is_empty() {
        "no faults".to_owned()
    } else {
        format!("faults {}", scenario.faults.join(", "))
    };
    format!("scenario {name}, {faults}, seed {}", args.seed)
}

/// Runs a verb against a new simulated cluster. The runtime must be single-threaded and paused; no child process and
/// no blocking work may run in it, because time jumps whenever nothing else is to be done.
pub(crate) async fn rehearse(
    context: &Context<'_>,
    args: &RehearseArgs,
    scenario: Scenario,
    asked: Box<dyn Verb>,
    redactor: &Redactor,
) -> Finished {
    let begin = BEGIN.parse().expect("invariant: the constant is a time");
    let clock = Clock::starting_at(begin);
    let label = label(args, &scenario);
    let (version, openshift) = (scenario.kubernetes.clone(), scenario.openshift.clone());
    let world = match World::start(scenario, args.seed, clock.clone()).await {
        Ok(world) => std::rc::Rc::new(world),
        Err(error) => {
            let mut problem = error.to_string();
            if let Some(source) = std::error::Error::source(&error) {
                problem = format!("{problem}: {source}");
            }
            let why: Why = ConfigError::file(args.scenario.as_str(), problem).into();
            super::output::complain(&format!("error: {why}\nnext: {}", why.next));
            return Finished { exit: Exit::Configuration, answer: None, why: Some(why), run_dir: None };
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
    let cluster = Cluster::from_client(world.client(), info, clock.clone());
    let floors = world.clone();
    let stage = Stage {
        clock,
        rehearsal: Some(Rehearsal { label, seed: args.seed, floor: Box::new(move |job| floors.floor(&request(job))) }),
    };
    let signals = Signals::default();
    let connecting = async { Ok(cluster) };
    tokio::select! {
        biased;
        // First, so that a signal is heard before the first step runs.
        () = signals.listen() => unreachable(),
        finished = verb(context, &stage, &signals, asked, redactor, connecting) => finished,
    }
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
