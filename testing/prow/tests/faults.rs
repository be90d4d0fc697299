//! Each fault by name: the exit code, how soon after the terminal state the run knows, and what its first line says.

use testing_prow::OperatorHubFlow;
use toolbox_core::cluster::{Object, Query, kinds};
use toolbox_core::engine::event::{Ended, Event};
use toolbox_core::engine::{Exit, FailureVerdict, Plan};
use toolbox_core::{Verb, VerbEnv};
use toolbox_rehearsal::FloorRequest;
use toolbox_testkit::{Ran, Rehearsed};

const GPU: &str = "g4dn.xlarge";
const OPERATOR: &str = "nvidia-gpu-operator";

fn plan(rehearsed: &Rehearsed) -> Plan {
    let flow = OperatorHubFlow::new(None, None).expect("the flow has no arguments");
    let plan = Box::new(flow).plan(&VerbEnv::new(rehearsed.cluster.clone()));
    plan.expect("the flow has a plan")
}

/// The job with a fault, and when one of the objects first was as `fits` says.
async fn observed(fault: &str, query: Query, fits: impl Fn(&Object) -> bool + Send + 'static) -> (Ran, f64, Rehearsed) {
    let rehearsed = Rehearsed::new("default", &[fault]).await;
    let plan = plan(&rehearsed);
    let (ran, at) = rehearsed.run_watched(plan, query, move |objects| objects.iter().any(&fits)).await;
    (ran, at, rehearsed)
}

/// How a run fails.
struct Failure<'a> {
    exit: Exit,
    code: &'a str,
    verdict: FailureVerdict,
    /// The step that fails.
    step: &'a str,
    /// What the first line begins with.
    object: &'a str,
    /// Words of the cause.
    words: &'a [&'a str],
}

impl Failure<'_> {
    /// The failure says object, cause and next action, and the step ended within a second of the terminal state.
    #[track_caller]
    fn is_told(&self, ran: &Ran, terminal: f64) {
        let why = ran.why();
        let first = why.to_string();
        assert_eq!((ran.outcome.exit, why.code.as_ref(), why.verdict), (self.exit, self.code, self.verdict), "{first}");
        assert!(!first.contains('\n'), "one line: {first}");
        assert!(first.starts_with(self.object), "{first}");
        for word in self.words {
            assert!(first.contains(word), "`{word}` is not in: {first}");
        }
        assert!(!why.next.trim().is_empty(), "{first}: no next action");
        assert!(!first.contains("timed out waiting for the condition"), "{first}");
        let step = self.step;
        assert!(matches!(ran.ended(step), Ended::Failed { .. }), "{step}: {:?}", ran.ended(step));
        let known = ran.ended_at(step);
        assert!((terminal..=terminal + 1.0).contains(&known), "{step} failed at {known}, terminal at {terminal}");
        assert!(ran.files.contains_key("capture.json"), "the state is captured all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn quota_exhausted() {
    let failed = |machine: &Object| machine.text("/status/phase") == Some("Failed");
    let (ran, at, _) = observed("quota-exhausted", Query::all(&kinds::MACHINE), failed).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "quota-exhausted",
        verdict: FailureVerdict::Capacity,
        step: "cluster.machines",
        object: "Machine/openshift-machine-api/demo-x7k2p-worker-a--g4dn-xlarge-",
        words: &["quota", GPU, "vCPU"],
    };
    failure.is_told(&ran, at);
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
    assert!((at..=at + 1.0).contains(&made), "the next zone at {made}, the first one failed at {at}");
    let machines = rehearsed.all(&kinds::MACHINE).await;
    let running = machines.iter().filter(|one| one.text("/status/phase") == Some("Running")).count();
    assert_eq!(running, 4, "three workers and one with a GPU");
}

#[tokio::test(start_paused = true)]
async fn no_zone_has_stock() {
    let rehearsed = Rehearsed::with("default", &[], |scenario| {
        let kind = scenario.instance_types.get_mut(GPU).expect("the type is sold");
        kind.zones.values_mut().for_each(|stock| *stock = 0);
    })
    .await;
    let failed = |machine: &Object| {
        machine.text("/status/phase") == Some("Failed") && machine.name().starts_with("demo-x7k2p-worker-c")
    };
    let plan = plan(&rehearsed);
    let last_zone = move |machines: &[Object]| machines.iter().any(failed);
    let (ran, at) = rehearsed.run_watched(plan, Query::all(&kinds::MACHINE), last_zone).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "out-of-stock",
        verdict: FailureVerdict::Capacity,
        step: "cluster.machines",
        object: "Machine/openshift-machine-api/demo-x7k2p-worker-c--g4dn-xlarge-",
        words: &["zone us-test-1c", GPU],
    };
    failure.is_told(&ran, at);
    let tried = ran.why().evidence.iter().find(|found| found.label == "tried").map(|found| found.text.as_str());
    let set = |zone: &str| format!("demo-x7k2p-worker-{zone}--g4dn-xlarge in zone us-test-1{zone}");
    assert_eq!(tried, Some(["a", "b", "c"].map(set).join(", ").as_str()));
    assert_eq!(ran.why().next, "run again later, or choose another instance type");
}

/// The driver's pods with so many restarts.
fn crashed(pod: &Object) -> bool {
    let status = &pod.list("/status/containerStatuses");
    pod.label("app") == Some("nvidia-driver-daemonset")
        && status.iter().any(|status| status["restartCount"].as_i64() >= Some(3))
}

#[tokio::test(start_paused = true)]
async fn driver_crash_loop() {
    let (ran, at, _) = observed("driver-crash-loop", Query::within(&kinds::POD, OPERATOR), crashed).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "no-kernel-headers",
        verdict: FailureVerdict::Product,
        step: "gpu-operator.driver",
        object: "Pod/nvidia-gpu-operator/nvidia-driver-daemonset-",
        words: &["kernel"],
    };
    failure.is_told(&ran, at);
    assert!(ran.why().evidence.iter().any(|found| found.text.contains("kernel-devel-4.18.0-372.40.1")), "the log");
}

#[tokio::test(start_paused = true)]
async fn image_pull_failure() {
    // A pull that fails is tried for ever, and registries have bad moments: the third failure is one too many.
    let (mut failing, mut pulls) = (false, 0);
    let third = move |pods: &[Object]| {
        let driver = pods.iter().filter(|pod| pod.label("app") == Some("nvidia-driver-daemonset"));
        let now = driver
            .flat_map(|pod| pod.list("/status/containerStatuses"))
            .any(|status| status["state"]["waiting"]["reason"] == "ErrImagePull");
        pulls += i32::from(now && !failing);
        failing = now;
        pulls == 3
    };
    let rehearsed = Rehearsed::new("default", &["image-pull-failure"]).await;
    let plan = plan(&rehearsed);
    let (ran, at) = rehearsed.run_watched(plan, Query::within(&kinds::POD, OPERATOR), third).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "image-pull-failure",
        verdict: FailureVerdict::Infrastructure,
        step: "gpu-operator.driver",
        object: "Pod/nvidia-gpu-operator/nvidia-driver-",
        words: &["nvcr.io/nvidia/driver", "manifest unknown"],
    };
    failure.is_told(&ran, at);
}

#[tokio::test(start_paused = true)]
async fn catalog_not_ready() {
    let unresolved = |found: &Object| found.condition("ResolutionFailed").is_some_and(|condition| condition.is_true());
    let (ran, at, _) = observed("catalog-not-ready", Query::all(&kinds::SUBSCRIPTION), unresolved).await;
    // OLM installs nothing while any catalog is away, and NFD's installation is the first to notice. OLM tries again as
    // soon as the catalog answers, so this is given five minutes and no more.
    let failure = Failure {
        exit: Exit::Failed,
        code: "other-catalog",
        verdict: FailureVerdict::Infrastructure,
        step: "nfd.install-plan",
        object: "CatalogSource/openshift-marketplace/certified-operators",
        words: &["TRANSIENT_FAILURE"],
    };
    failure.is_told(&ran, at + 300.0);
}

#[tokio::test(start_paused = true)]
async fn second_operator_group() {
    let theirs = |group: &Object| group.name() == "somebody-elses-group";
    let (ran, at, _) = observed("second-operator-group", Query::within(&kinds::OPERATOR_GROUP, OPERATOR), theirs).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "second-operator-group",
        verdict: FailureVerdict::Configuration,
        step: "gpu-operator.install-plan",
        object: "Namespace/nvidia-gpu-operator",
        words: &["2 OperatorGroups", "somebody-elses-group"],
    };
    failure.is_told(&ran, at);
}

/// What never ends is given up at the wait's own deadline, with what was seen last.
async fn timed_out(fault: &str, deadline: f64, failure: Failure<'_>) {
    let rehearsed = Rehearsed::new("default", &[fault]).await;
    let ran = rehearsed.run(plan(&rehearsed)).await;
    let started = ran.events.iter().find_map(|stamped| {
        let text = serde_json::to_value(&stamped.event).ok()?;
        (text["event"] == "started" && text["step"] == failure.step).then_some(stamped.t)
    });
    failure.is_told(&ran, started.expect("the step started") + deadline);
}

#[tokio::test(start_paused = true)]
async fn no_gpu_label() {
    let failure = Failure {
        exit: Exit::TimedOut,
        code: "no-gpu-label",
        verdict: FailureVerdict::Infrastructure,
        step: "nfd.gpu-label",
        object: "Node/",
        words: &["no NVIDIA GPU", "4 workers"],
    };
    timed_out("no-gpu-label", 300.0, failure).await;
}

#[tokio::test(start_paused = true)]
async fn node_not_ready() {
    let failure = Failure {
        exit: Exit::TimedOut,
        code: "node-not-ready",
        verdict: FailureVerdict::Infrastructure,
        step: "cluster.nodes",
        object: "Node/",
        words: &["not Ready", "KubeletNotReady"],
    };
    timed_out("node-not-ready", 1200.0, failure).await;
}

#[tokio::test(start_paused = true)]
async fn gpu_faulty() {
    let burnt = |pod: &Object| pod.label("app") == Some("gpu-burn") && pod.text("/status/phase") == Some("Succeeded");
    let (ran, at, _) = observed("gpu-faulty", Query::within(&kinds::POD, "default"), burnt).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "gpu-faulty",
        verdict: FailureVerdict::Infrastructure,
        step: "gpu-operator.burn",
        object: "Node/",
        words: &["GPU 0"],
    };
    failure.is_told(&ran, at);
}

#[tokio::test(start_paused = true)]
async fn validator_failed() {
    let checked = |pod: &Object| {
        pod.name().starts_with("nvidia-operator-validator")
            && pod.list("/status/initContainerStatuses").iter().any(|one| one["restartCount"].as_i64() >= Some(5))
    };
    let (ran, at, _) = observed("validator-failed", Query::within(&kinds::POD, OPERATOR), checked).await;
    let failure = Failure {
        exit: Exit::Failed,
        code: "validator-failed",
        verdict: FailureVerdict::Product,
        step: "gpu-operator.operands",
        object: "Pod/nvidia-gpu-operator/nvidia-operator-validator-",
        words: &["cuda-validation"],
    };
    failure.is_told(&ran, at);
}

#[tokio::test(start_paused = true)]
async fn what_meets_the_api_costs_no_more_than_itself() {
    for (fault, lost) in [("api-restart", 30.0), ("expired-watch", 1.0)] {
        let rehearsed = Rehearsed::new("default", &[fault]).await;
        let floor = rehearsed.floor(&FloorRequest::default());
        let ran = rehearsed.run(plan(&rehearsed)).await;
        assert_eq!(ran.outcome.exit, Exit::Done, "{fault}: {:?}", ran.outcome.why);
        assert!(ran.seconds <= floor * 1.02 + lost, "{fault}: {} s, floor {floor} s", ran.seconds);
        let away = ran.events.iter().any(|stamped| match &stamped.event {
            Event::Pending { why, .. } => why.code.contains("api") || why.code.contains("unreachable"),
            _ => false,
        });
        assert_eq!(away, fault == "api-restart", "{fault}: who waits is told that the API is away, and only then");
    }
}
