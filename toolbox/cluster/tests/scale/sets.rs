//! Which machine sets are used, made, refused or left alone.

use serde_json::json;
use tool_cluster::ScaleSpec;
use toolbox_core::cluster::machines::{self, NAMESPACE, SET_LABEL};
use toolbox_core::cluster::{Object, kinds};
use toolbox_core::engine::Exit;
use toolbox_testkit::{MachineSet, Platform, Rehearsed};

use crate::{DERIVED_A, plan, replicas, scale};

/// Names of all machine sets.
async fn names(rehearsed: &Rehearsed) -> Vec<String> {
    rehearsed.all(&kinds::MACHINE_SET).await.iter().map(|set| set.name().to_owned()).collect()
}

fn file(ran: &toolbox_testkit::Ran, name: &str) -> Object {
    let content = ran.files.get(name).expect("the run leaves this file");
    Object::new(serde_json::from_slice(content).expect("the file is JSON"))
}

/// A set whose selector or template still has the base's name makes machines without end, or adopts the base's.
#[tokio::test(start_paused = true)]
async fn a_derived_set_has_one_name_throughout_and_makes_only_its_own_machines() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        let base = &mut scenario.machine_sets[0];
        for (name, value) in [
            ("machine.openshift.io/cluster-api-autoscaler-node-group-min-size", "1"),
            ("machine.openshift.io/cluster-api-autoscaler-node-group-max-size", "9"),
            ("machine.openshift.io/GPU", "0"),
            ("machine.openshift.io/vCPU", "4"),
        ] {
            base.annotations.insert(name.to_owned(), value.to_owned());
        }
    })
    .await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    // Made with no machine, then scaled.
    let (source, made) = (file(&ran, "source_machineset.json"), file(&ran, "new_machineset.json"));
    assert_eq!((source.name(), made.name()), ("demo-x7k2p-worker-a", DERIVED_A));
    assert_eq!(made.number("/spec/replicas"), Some(0));

    let set = rehearsed.object(&kinds::MACHINE_SET, Some(NAMESPACE), DERIVED_A).await;
    for labels in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        assert_eq!(set.at(labels).unwrap()[SET_LABEL], DERIVED_A, "{labels}");
    }
    for gone in ["/metadata/ownerReferences", "/metadata/annotations/machine.openshift.io~1GPU"] {
        assert_eq!(made.at(gone), None, "{gone}");
    }
    assert!(!made.value().to_string().contains("autoscaler"), "{}", made.value());
    rehearsed.clock.sleep(std::time::Duration::from_secs(600)).await;
    let machines = rehearsed.all(&kinds::MACHINE).await;
    let of = |set: &str| machines.iter().filter(|machine| machines::set_of(machine) == Some(set)).count();
    assert_eq!((of(DERIVED_A), of("demo-x7k2p-worker-a"), machines.len()), (1, 1, 4));
}

/// `machineset` also means Cluster API's, of which there are none, or which alone counts.
#[tokio::test(start_paused = true)]
async fn a_set_whose_cluster_api_copy_counts_is_refused_and_not_changed() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let mirrored = json!({"spec": {"authoritativeAPI": "ClusterAPI"}});
    rehearsed.somebody_changes(&kinds::MACHINE_SET, Some(NAMESPACE), "demo-x7k2p-gpu-a", mirrored).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 2).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    let why = ran.why();
    assert_eq!(why.code, "cluster-api-authoritative", "{why}");
    assert_eq!(why.object.api_version, "machine.openshift.io/v1beta1");
    assert!(why.next.contains("machinesets.cluster.x-k8s.io"), "{}", why.next);
    assert_eq!(ran.changed(), [""; 0]);
    assert_eq!(replicas(&rehearsed, "demo-x7k2p-gpu-a").await, 1);
}

/// Where machines have CPUs and memory and no type, a copy with an instance type would be nonsense.
#[tokio::test(start_paused = true)]
async fn a_platform_without_instance_types_is_refused_by_its_kind_and_nothing_is_made() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| scenario.platform = Platform::Vsphere).await;
    let before = names(&rehearsed).await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    assert_eq!(ran.why().code, "no-instance-type", "{}", ran.why());
    assert!(ran.why().cause.contains("VSphereMachineProviderSpec"), "{}", ran.why());
    assert_eq!(names(&rehearsed).await, before);
    let none = scale(&rehearsed, "g4dn.xlarge", 0).await;
    assert_eq!((none.outcome.exit, none.changed().len()), (Exit::Done, 0));
}

/// Never a part of the total reported as the whole.
#[tokio::test(start_paused = true)]
async fn machines_in_several_sets_are_neither_moved_nor_topped_up_without_force() {
    let rehearsed = Rehearsed::with("gpu-node", &[], |scenario| {
        let mut other = scenario.machine_sets.last().expect("the scenario has sets").clone();
        "demo-x7k2p-gpu-b".clone_into(&mut other.name);
        (other.zone, other.replicas) = ("us-test-1b".to_owned(), Some(2));
        scenario.machine_sets.push(other);
    })
    .await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 6).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    let why = ran.why();
    assert_eq!(why.code, "needs-force", "{why}");
    assert!(why.cause.contains("demo-x7k2p-gpu-b (2), demo-x7k2p-gpu-a (1)"), "{why}");
    assert!(why.next.contains("--force"), "{}", why.next);
    let sets = ["demo-x7k2p-gpu-a", "demo-x7k2p-gpu-b"];
    assert_eq!((replicas(&rehearsed, sets[0]).await, replicas(&rehearsed, sets[1]).await), (1, 2));
    // All of one set is the whole.
    let all = scale(&rehearsed, "g4dn.xlarge", 3).await;
    assert_eq!((all.outcome.exit, all.answer().lines().count()), (Exit::Done, 3), "{:?}", all.outcome.why);
    assert_eq!(all.changed(), [""; 0]);
}

/// The name is also a label and a prefix of machines' names, and a type has capitals and underscores.
#[tokio::test(start_paused = true)]
async fn a_long_name_is_cut_the_same_way_each_time() {
    const INFRA: &str = "averylongclustername-for-a-nightly-job-x7k2p";
    let rehearsed = Rehearsed::with("azure", &[], |scenario| {
        for set in &mut scenario.machine_sets {
            set.name = set.name.replace("demo-x7k2p-worker-testregion", &format!("{INFRA}-w"));
        }
        INFRA.clone_into(&mut scenario.infra);
    })
    .await;
    let ran = scale(&rehearsed, "Standard_NC4as_T4_v3", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    let made = file(&ran, "new_machineset.json").name().to_owned();
    assert!(made.starts_with(INFRA) && made.len() <= 57, "{made}");
    assert!(made.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{made}");
    let sets = names(&rehearsed).await;
    let again = scale(&rehearsed, "Standard_NC4as_T4_v3", 1).await;
    assert_eq!((again.outcome.exit, again.changed().len()), (Exit::Done, 0), "{:?}", again.outcome.why);
    assert_eq!(names(&rehearsed).await, sets);
}

/// Manifests that are kept in Git often leave replicas out: the API's default is one.
#[tokio::test(start_paused = true)]
async fn a_set_without_replicas_has_one() {
    let rehearsed = Rehearsed::with("gpu-node", &[], |scenario| {
        scenario.machine_sets.last_mut().expect("the scenario has sets").replicas = None;
    })
    .await;
    let ran = scale(&rehearsed, "g4dn.xlarge", 1).await;
    assert_eq!((ran.outcome.exit, ran.changed().len()), (Exit::Done, 0), "{:?}", ran.outcome.why);
}

/// A type edited on the set changes future machines only: the counters say that all is well.
#[tokio::test(start_paused = true)]
async fn machines_of_the_type_before_are_named() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let edited =
        json!({"spec": {"template": {"spec": {"providerSpec": {"value": {"instanceType": "g4dn.12xlarge"}}}}}});
    rehearsed.somebody_changes(&kinds::MACHINE_SET, Some(NAMESPACE), "demo-x7k2p-gpu-a", edited).await;
    let ran = scale(&rehearsed, "g4dn.12xlarge", 1).await;
    assert_eq!(ran.outcome.exit, Exit::Failed);
    let why = ran.why();
    assert_eq!(why.code, "wrong-instance-type", "{why}");
    assert!(why.cause.starts_with("1 of 1 machines is g4dn.xlarge"), "{why}");
    assert!(why.next.contains("kubectl delete machines.machine.openshift.io demo-x7k2p-gpu-a-"), "{}", why.next);
}

#[tokio::test(start_paused = true)]
async fn capitals_of_a_type_count() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    let ran = scale(&rehearsed, "G4DN.xlarge", 1).await;
    assert_eq!((ran.outcome.exit, ran.why().code.as_ref()), (Exit::Configuration, "unknown-instance-type"));
}

/// Who chose a base is told of the others; who did not, which zones are left.
#[tokio::test(start_paused = true)]
async fn the_bases_of_the_zones_that_were_not_tried_are_named() {
    let asked = |instance_type: &str| {
        let base = Some("demo-x7k2p-worker-a".to_owned());
        ScaleSpec { base, ..ScaleSpec::new(instance_type, 1) }
    };
    let others = "try another base: --base-machineset demo-x7k2p-worker-b (zone us-test-1b) | demo-x7k2p-worker-c (zone us-test-1c)";
    let rehearsed = Rehearsed::with("default", &["zone-out-of-stock"], |scenario| {
        // Another set of the same zone is no way out.
        let base = scenario.machine_sets[0].clone();
        scenario.machine_sets.push(MachineSet { name: "demo-x7k2p-worker-a2".to_owned(), ..base });
    })
    .await;
    let ran = rehearsed.run(plan(&rehearsed, asked("g4dn.xlarge"))).await;
    assert_eq!((ran.outcome.exit, ran.why().code.as_ref()), (Exit::Failed, "out-of-stock"));
    assert_eq!(ran.why().next, format!("run again later, or {others}"));
    // What a zone does not sell it will not sell later.
    let rehearsed = Rehearsed::new("default", &[]).await;
    let ran = rehearsed.run(plan(&rehearsed, asked("p2.xlarge"))).await;
    assert_eq!((ran.outcome.exit, ran.why().code.as_ref()), (Exit::Configuration, "type-not-offered"));
    assert_eq!(ran.why().next, others);
}
