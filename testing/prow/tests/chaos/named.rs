//! The faults that can be asked for by name on the command line, on the whole program: lease, run directory, exit code.

use std::time::Duration;

use testing_prow::ProwCommand;
use toolbox_core::cli::{Embedded, EmbeddedEnd};
use toolbox_core::cluster::{Cluster, ClusterInfo, Patience};
use toolbox_core::engine::plan::Interrupt;
use toolbox_core::engine::{Clock, Exit};
use toolbox_core::{App, EnvMap};
use toolbox_testkit::Rehearsed;

/// The program on this cluster, on a machine with this clock.
async fn program_at(cluster: Cluster, clock: Clock) -> EmbeddedEnd {
    let app = App::new("tbx").noun::<ProwCommand>("prow", &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().display().to_string();
    let words = ["tbx", "prow", "gpu-operator", "test_operatorhub", "--artifact-dir", &dir];
    let env = EnvMap::default();
    Embedded { app: &app, env: &env, cluster, clock, interrupt: Interrupt::default() }.run(&words).await
}

async fn program(fault: &str) -> EmbeddedEnd {
    let rehearsed = Rehearsed::new("default", &[fault]).await;
    program_at(rehearsed.another(), rehearsed.clock.clone()).await
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_lived_through() {
    let names = [
        "server-errors",
        "connection-resets",
        "answers-lost",
        "requests-stall",
        "slow-lists",
        "half-events",
        "history-gone",
        "crash-in-write",
        "write-conflicts",
        "token-renewed",
        "certificate-rotated",
        "clock-skew",
    ];
    for name in names {
        let end = program(name).await;
        assert_eq!(end.exit, Exit::Done, "{name}: {}", end.said);
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_named() {
    for (name, code) in [
        ("token-expires", "not-authenticated"),
        ("certificate-untrusted", "certificate-not-trusted"),
        ("clock-wrong", "certificate-out-of-date"),
    ] {
        let end = program(name).await;
        let code_said = end.why.as_ref().map(|why| why.code.to_string());
        assert_eq!((end.exit, code_said.as_deref()), (Exit::Access, Some(code)), "{name}: {}", end.said);
        assert!(end.said.contains("next: "), "{name}: {}", end.said);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_on_a_machine_whose_clock_is_wrong_keeps_its_lease() {
    for minutes in [-10, 10] {
        let rehearsed = Rehearsed::new("default", &[]).await;
        let clock = rehearsed.clock.ahead_by(jiff::SignedDuration::from_mins(minutes));
        let api = rehearsed.world().api().clone();
        let wrong =
            Cluster::from_clients(move || api.client(), ClusterInfo::default(), clock.clone(), Patience::default());
        let second = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            program_at(rehearsed.another(), rehearsed.clock.clone()).await
        };
        let end = tokio::select! {
            biased;
            end = program_at(wrong, clock) => panic!("the first run is over: {}", end.said),
            end = second => end,
        };
        assert_eq!(end.why.as_ref().map(|why| why.code.as_ref()), Some("another-run"), "{minutes}: {}", end.said);
        // A run that is gone holds nothing for long, whatever its clock said.
        tokio::time::sleep(Duration::from_secs(61)).await;
        let end = program_at(rehearsed.another(), rehearsed.clock.clone()).await;
        assert_eq!(end.exit, Exit::Done, "{minutes}: {}", end.said);
    }
}
