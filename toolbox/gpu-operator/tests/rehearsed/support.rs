//! What the tests of this tool share, on top of the rehearsed cluster.

use std::time::Duration;

use toolbox_core::cluster::kinds;
use toolbox_core::cluster::olm::PackageRef;
use toolbox_core::cluster::olm::steps::{InstallSpec, InstanceSpec, install, instance};
use toolbox_core::engine::event::Ended;
use toolbox_core::engine::plan::After;
use toolbox_core::engine::{Exit, Plan};
use toolbox_core::{EnvMap, Verb, VerbEnv};
use toolbox_testkit::{Ran, Rehearsed};

/// Runs a verb, whatever becomes of it.
pub(crate) async fn run(rehearsed: &Rehearsed, verb: impl Verb + 'static) -> Ran {
    let plan = Box::new(verb).plan(&VerbEnv::new(rehearsed.cluster.clone()));
    rehearsed.run(plan.expect("the verb has a plan")).await
}

/// Runs a verb with variables in the environment, whatever becomes of it.
pub(crate) async fn run_in(rehearsed: &Rehearsed, verb: impl Verb + 'static, variables: &[(&str, &str)]) -> Ran {
    let env = EnvMap::new(variables.iter().copied());
    let plan = Box::new(verb).plan(&VerbEnv::new(rehearsed.cluster.clone()).with_env(env));
    rehearsed.run(plan.expect("the verb has a plan")).await
}

/// Runs a verb that must get done.
pub(crate) async fn done(rehearsed: &Rehearsed, verb: impl Verb + 'static) -> Ran {
    let ran = run(rehearsed, verb).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    ran
}

/// What each step changed, in words.
pub(crate) fn changes(ran: &Ran) -> Vec<String> {
    let steps = ran.outcome.steps.iter();
    steps
        .filter_map(|step| match &step.ended {
            Ended::Changed { what } => Some(format!("{}: {what}", step.id)),
            _ => None,
        })
        .collect()
}

/// A file of the run directory, as text.
pub(crate) fn file(ran: &Ran, name: &str) -> String {
    let found = ran.files.get(name);
    let found = found.unwrap_or_else(|| panic!("no file {name} among {:?}", ran.files.keys()));
    String::from_utf8_lossy(found).into_owned()
}

/// Installs node feature discovery and gives it the time to label the nodes.
pub(crate) async fn with_nfd(rehearsed: Rehearsed) -> Rehearsed {
    let mut plan = Plan::new("nfd");
    let package = PackageRef::new("nfd", "redhat-operators");
    let spec = InstallSpec { fallback_namespace: "openshift-nfd", ..InstallSpec::new("nfd", "NFD", package) };
    let installed = install(&mut plan, &rehearsed.cluster, spec, After::nothing());
    let spec = InstanceSpec {
        id: "nfd",
        title: "NFD's instance",
        kind: kinds::NODE_FEATURE_DISCOVERY,
        change: None,
        deadline: Duration::from_secs(300),
    };
    let _ = instance(&mut plan, &rehearsed.cluster, spec, &installed);
    let ran = rehearsed.run(plan).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    rehearsed.clock.sleep(Duration::from_secs(120)).await;
    rehearsed
}
