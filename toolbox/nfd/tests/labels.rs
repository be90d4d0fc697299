//! The label verbs on the simulated cluster.

use tool_nfd::{DeploySpec, LabelSpec, Labels};
use toolbox_core::engine::{Exit, FailureVerdict};
use toolbox_core::{Verb, VerbEnv};
use toolbox_testkit::{Ran, Rehearsed};

async fn run(rehearsed: &Rehearsed, verb: impl Verb) -> Ran {
    let plan = Box::new(verb).plan(&VerbEnv::new(rehearsed.cluster.clone())).expect("the verb has a plan");
    rehearsed.run(plan).await
}

#[tokio::test(start_paused = true)]
async fn probes_answer_no_and_then_yes() {
    let rehearsed = Rehearsed::new("gpu-node", &[]).await;
    for labels in [Labels::Any, Labels::Gpu] {
        let ran = run(&rehearsed, LabelSpec::has(labels)).await;
        assert_eq!(ran.outcome.exit, Exit::Failed);
        assert_eq!(ran.why().code, "nfd-not-installed");
        assert!(ran.seconds < 1.0);
        assert!(ran.files.contains_key("nodes.labels"));
    }
    run(&rehearsed, DeploySpec::default()).await;
    let ran = run(&rehearsed, LabelSpec::wait(Labels::Any)).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    let ran = run(&rehearsed, LabelSpec::wait(Labels::Gpu)).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    assert_eq!(ran.answer().lines().count(), 1);
    for labels in [Labels::Any, Labels::Gpu] {
        let ran = run(&rehearsed, LabelSpec::has(labels)).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_gpu_the_wait_ends_with_what_nfd_has_seen() {
    for (scenario, fault) in [("default", None), ("gpu-node", Some("no-gpu-label"))] {
        let faults: Vec<&str> = fault.into_iter().collect();
        let rehearsed = Rehearsed::new(scenario, &faults).await;
        run(&rehearsed, DeploySpec::default()).await;
        let ran = run(&rehearsed, LabelSpec::wait(Labels::Gpu)).await;
        assert_eq!(ran.outcome.exit, Exit::TimedOut);
        let why = ran.why();
        assert_eq!((why.code.as_ref(), why.verdict), ("no-gpu-label", FailureVerdict::Infrastructure));
        assert!(why.cause.starts_with("no NVIDIA GPU on any of the"), "{why}");
        assert!(why.evidence.iter().any(|evidence| evidence.label.starts_with("DaemonSet")), "{:?}", why.evidence);
        assert!((300.0..301.0).contains(&ran.seconds), "{}", ran.seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn any_spelling_counts() {
    for class in ["0302", "0300"] {
        let rehearsed = Rehearsed::with("gpu-node", &[], |scenario| {
            for kind in scenario.instance_types.values_mut().filter(|kind| kind.gpus > 0) {
                class.clone_into(&mut kind.pci_class);
            }
            for bundle in scenario.catalogs.iter_mut().flat_map(|catalog| &mut catalog.packages).flat_map(|package| &mut package.bundles) {
                for example in &mut bundle.examples {
                    if example["kind"] == "NodeFeatureDiscovery" {
                        example["spec"]["workerConfig"]["configData"] =
                            "sources:\n  pci:\n    deviceClassWhitelist: [\"03\"]\n    deviceLabelFields: [class, vendor]\n".into();
                    }
                }
            }
        })
        .await;
        run(&rehearsed, DeploySpec::default()).await;
        let ran = run(&rehearsed, LabelSpec::wait(Labels::Gpu)).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{class}: {:?}", ran.outcome.why);
    }
}
