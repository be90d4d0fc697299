//! Nothing that the API does to us ends or falsifies a wait.

use std::time::Duration;

use jiff::SignedDuration;
use toolbox_cluster::{Cluster, ClusterError, ClusterInfo, Patience, Query, conditions, kinds};
use toolbox_engine::{Exit, ObjectRef, StepCx, Verdict, Why};
use toolbox_rehearsal::{Fault, FaultRule};

use crate::common::{Stage, until_map};

/// A trouble that begins while a wait is on, and how much later than the change the wait may end.
type Trouble = (&'static str, fn(&Stage), f64);

const TROUBLES: &[Trouble] = &[
    ("expired", |stage| stage.api.faults().expire_watches(""), 0.1),
    ("cut", |stage| stage.api.faults().cut_watches(""), 0.1),
    ("broken", |stage| stage.api.faults().break_watches(""), 0.1),
    (
        "compacted",
        |stage| {
            stage.api.faults().break_watches("");
            stage.api.compact();
        },
        0.1,
    ),
    ("away", |stage| stage.away(Duration::from_secs(40)), 45.0),
    (
        "throttled",
        |stage| {
            stage.fault(FaultRule::new(Fault::TooManyRequests { retry_after: 7 }).times(3));
            stage.api.faults().cut_watches("");
        },
        22.0,
    ),
    (
        "unavailable",
        |stage| {
            stage.fault(FaultRule::new(Fault::Status(503)).lasting(Duration::from_secs(20)));
            stage.api.faults().expire_watches("");
        },
        25.0,
    ),
    (
        "internal errors",
        |stage| {
            stage.fault(FaultRule::new(Fault::Status(500)).times(5));
            stage.api.faults().expire_watches("");
        },
        10.0,
    ),
    (
        "stalled",
        |stage| {
            stage.fault(FaultRule::new(Fault::Stalled).times(1));
            stage.api.faults().cut_watches("");
        },
        62.0,
    ),
    (
        "refused for a moment",
        |stage| {
            stage.fault(FaultRule::new(Fault::Unauthorized).lasting(Duration::from_secs(5)));
            stage.api.faults().expire_watches("");
        },
        10.0,
    ),
    (
        "expired lists",
        |stage| {
            stage.fault(FaultRule::new(Fault::Expired).times(2));
            stage.api.faults().expire_watches("");
        },
        2.0,
    ),
    (
        "half an event",
        |stage| {
            stage.api.faults().halve_events("");
            stage.fault(FaultRule::new(Fault::HalfEvent).times(3));
        },
        2.0,
    ),
    (
        "a storm of 410",
        |stage| {
            stage.api.faults().limit_pages(Some(1));
            let lasts = Duration::from_secs(60);
            stage.fault(FaultRule::new(Fault::Expired).verb("watch").lasting(lasts));
            stage.fault(FaultRule::new(Fault::Expired).verb("list").query("continue=").lasting(lasts));
            stage.api.faults().expire_watches("");
        },
        6.0,
    ),
    ("restart", |stage| stage.api.faults().restart(Duration::from_secs(0)), 1.0),
];

#[tokio::test(start_paused = true)]
async fn a_change_during_any_trouble_is_seen_soon_after() {
    for (name, begin, late) in TROUBLES {
        let stage = Stage::new();
        stage.make_map("a", "before").await;
        stage.make_map("b", "other").await;
        let wait = stage.step(|cx, cluster| async move { until_map(&cx, &cluster, "a", "after").await });
        let happen = async {
            stage.sleep(10).await;
            begin(&stage);
            stage.sleep(1).await;
            stage.set_map("a", "after").await;
        };
        let (done, ()) = tokio::join!(wait, happen);
        let at = done.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!((11.0..=11.0 + late).contains(&at), "{name}: seen at {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_nobody_saw_is_seen_after_every_trouble() {
    for (name, begin, _) in TROUBLES {
        let stage = Stage::new();
        let uid = stage.make_map("a", "v").await["metadata"]["uid"].as_str().unwrap().to_owned();
        let meant = ObjectRef::new("v1", "ConfigMap", Some("default"), "a").with_uid(uid);
        let wait = stage.step(|cx, cluster| async move {
            let maps = cluster.watch(Query::within(&kinds::CONFIG_MAP, "default"));
            cx.wait(maps.changes(), || maps.judge_absence(|maps| conditions::gone(maps, &meant))).await
        });
        let happen = async {
            stage.sleep(10).await;
            begin(&stage);
            stage.drop_map("a").await;
            // Another object of the name does not hide that the one meant is gone.
            stage.make_map("a", "v").await;
        };
        let (done, ()) = tokio::join!(wait, happen);
        done.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(stage.clock.elapsed().as_secs() >= 10, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_before_is_not_believed_while_the_api_is_away() {
    let stage = Stage::new();
    stage.make_map("a", "ready").await;
    let maps = stage.maps();
    let judge = || maps.judge(|maps| Verdict::Done(maps.len()));
    let _ = maps.changes();
    stage.sleep(1).await;
    assert_eq!(judge(), Verdict::Done(1));
    stage.away(Duration::from_secs(30));
    stage.drop_map("a").await;
    stage.sleep(10).await;
    let Verdict::Pending(why) = judge() else { panic!() };
    assert_eq!(why.code, "api-unreachable");
    assert!(why.cause.starts_with("the API server is not reachable since 00:00:01Z: "), "{why}");
    stage.sleep(30).await;
    assert_eq!(judge(), Verdict::Done(0));
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_time_runs_out_while_the_api_is_away_says_so() {
    let stage = Stage::new();
    let wait = stage.step(|cx: StepCx, cluster| async move { until_map(&cx, &cluster, "a", "v").await });
    let happen = async {
        stage.sleep(10).await;
        stage.api.faults().restart(Duration::from_secs(3600));
    };
    let (done, ()) = tokio::join!(wait, happen);
    let why = done.unwrap_err();
    assert_eq!((why.exit, &*why.code), (Exit::TimedOut, "api-unreachable"));
}

#[tokio::test(start_paused = true)]
async fn an_aggregated_api_that_is_down_holds_up_its_own_kinds_only() {
    let stage = Stage::new();
    let down = FaultRule::new(Fault::Status(503)).path("packages.operators.coreos.com");
    stage.fault(down.lasting(Duration::from_secs(90)));
    let packages = stage.cluster.watch(Query::all(&kinds::PACKAGE_MANIFEST));
    let _ = packages.changes();
    stage.make_map("a", "v").await;
    stage.step(|cx, cluster| async move { until_map(&cx, &cluster, "a", "v").await }).await.unwrap();
    assert!(stage.clock.elapsed().as_secs() < 1);
    let why = packages.trouble().unwrap();
    assert!(why.cause.starts_with("packagemanifests.packages.operators.coreos.com cannot be read since"), "{why}");
    stage.sleep(100).await;
    assert_eq!(packages.trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_for_good_ends_the_wait() {
    let stage = Stage::new();
    stage.api.deny("tbx", toolbox_rehearsal::api::Deny::verb("list", "", "configmaps"));
    let wait = stage.step(|cx, cluster| async move { until_map(&cx, &cluster, "a", "v").await });
    let why = wait.await.unwrap_err();
    assert_eq!((why.exit, &*why.code), (Exit::Access, "forbidden"));
    assert!((15..25).contains(&stage.clock.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_for_good_end_the_wait() {
    let stage = Stage::new();
    stage.fault(FaultRule::new(Fault::Unauthorized));
    let wait = stage.step(|cx, cluster| async move { until_map(&cx, &cluster, "a", "v").await });
    let why: Why = wait.await.unwrap_err();
    assert_eq!((why.exit, &*why.code), (Exit::Access, "not-authenticated"));
    let error = stage.cluster.list(&Query::all(&kinds::NODE)).await.unwrap_err();
    assert!(matches!(error, ClusterError::Unauthorized { user: Some(user), .. } if user == "tbx"));
}

#[tokio::test(start_paused = true)]
async fn a_single_request_has_a_budget() {
    let stage = Stage::new();
    stage.fault(FaultRule::new(Fault::ConnectionRefused).lasting(Duration::from_secs(60)));
    stage.cluster.list(&Query::all(&kinds::NODE)).await.unwrap();
    assert!((60..70).contains(&stage.clock.elapsed().as_secs()));
    stage.fault(FaultRule::new(Fault::ConnectionRefused));
    let started = stage.clock.elapsed();
    let error = stage.cluster.get(&kinds::NODE, None, "x").await.unwrap_err();
    assert!(matches!(error, ClusterError::Unreachable { .. }));
    assert_eq!(Why::from(error).exit, Exit::Access);
    let spent = stage.clock.elapsed().saturating_sub(started).as_secs();
    assert!((110..=120).contains(&spent), "{spent}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_named_soon_after_the_budget() {
    let stage = Stage::new();
    stage.fault(FaultRule::new(Fault::Stalled));
    let error = stage.cluster.get(&kinds::NODE, None, "x").await.unwrap_err();
    assert!(matches!(&error, ClusterError::Unreachable { last, .. } if last.contains("no answer")), "{error}");
    assert!(stage.cluster.traffic().requests["get"] >= 3, "{:?}", stage.cluster.traffic());
    assert!(stage.clock.elapsed() <= Duration::from_secs(131), "{:?}", stage.clock.elapsed());
}

/// A cluster whose credentials and trust can be had anew.
fn renewable(stage: &Stage) -> Cluster {
    let api = stage.api.clone();
    let info = ClusterInfo { user: Some("tbx".to_owned()), ..ClusterInfo::default() };
    Cluster::from_clients(move || api.client_as("tbx"), info, stage.clock.clone(), Patience::default())
}

#[tokio::test(start_paused = true)]
async fn a_new_authority_is_looked_for_in_the_configuration() {
    let stage = Stage::new();
    let cluster = renewable(&stage);
    cluster.list(&Query::all(&kinds::NODE)).await.unwrap();
    stage.api.faults().rotate_certificates(true);
    cluster.list(&Query::all(&kinds::NODE)).await.unwrap();
    stage.api.faults().rotate_certificates(false);
    let error = cluster.list(&Query::all(&kinds::NODE)).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Certificate { .. }), "{error}");
    assert_eq!(stage.clock.elapsed(), Duration::ZERO, "no time is lost with what does not pass");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_days_off_is_named_and_one_that_is_minutes_off_is_allowed_for() {
    let stage = Stage::new();
    for days in [3, -3] {
        stage.api.faults().clients_are_late_by(SignedDuration::from_hours(24 * days));
        let error = stage.cluster.get(&kinds::NODE, None, "x").await.unwrap_err();
        assert!(matches!(&error, ClusterError::OutOfDate { .. }), "{error}");
        let why = Why::from(error);
        assert_eq!((why.exit, &*why.code), (Exit::Access, "certificate-out-of-date"));
        assert!(why.next.contains("clock"), "{}", why.next);
    }
    stage.api.faults().clients_are_late_by(SignedDuration::ZERO);
    for minutes in [7, -7, 0] {
        let clock = stage.clock.ahead_by(SignedDuration::from_mins(minutes));
        let cluster = Cluster::from_client(stage.api.client_as("tbx"), ClusterInfo::default(), clock.clone());
        assert_eq!(cluster.now(), clock.now(), "nothing is known yet");
        cluster.list(&Query::all(&kinds::NODE)).await.unwrap();
        let off = cluster.now().duration_since(stage.clock.now()).abs();
        assert!(off <= SignedDuration::from_secs(1), "{minutes}: {off}");
    }
}
