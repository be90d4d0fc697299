//! Upgrades by OLM: one version after the other, as far as was asked for and not beyond.

use toolbox_cluster::olm::steps::{InstallSpec, install};
use toolbox_cluster::olm::{PackageRef, Wish};
use toolbox_cluster::{Cluster, ClusterInfo, Object, Query, kinds};
use toolbox_engine::event::Ended;
use toolbox_engine::plan::{After, Outcome, RunOptions, run};
use toolbox_engine::{Clock, Exit, Plan};
use toolbox_rehearsal::{Scenario, World};

const NS: &str = "nvidia-gpu-operator";

struct Olm {
    cluster: Cluster,
    clock: Clock,
    _world: World,
}

fn csv(version: &str) -> String {
    format!("gpu-operator-certified.v{version}")
}

impl Olm {
    async fn new() -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let world = World::start(Scenario::embedded("default").unwrap(), 3, clock.clone()).await.unwrap();
        let cluster = Cluster::from_client(world.client(), ClusterInfo::default(), clock.clone());
        Self { cluster, clock, _world: world }
    }

    async fn install(&self, channel: &str, version: &str) -> Outcome {
        let package = PackageRef::new("gpu-operator-certified", "certified-operators");
        let wish = Wish { channel: Some(channel.to_owned()), version: Some(version.to_owned()) };
        let spec = InstallSpec { wish, ..InstallSpec::new("gpu", "GPU Operator", package) };
        let mut plan = Plan::new("test");
        install(&mut plan, &self.cluster, spec, After::nothing());
        run(plan, RunOptions::new(self.clock.clone())).await
    }

    async fn done(&self, channel: &str, version: &str) {
        let outcome = self.install(channel, version).await;
        assert_eq!(outcome.exit, Exit::Done, "{channel} {version}: {:?}", outcome.why);
    }

    async fn list(&self, query: Query) -> Vec<Object> {
        self.cluster.list(&query).await.unwrap()
    }

    /// Whether the plan of each version was approved, in OLM's order.
    async fn plans(&self) -> Vec<(String, bool)> {
        let mut plans = self.list(Query::within(&kinds::INSTALL_PLAN, NS)).await;
        plans.sort_by_key(|plan| plan.number("/spec/generation"));
        let told = plans.iter().map(|plan| {
            let csv = plan.text("/spec/clusterServiceVersionNames/0").unwrap_or_default();
            (csv.to_owned(), plan.flag("/spec/approved") == Some(true))
        });
        told.collect()
    }

    async fn csvs(&self) -> Vec<(String, String)> {
        let csvs = self.list(Query::within(&kinds::CSV, NS)).await;
        csvs.iter()
            .map(|csv| (csv.name().to_owned(), csv.text("/status/phase").unwrap_or_default().to_owned()))
            .collect()
    }
}

fn approved(versions: &[&str]) -> Vec<(String, bool)> {
    versions.iter().map(|version| (csv(version), true)).collect()
}

#[tokio::test(start_paused = true)]
async fn every_plan_on_the_way_is_approved_and_the_last_version_runs() {
    let olm = Olm::new().await;
    olm.done("stable", "1.9.1").await;
    olm.done("stable", "1.11.0").await;
    assert_eq!(olm.plans().await, approved(&["1.9.1", "1.10.0", "1.10.1", "1.11.0"]));
    olm.clock.sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(olm.csvs().await, [(csv("1.11.0"), "Succeeded".to_owned())]);
    let deployments = olm.list(Query::within(&kinds::DEPLOYMENT, NS)).await;
    assert!(deployments.iter().any(|one| one.label("olm.owner") == Some(&csv("1.11.0"))), "{deployments:?}");
    let again = olm.install("stable", "1.11.0").await;
    assert!(again.steps.iter().all(|step| !matches!(step.ended, Ended::Changed { .. })), "{:?}", again.steps);
}

#[tokio::test(start_paused = true)]
async fn a_version_beyond_what_was_asked_for_is_not_approved() {
    let olm = Olm::new().await;
    olm.done("stable", "1.9.1").await;
    olm.done("stable", "1.10.1").await;
    olm.clock.sleep(std::time::Duration::from_secs(600)).await;
    let mut plans = approved(&["1.9.1", "1.10.0", "1.10.1"]);
    plans.push((csv("1.11.0"), false));
    assert_eq!(olm.plans().await, plans);
    assert_eq!(olm.csvs().await, [(csv("1.10.1"), "Succeeded".to_owned())]);
    // The one that waits is the first step of the next upgrade, or the whole of it.
    olm.done("stable", "1.11.0").await;
    assert_eq!(olm.plans().await, approved(&["1.9.1", "1.10.0", "1.10.1", "1.11.0"]));
}

#[tokio::test(start_paused = true)]
async fn a_channel_without_the_versions_between_is_told_from_a_slow_one() {
    let olm = Olm::new().await;
    olm.done("v1.9", "1.9.1").await;
    let before = olm.clock.elapsed().as_secs();
    let outcome = olm.install("v1.11", "1.11.0").await;
    let why = outcome.why.unwrap();
    assert_eq!((outcome.exit, why.code.as_ref()), (Exit::Failed, "no-upgrade-path"), "{why}");
    assert_eq!(
        why.to_string(),
        format!(
            "Subscription/{NS}/gpu-operator-certified: OLM finds no upgrade from {} to {} in channel `v1.11`",
            csv("1.9.1"),
            csv("1.11.0")
        )
    );
    assert!(olm.clock.elapsed().as_secs() - before < 240, "long before the deadline");
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_for_a_version_of_another_channel_is_not_approved() {
    let olm = Olm::new().await;
    olm.done("v1.10", "1.10.0").await;
    olm.clock.sleep(std::time::Duration::from_secs(60)).await;
    let outcome = olm.install("v1.11", "1.11.0").await;
    let why = outcome.why.unwrap();
    assert_eq!((outcome.exit, why.code.as_ref()), (Exit::Failed, "wrong-plan"), "{why}");
    assert_eq!(olm.plans().await, [(csv("1.10.0"), true), (csv("1.10.1"), false)]);
}
