//! Each fault by name: the exit code, how soon after the terminal state the run knows, and what its first line says.

use std::time::Duration;

use testing_prow::OperatorHubFlow;
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::engine::event::Ended;
use toolbox_core::engine::plan::{Out, RunOptions, run};
use toolbox_core::engine::{Exit, Plan, Step, StepSpec, Verdict, Why};
use toolbox_core::{Verb, VerbEnv};
use toolbox_rehearsal::FloorRequest;
use toolbox_testkit::{Ran, Rehearsed};

const GPU: &str = "g4dn.xlarge";
const OPERATOR: &str = "nvidia-gpu-operator";

async fn job(rehearsed: &Rehearsed) -> Ran {
    let flow = OperatorHubFlow::new(None, None).expect("the flow has no arguments");
    let plan = Box::new(flow).plan(&VerbEnv::new(rehearsed.cluster.clone()));
    rehearsed.run(plan.expect("the flow has a plan")).await
}

/// Watches the cluster beside the job, over a connection of its own: when an object first was as `fits` says.
async fn seen(
    cluster: Cluster,
    rehearsed: &Rehearsed,
    query: Query,
    fits: impl Fn(&Object) -> bool + Send + Sync + 'static,
) -> f64 {
    let started = rehearsed.clock.elapsed();
    let mut plan = Plan::new("observer");
    let spec = StepSpec::wait("observer.seen", "the terminal state", Duration::from_secs(7200));
    let _: Out<()> = plan.step(spec, (), move |cx, ()| async move {
        let watched = cluster.watch(query);
        cx.wait(watched.changes(), || {
            watched.judge(|objects| {
                if objects.iter().any(&fits) {
                    Verdict::Done(())
                } else {
                    Verdict::Pending(Why::waiting(kinds::NODE.object(None, "x"), "not-yet", "not yet"))
                }
            })
        })
        .await?;
        Ok(Step::AlreadySo((), String::new()))
    });
    run(plan, RunOptions::new(rehearsed.clock.clone())).await;
    rehearsed.clock.elapsed().saturating_sub(started).as_secs_f64()
}

/// The job with a fault, and when the terminal state was reached.
async fn observed(
    fault: &str,
    query: Query,
    fits: impl Fn(&Object) -> bool + Send + Sync + 'static,
) -> (Ran, f64, Rehearsed) {
    let rehearsed = Rehearsed::new("default", &[fault]).await;
    let observer = rehearsed.another();
    let (ran, at) = tokio::join!(job(&rehearsed), seen(observer, &rehearsed, query, fits));
    (ran, at, rehearsed)
}

/// The failure says object, cause and next action, and came within a second of the terminal state.
#[track_caller]
fn told(ran: &Ran, exit: Exit, step: &str, terminal: f64, object: &str, words: &[&str]) {
    let why = ran.why();
    let first = why.to_string();
    assert_eq!(ran.outcome.exit, exit, "{first}");
    assert!(matches!(ran.ended(step), Ended::Failed { .. }), "{step}: {:?}", ran.ended(step));
    let known = ran.ended_at(step);
    assert!(known >= terminal - 1.0 && known <= terminal + 1.0, "{step} failed at {known}, terminal at {terminal}");
    says(why, object, words);
}

#[track_caller]
fn says(why: &Why, object: &str, words: &[&str]) {
    let first = why.to_string();
    assert!(!first.contains('\n'), "one line: {first}");
    assert!(first.starts_with(object), "{first}");
    for word in words {
        assert!(first.contains(word), "`{word}` is not in: {first}");
    }
    assert!(!why.next.trim().is_empty(), "{first}: no next action");
    assert!(!first.contains("timed out waiting for the condition"), "{first}");
}

#[tokio::test(start_paused = true)]
async fn quota_exhausted() {
    let failed = |machine: &Object| machine.text("/status/phase") == Some("Failed");
    let (ran, at, _) = observed("quota-exhausted", Query::all(&kinds::MACHINE), failed).await;
    let object = "Machine/openshift-machine-api/demo-x7k2p-worker-a--g4dn-xlarge-";
    told(&ran, Exit::Failed, "cluster.machines", at, object, &["quota", GPU, "vCPU"]);
}

#[tokio::test(start_paused = true)]
async fn zone_out_of_stock_takes_the_next_zone_at_once() {
    let failed = |machine: &Object| machine.text("/status/phase") == Some("Failed");
    let (ran, at, rehearsed) = observed("zone-out-of-stock", Query::all(&kinds::MACHINE), failed).await;
    assert_eq!(ran.outcome.exit, Exit::Done, "{:?}", ran.outcome.why);
    let second = "demo-x7k2p-worker-b--g4dn-xlarge";
    let made = ran.events.iter().find_map(|stamped| {
        let text = serde_json::to_string(&stamped.event).ok()?;
        (text.contains(r#""event":"made""#) && text.contains(second)).then_some(stamped.t)
    });
    let made = made.expect("a machine set in the second zone was made");
    assert!((at - 0.01..=at + 1.0).contains(&made), "the next zone at {made}, the first one failed at {at}");
    let machines = rehearsed.all(&kinds::MACHINE).await;
    let running = machines.iter().filter(|one| one.text("/status/phase") == Some("Running")).count();
    assert_eq!(running, 4, "three workers and one with a GPU");
}

#[tokio::test(start_paused = true)]
async fn driver_crash_loop() {
    let crashed = |pod: &Object| {
        let status = &pod.list("/status/containerStatuses");
        pod.label("app") == Some("nvidia-driver-daemonset")
            && status.iter().any(|status| status["restartCount"].as_i64() >= Some(3))
    };
    let (ran, at, _) = observed("driver-crash-loop", Query::within(&kinds::POD, OPERATOR), crashed).await;
    let object = "Pod/nvidia-gpu-operator/nvidia-driver-daemonset-";
    told(&ran, Exit::Failed, "gpu-operator.driver", at, object, &["kernel"]);
    assert!(ran.why().evidence.iter().any(|found| found.text.contains("kernel-devel-4.18.0-372.40.1")), "the log");
}

#[tokio::test(start_paused = true)]
async fn image_pull_failure() {
    let pulling = |pod: &Object| {
        pod.list("/status/containerStatuses").iter().any(|status| {
            pod.label("app") == Some("nvidia-driver-daemonset")
                && status["state"]["waiting"]["reason"] == "ImagePullBackOff"
        })
    };
    let (ran, first, _) = observed("image-pull-failure", Query::within(&kinds::POD, OPERATOR), pulling).await;
    // A pull that fails is tried for ever; a few tries are waited for, as registries have bad moments.
    let known = ran.ended_at("gpu-operator.driver");
    assert!(known > first + 10.0 && known < first + 180.0, "known at {known}, first back-off at {first}");
    told(
        &ran,
        Exit::Failed,
        "gpu-operator.driver",
        known,
        "Pod/nvidia-gpu-operator/nvidia-driver-",
        &["nvcr.io/nvidia/driver", "manifest unknown"],
    );
}

#[tokio::test(start_paused = true)]
async fn catalog_not_ready() {
    let unresolved = |found: &Object| found.condition("ResolutionFailed").is_some_and(|condition| condition.is_true());
    let (ran, at, _) = observed("catalog-not-ready", Query::all(&kinds::SUBSCRIPTION), unresolved).await;
    // OLM tries again as soon as the catalog answers, so this is given five minutes and no more.
    let object = "CatalogSource/openshift-marketplace/certified-operators";
    told(&ran, Exit::Failed, "nfd.install-plan", at + 300.0, object, &["TRANSIENT_FAILURE"]);
}

#[tokio::test(start_paused = true)]
async fn second_operator_group() {
    let failed = |csv: &Object| csv.text("/status/phase") == Some("Failed");
    let rehearsed = Rehearsed::new("default", &["second-operator-group"]).await;
    let observer = rehearsed.another();
    let query = Query::within(&kinds::CSV, OPERATOR);
    let ran = tokio::select! {
        biased;
        ran = job(&rehearsed) => ran,
        () = async {
            seen(observer, &rehearsed, query, failed).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            // The run must know by now; captures may follow.
            tokio::time::sleep(Duration::from_secs(60)).await;
        } => panic!("the run went on for a minute after the CSV had failed"),
    };
    assert_eq!(ran.outcome.exit, Exit::Failed);
    says(ran.why(), "Namespace/nvidia-gpu-operator", &["2 OperatorGroups", "somebody-elses-group"]);
}

/// What never ends is given up at the wait's own deadline, with what was seen last.
async fn timed_out(fault: &str, step: &str, deadline: f64, object: &str, words: &[&str]) {
    let ran = job(&Rehearsed::new("default", &[fault]).await).await;
    let started = ran.events.iter().find_map(|stamped| {
        let text = serde_json::to_value(&stamped.event).ok()?;
        (text["event"] == "started" && text["step"] == step).then_some(stamped.t)
    });
    let at = started.expect("the step started") + deadline;
    told(&ran, Exit::TimedOut, step, at, object, words);
}

#[tokio::test(start_paused = true)]
async fn no_gpu_label() {
    timed_out("no-gpu-label", "nfd.gpu-label", 300.0, "Node/", &["no NVIDIA GPU", "4 workers"]).await;
}

#[tokio::test(start_paused = true)]
async fn node_not_ready() {
    timed_out("node-not-ready", "cluster.nodes", 1200.0, "Node/", &["not Ready", "KubeletNotReady"]).await;
}

#[tokio::test(start_paused = true)]
async fn gpu_faulty() {
    let burnt = |pod: &Object| pod.label("app") == Some("gpu-burn") && pod.text("/status/phase") == Some("Succeeded");
    let (ran, at, _) = observed("gpu-faulty", Query::within(&kinds::POD, "default"), burnt).await;
    told(&ran, Exit::Failed, "gpu-operator.burn", at, "Node/", &["GPU 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_meets_the_api_costs_no_more_than_itself() {
    for (fault, lost) in [("api-restart", 30.0), ("expired-watch", 1.0)] {
        let rehearsed = Rehearsed::new("default", &[fault]).await;
        let floor = rehearsed.floor(&FloorRequest::default());
        let ran = job(&rehearsed).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{fault}: {:?}", ran.outcome.why);
        assert!(ran.seconds <= floor * 1.02 + lost, "{fault}: {} s, floor {floor} s", ran.seconds);
    }
}
