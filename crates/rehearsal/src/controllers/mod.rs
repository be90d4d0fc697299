//! The simulated controllers: ordinary clients of the API, each of which could run against a real server.

mod kit;
mod machines;
mod namespace;
mod olm;
mod operators;
mod pods;
pub(crate) mod seeds;
mod workloads;

use tokio::task::JoinSet;

pub(crate) use kit::{Context, HandsOff, Live, identity};
pub(crate) use olm::PackageManifests;

use crate::api::PodLogs;
use crate::scenario::Platform;

/// Starts every controller; they end with the set.
pub(crate) fn start(context: &Context, logs: PodLogs, packages: PackageManifests) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let mut spawn = Spawner { tasks: &mut tasks, context };
    spawn.run(namespace::Namespaces::default());
    spawn.run(machines::Nodes);
    spawn.run(workloads::Deployments);
    spawn.run(workloads::ReplicaSets);
    spawn.run(workloads::DaemonSets);
    spawn.run(workloads::Jobs);
    spawn.run(pods::Scheduler::new());
    spawn.run(pods::Kubelet::new(logs));
    if context.scenario.openshift.is_empty() {
        return tasks;
    }
    if context.scenario.platform != Platform::None {
        spawn.run(machines::MachineSets);
        spawn.run(machines::Machines::new());
    }
    spawn.run(olm::Catalogs);
    spawn.run(packages);
    spawn.run(olm::OperatorGroups);
    spawn.run(olm::Subscriptions);
    spawn.run(olm::InstallPlans);
    spawn.run(olm::Csvs);
    spawn.run(operators::NfdOperator);
    spawn.run(operators::NfdWorkers);
    spawn.run(operators::GpuOperator);
    spawn.run(operators::DevicePlugins);
    tasks
}

struct Spawner<'a> {
    tasks: &'a mut JoinSet<()>,
    context: &'a Context,
}

impl Spawner<'_> {
    fn run<C: kit::Controller>(&mut self, controller: C) {
        self.tasks.spawn(kit::run(controller, self.context.clone()));
    }
}
