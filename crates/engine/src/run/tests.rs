//! The run directory as a whole: what is in it after a run, during one, and when something goes wrong.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::event::{Ended, Event, PlannedStep, Reporter, Role, Stamped};
use crate::journal::{Entry, Records};
use crate::plan::{Out, Plan, RunOptions, StepSpec, run};
use crate::why::{Cause, Exit, FailureVerdict, ObjectRef, Why};

struct Broken;

impl Cause for Broken {
    fn code(&self) -> &'static str {
        "image-pull-failure"
    }
    fn text(&self) -> String {
        "image nvcr.io/x cannot be pulled: not found".to_owned()
    }
    fn next(&self) -> String {
        "check the version".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Product
    }
}

pub(super) fn broken() -> Why {
    Why::new(ObjectRef::new("v1", "Pod", Some("nvidia"), "driver-x7k2p"), &Broken)
        .with("event", "Back-off pulling image")
}

pub(super) fn at(t: f64, event: Event) -> Stamped {
    let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = start + jiff::SignedDuration::from_secs_f64(t);
    Stamped { at, t, event }
}

pub(super) fn planned(id: &str, needs: &[&str], role: Role) -> PlannedStep {
    PlannedStep {
        id: id.to_owned(),
        title: format!("{id} is there"),
        role,
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        wait: None,
        deadline_s: 600.0,
        per: None,
        parent: None,
        effects: vec![],
    }
}

pub(super) fn started(command: &[&str]) -> Event {
    Event::RunStarted {
        name: "gpu_operator deploy_from_operatorhub".to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        version: "0.1.0".to_owned(),
        resumes: None,
        rehearsal: None,
    }
}

pub(super) fn step_started(step: &str) -> Event {
    Event::Started { step: step.to_owned(), attempt: 1 }
}

pub(super) fn step_ended(step: &str, ended: Ended) -> Event {
    Event::Ended { step: step.to_owned(), ended }
}

fn changed(what: &str) -> Ended {
    Ended::Changed { what: what.to_owned() }
}

pub(super) fn name() -> VerbName {
    VerbName::new("gpu-operator", "deploy-from-operatorhub")
}

/// A run with a critical path, a branch, a step added on the way, a failure and a finalizer.
pub(super) fn failed_run() -> Vec<Stamped> {
    let child = PlannedStep {
        parent: Some("burn".to_owned()),
        title: "burn is there (node-1)".to_owned(),
        ..planned("burn[node-1]", &[], Role::Wait)
    };
    let node = ObjectRef::new("v1", "Node", None, "node-1");
    vec![
        at(0.0, started(&["tbx", "gpu-operator", "deploy", "--channel", "v1.11 beta"])),
        at(
            0.0,
            Event::Cluster {
                server: "https://api:6443".into(),
                version: "v1.24.17".into(),
                source: "KUBECONFIG".into(),
            },
        ),
        at(
            0.0,
            Event::Planned {
                steps: vec![
                    planned("nfd", &[], Role::Change),
                    planned("nodes", &[], Role::Wait),
                    planned("label", &["nfd", "nodes"], Role::Wait),
                    planned("burn", &["label"], Role::Wait),
                    planned("report", &["burn"], Role::Ask),
                    planned("capture", &[], Role::Finalizer),
                ],
            },
        ),
        at(0.0, step_started("nfd")),
        at(0.0, step_started("nodes")),
        at(
            0.5,
            Event::Made {
                step: "nfd".into(),
                object: ObjectRef::new("v1", "Namespace", None, "nfd").with_uid("11111111-aaaa-4bbb-8ccc-000000000001"),
            },
        ),
        at(2.0, step_ended("nfd", changed("created Subscription nfd"))),
        at(3.0, Event::Pending { step: "nodes".into(), why: Why::waiting(node.clone(), "not-ready", "is not ready") }),
        at(200.0, step_ended("nodes", changed("2 nodes"))),
        at(200.0, step_started("label")),
        at(203.25, step_ended("label", Ended::AlreadySo { what: "2 nodes are labelled".into() })),
        at(203.25, step_started("burn")),
        at(203.25, Event::Added { step: child }),
        at(203.25, step_started("burn[node-1]")),
        at(210.0, Event::Version { what: "csv".into(), asked: Some("1.11".into()), found: Some("1.11.1".into()) }),
        at(210.0, Event::Warning { step: Some("burn".into()), name: "slow gpu".into(), text: "GPU 0 is slow".into() }),
        at(230.0, step_ended("burn[node-1]", Ended::Failed { why: broken() })),
        at(230.0, step_ended("burn", Ended::Failed { why: broken() })),
        at(230.0, step_ended("report", Ended::NotRun { reason: "needs burn, which did not succeed".into() })),
        at(230.0, step_started("capture")),
        at(235.0, step_ended("capture", Ended::AlreadySo { what: "31 objects".into() })),
        at(235.0, Event::Traffic { requests: [("GET".to_owned(), 12)].into(), watch_events: 77 }),
        at(235.0, Event::RunEnded { exit: Exit::Failed, why: Some(broken()) }),
    ]
}

pub(super) fn fold(events: &[Stamped]) -> Record {
    let mut record = Record::default();
    for event in events {
        record.event(event);
    }
    record
}

pub(super) fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn written(parent: &Path, events: &[Stamped]) -> RunDir {
    let dir = RunDir::create(parent, &name(), RunDirOptions::default()).unwrap();
    for event in events {
        dir.event(event);
    }
    dir
}

#[test]
fn the_summary_tells_the_whole_run() {
    let parent = tempfile::tempdir().unwrap();
    let dir = written(parent.path(), &failed_run());
    assert!(dir.path().ends_with("000__gpu_operator__deploy_from_operatorhub"));
    let summary = json_file(&dir.path().join("summary.json"));
    assert_eq!(summary["result"], "failed");
    assert_eq!(summary["exit_code"], 1);
    assert_eq!(summary["verdict"], "product");
    assert_eq!(summary["command"], "tbx gpu-operator deploy --channel 'v1.11 beta'");
    assert_eq!(summary["critical_path"], json!(["nodes", "label", "burn"]));
    assert_eq!(summary["critical_path_s"], 230.0);
    assert_eq!(summary["makespan_s"], 235.0);
    assert_eq!(summary["leftovers"][0]["name"], "nfd");
    assert_eq!(summary["watch_events"], 77);
    let ids: Vec<&str> = summary["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["nfd", "nodes", "label", "burn", "burn[node-1]", "report", "capture"]);
    assert_eq!(summary["steps"][5]["state"], "not-run");
    assert_eq!(summary["finished"], "2026-01-01T00:03:55Z");
    assert_eq!(
        std::fs::read_to_string(parent.path().join("_WARNING/slow gpu".replace(' ', "_"))).unwrap(),
        "GPU 0 is slow\n"
    );
    let read: Summary = serde_json::from_value(summary).unwrap();
    assert_eq!(read, dir.record().summary());
}

#[test]
fn the_record_read_back_from_the_files_is_the_same() {
    let parent = tempfile::tempdir().unwrap();
    let dir = written(parent.path(), &failed_run());
    assert_eq!(Record::from_run_dir(dir.path()).unwrap(), dir.record());
    let once = std::fs::read(dir.path().join("events.jsonl")).unwrap();
    let again = written(parent.path(), &failed_run());
    assert!(again.path().ends_with("001__gpu_operator__deploy_from_operatorhub"));
    assert_eq!(once, std::fs::read(again.path().join("events.jsonl")).unwrap());
}

#[test]
fn after_every_event_the_files_are_true_as_if_killed_there() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    let at_once = json_file(&dir.path().join("summary.json"));
    assert_eq!((&at_once["result"], &at_once["exit_code"]), (&json!("running"), &Value::Null));
    for event in failed_run() {
        dir.event(&event);
        let record = Record::from_run_dir(dir.path()).unwrap();
        assert_eq!(record, dir.record());
        let summary = json_file(&dir.path().join("summary.json"));
        let states = |value: Value| -> Vec<Value> {
            value["steps"].as_array().unwrap().iter().map(|step| step["state"].clone()).collect()
        };
        let ended = matches!(event.event, Event::RunEnded { .. });
        assert_eq!(summary["result"] == "running", !ended);
        if !matches!(event.event, Event::Added { .. }) {
            assert_eq!(states(summary), states(serde_json::to_value(record.summary()).unwrap()));
        }
    }
}

#[test]
fn a_torn_last_line_is_passed_over() {
    let parent = tempfile::tempdir().unwrap();
    let dir = written(parent.path(), &failed_run()[..9]);
    let whole = Record::from_run_dir(dir.path()).unwrap();
    let file = dir.path().join("events.jsonl");
    let mut content = std::fs::read(&file).unwrap();
    content.extend_from_slice(b"{\"at\":\"2026-01-01T00:00:0\xff");
    std::fs::write(&file, content).unwrap();
    let torn = Record::from_run_dir(dir.path()).unwrap();
    assert_eq!((torn.unreadable, torn.steps, torn.log), (1, whole.steps, whole.log));
}

#[test]
fn a_signal_shows_at_once() {
    let mut record = fold(&failed_run()[..8]);
    record.event(&at(4.0, step_ended("nodes", Ended::Stopped)));
    record.event(&at(4.0, Event::Interrupted { by: "SIGTERM".into() }));
    assert_eq!(record.result(), RunResult::Interrupted);
    let stopped = record.step("nodes").unwrap();
    assert_eq!(stopped.why.as_ref().unwrap().cause, "is not ready");
    record.event(&at(5.0, Event::RunEnded { exit: Exit::Terminated, why: None }));
    assert_eq!(record.summary().exit_code, Some(143));
}

#[test]
fn a_directory_that_cannot_be_written_is_said_beforehand() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    for why in [
        RunDir::create(&file, &name(), RunDirOptions::default()).unwrap_err(),
        RunDir::create(&file.join("below"), &name(), RunDirOptions::default()).unwrap_err(),
        RunDir::unnumbered(&file, &name(), RunDirOptions::default()).unwrap_err(),
    ] {
        assert_eq!((why.exit, why.code.as_ref()), (Exit::Configuration, "artifact-dir-not-writable"));
        assert!(why.cause.contains("file") && why.next.contains("--artifact-dir"), "{why}");
    }
}

#[test]
fn files_that_cannot_be_written_later_do_not_stop_the_run() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    std::fs::write(dir.path().join("logs"), "a file where a directory should be").unwrap();
    dir.file("logs/pod.log", b"x");
    dir.event(&failed_run()[0]);
    assert_eq!(dir.trouble().unwrap().code, "artifact-dir-not-writable");
    assert_eq!(dir.record().name, "gpu_operator deploy_from_operatorhub");
}

#[test]
fn the_journal_is_read_back_and_carried_over() {
    let parent = tempfile::tempdir().unwrap();
    let dir = written(parent.path(), &[]);
    let pod = |name: &str| ObjectRef::new("v1", "Pod", Some("n"), name);
    let made = |step: &str, object: ObjectRef| Entry::Made { step: step.into(), object };
    dir.journal(&Entry::Decided { key: "suffix".into(), value: json!("x7") });
    dir.journal(&Entry::Making { step: "a".into(), object: pod("gen-<generated>") });
    dir.journal(&made("a", pod("gen-x7k").with_uid("u1")));
    dir.journal(&Entry::Making { step: "a".into(), object: pod("lost") });
    dir.journal(&made("a", pod("lost-not").with_uid("u0")));
    dir.journal(&Entry::Deleted { object: pod("lost-not").with_uid("u0") });
    dir.journal(&made("a", pod("b").with_uid("u2")));
    dir.journal(&Entry::Deleted { object: pod("b").with_uid("u2") });
    dir.journal(&made("a", pod("b").with_uid("u3")));
    dir.journal(&Entry::Changed {
        step: "a".into(),
        object: pod("c").with_uid("u4"),
        undo: json!({"spec": {"x": null}}),
    });
    let journal = Journal::load(dir.path()).unwrap();
    assert_eq!(journal, dir.journal_so_far());
    assert_eq!(journal.lost.iter().map(|lost| lost.object.name.as_str()).collect::<Vec<_>>(), ["lost"]);
    let left: Vec<_> = journal.leftovers().into_iter().map(|object| object.uid.unwrap()).collect();
    assert_eq!(left, ["u1", "u3"]);
    assert!(journal.changed[0].can_be_undone());

    let options = RunDirOptions { resumes: Some(journal.clone()), ..RunDirOptions::default() };
    let resumed = RunDir::create(parent.path(), &name(), options).unwrap();
    resumed.event(&failed_run()[0]);
    assert_eq!(resumed.recall("suffix"), Some(json!("x7")));
    resumed.journal(&Entry::Decided { key: "other".into(), value: json!(1) });
    assert_eq!(resumed.recall("other"), Some(json!(1)));
    assert_eq!(Journal::load(resumed.path()).unwrap().leftovers(), journal.leftovers());
    // What both parts left is left, and what one of them has taken away is not.
    resumed.event(&at(1.0, Event::Made { step: "d".into(), object: pod("d").with_uid("u5") }));
    resumed.journal(&Entry::Deleted { object: pod("gen-x7k").with_uid("u1") });
    let left =
        |record: &Record| -> Vec<String> { record.leftovers().into_iter().map(|object| object.uid.unwrap()).collect() };
    assert_eq!(left(&resumed.record()), ["u3", "u5"]);
    assert_eq!(left(&Record::from_run_dir(resumed.path()).unwrap()), ["u5", "u3"]);
    assert!(Journal::load(parent.path()).unwrap_err().next.contains("journal.jsonl"));
}

#[test]
fn a_flow_moves_earlier_files_aside_and_refuses_a_directory_in_use() {
    let root = tempfile::tempdir().unwrap();
    let flow = VerbName::new("gpu-operator", "test_operatorhub");
    let first = RunDir::unnumbered(root.path(), &flow, RunDirOptions::default()).unwrap();
    first.event(&failed_run()[0]);
    let refused = RunDir::unnumbered(root.path(), &flow, RunDirOptions::default()).unwrap_err();
    assert_eq!(refused.code, "artifact-dir-in-use");
    assert!(refused.cause.contains("gpu_operator deploy_from_operatorhub, started 2026"), "{refused}");
    drop(first);
    std::fs::write(root.path().join("FAILURE"), "").unwrap();
    std::fs::write(root.path().join(".summary.json.4711.tmp"), "{").unwrap();
    std::fs::write(root.path().join("theirs.txt"), "").unwrap();
    let second = RunDir::unnumbered(root.path(), &flow, RunDirOptions::default()).unwrap();
    assert_eq!(second.record(), Record::default());
    assert!(!root.path().join(".summary.json.4711.tmp").exists(), "what a killed run was writing is gone");
    assert!(!root.path().join("FAILURE").exists() && root.path().join("theirs.txt").exists());
    let earlier = Record::from_run_dir(&root.path().join("000__earlier__run")).unwrap();
    assert_eq!(earlier.name, "gpu_operator deploy_from_operatorhub");
}

#[tokio::test(start_paused = true)]
async fn a_real_plan_leaves_a_record() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let mut plan = Plan::new("test");
    let _made: Out<()> = plan.step(StepSpec::change("make", "makes"), (), |cx, ()| async move {
        let object = ObjectRef::new("v1", "ConfigMap", Some("n"), "c").with_uid("u");
        let suffix: String = cx.decide("suffix", || "abc".to_owned());
        cx.made(&object);
        cx.file("manifests/c.json", format!("{{\"name\": \"{suffix}\"}}"));
        cx.clock().sleep(Duration::from_secs(90)).await;
        Err(broken())
    });
    let mut options = RunOptions::new(clock.clone());
    options.records = Arc::new(dir.clone());
    let outcome = run(plan, options).await;
    dir.event(&Stamped { at: clock.now(), t: 90.0, event: Event::RunEnded { exit: outcome.exit, why: outcome.why } });
    assert_eq!(json_file(&dir.path().join("manifests/c.json")), json!({"name": "abc"}));
    let summary = dir.record().summary();
    assert_eq!((summary.result, summary.makespan_s), (RunResult::Failed, 90.0));
    assert_eq!(summary.leftovers[0].name, "c");
    assert!(dir.trouble().is_none());
}

#[test]
fn the_schema_describes_every_field() {
    let schema = summary_schema();
    let fields = schema["properties"].as_object().unwrap();
    let summary = serde_json::to_value(fold(&failed_run()).summary()).unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), summary.as_object().unwrap().keys().collect::<Vec<_>>());
}

#[test]
fn a_killed_run_can_be_told_and_rendered() {
    let parent = tempfile::tempdir().unwrap();
    let dir = written(parent.path(), &failed_run()[..9]);
    let path = dir.path().to_path_buf();
    assert!(is_running(&path));
    drop(dir);
    assert!(!is_running(&path) && !is_running(parent.path()));
    std::fs::remove_file(path.join("summary.json")).unwrap();
    let kept = [".hidden.tmp", "notes.4711.tmp", ".x.tmp.4711"].map(|name| path.join(name));
    let torn = [path.join(".summary.json.4711.tmp"), path.join("manifests/.a.yaml.4711.tmp")];
    std::fs::create_dir_all(path.join("manifests")).unwrap();
    for file in kept.iter().chain(&torn) {
        std::fs::write(file, "{").unwrap();
    }
    let report = render_again(&path).unwrap();
    assert_eq!(report, path.join("report.html"));
    assert!(std::fs::read_to_string(report).unwrap().contains("had not ended"));
    assert!(path.join("junit_gpu-operator-deploy-from-operatorhub.xml").exists());
    assert!(std::fs::read_to_string(path.join("summary.json")).unwrap().contains("\"result\": \"running\""));
    assert!(kept.iter().all(|file| file.exists()) && !torn.iter().any(|file| file.exists()));
    assert!(render_again(parent.path()).unwrap_err().cause.contains("events.jsonl"));
}
