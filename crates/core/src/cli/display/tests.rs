use std::io::Write;
use std::sync::{Arc, Mutex};

use toolbox_engine::event::{Ended, Event, PlannedStep, Reporter, Role, Stamped};
use toolbox_engine::run::Record;
use toolbox_engine::{Exit, ObjectRef, Redactor, Why};

use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

struct Stage {
    sink: Sink,
    display: Display,
    record: Record,
}

impl Stage {
    fn new(surface: Surface) -> Self {
        let sink = Sink::default();
        let redactor = Redactor::new();
        redactor.register("planted-secret");
        let screen = Screen::new(surface, Paint(false), Box::new(sink.clone()));
        Self { sink, display: Display::new(screen, redactor), record: Record::default() }
    }

    fn at(&mut self, t: f64, event: Event) -> &mut Self {
        let stamped = Stamped { at: jiff::Timestamp::UNIX_EPOCH, t, event };
        self.display.event(&stamped);
        self.record.event(&stamped);
        self
    }

    fn planned(&mut self, ids: &[(&str, Role)]) {
        let steps = ids.iter().enumerate().map(|(at, (id, role))| PlannedStep {
            id: (*id).to_owned(),
            title: format!("Title of {id}"),
            role: *role,
            needs: at.checked_sub(1).map(|before| ids[before].0.to_owned()).into_iter().collect(),
            wait: None,
            deadline_s: 60.0,
            per: None,
            parent: None,
            effects: Vec::new(),
        });
        self.at(
            0.0,
            Event::RunStarted {
                name: "cluster set_scale".into(),
                command: vec!["tbx".into()],
                version: "0".into(),
                resumes: None,
                rehearsal: None,
            },
        );
        self.at(0.0, Event::Planned { steps: steps.collect() });
    }

    fn started(&mut self, t: f64, step: &str) {
        self.at(t, Event::Started { step: step.into(), attempt: 1 });
    }

    fn ended(&mut self, t: f64, step: &str, ended: Ended) {
        self.at(t, Event::Ended { step: step.into(), ended });
    }

    fn end(&mut self, exit: Exit, why: Option<&Why>) -> String {
        let before = self.sink.text().len();
        self.at(self.record.last_s, Event::RunEnded { exit, why: why.cloned() });
        self.display.end(&Ending {
            record: &self.record,
            exit,
            why,
            probe: false,
            run_dir: Some(std::path::Path::new("/a/000__cluster__set_scale")),
            report: None,
            trouble: None,
        });
        self.sink.text()[before..].to_owned()
    }
}

fn waiting(text: &str) -> Why {
    Why::waiting(ObjectRef::new("v1", "Node", None, "worker-1"), "not-ready", text)
}

#[test]
fn a_pipe_gets_one_line_per_change_with_its_time() {
    let mut stage = Stage::new(Surface::Lines);
    stage.planned(&[("cluster.scale", Role::Change), ("cluster.wait-nodes", Role::Wait)]);
    stage.started(0.0, "cluster.scale");
    stage.ended(0.4, "cluster.scale", Ended::Changed { what: "created MachineSet a/b".into() });
    stage.started(0.4, "cluster.wait-nodes");
    for (t, text) in
        [(0.5, "does not exist yet"), (70.0, "is not Ready: planted-secret"), (70.0, "is not Ready: KubeletNotReady")]
    {
        stage.at(t, Event::Pending { step: "cluster.wait-nodes".into(), why: waiting(text) });
    }
    stage.at(71.0, Event::Note { step: Some("cluster.wait-nodes".into()), text: "first\nsecond".into() });
    stage.ended(312.2, "cluster.wait-nodes", Ended::AlreadySo { what: "1 node is Ready".into() });
    insta::assert_snapshot!(stage.sink.text(), @r"
      0.4s  changed  cluster.scale: created MachineSet a/b (0.4s)
      0.5s  waits    cluster.wait-nodes: Node/worker-1: does not exist yet
     1m10s  waits    cluster.wait-nodes: Node/worker-1: is not Ready: *** (1m10s)
     1m10s  waits    cluster.wait-nodes: Node/worker-1: is not Ready: KubeletNotReady (1m10s)
     1m11s  note     cluster.wait-nodes: first
                     | second
     5m12s  ok       cluster.wait-nodes: 1 node is Ready (5m12s)
    ");
    insta::assert_snapshot!(stage.end(Exit::Done, None), @r"
    passed: cluster set_scale in 5m12s (1 changed, 1 already so)
    critical path: cluster.wait-nodes 5m12s
    run directory: /a/000__cluster__set_scale
    ");
}

#[test]
fn a_long_silence_is_broken_by_what_is_waited_for() {
    let mut stage = Stage::new(Surface::Lines);
    stage.planned(&[("nfd.wait-csv", Role::Wait)]);
    stage.started(0.0, "nfd.wait-csv");
    stage.at(1.0, Event::Pending { step: "nfd.wait-csv".into(), why: waiting("is slow") });
    let before = stage.sink.text();
    stage.display.tick(200.0);
    assert_eq!(stage.sink.text(), before);
    stage.display.tick(301.0);
    stage.display.tick(302.0);
    assert_eq!(
        &stage.sink.text()[before.len()..],
        "  5m01s  waits    nfd.wait-csv: still, after 5m01s: Node/worker-1: is slow\n"
    );
}

#[test]
fn a_failure_comes_first_and_then_what_else_matters() {
    let mut stage = Stage::new(Surface::Lines);
    stage.planned(&[("a.one", Role::Change), ("a.two", Role::Change), ("a.three", Role::Change)]);
    let first = waiting("went away")
        .or_else(toolbox_engine::FailureVerdict::Capacity, "ask for quota")
        .with("event", "no quota");
    stage.started(0.0, "a.one");
    stage.at(
        0.0,
        Event::Made {
            step: "a.one".into(),
            object: ObjectRef::new("v1", "ConfigMap", Some("ns"), "left").with_uid("1"),
        },
    );
    stage.ended(2.0, "a.one", Ended::Failed { why: first.clone() });
    stage.started(2.0, "a.two");
    stage.ended(3.0, "a.two", Ended::Failed { why: waiting("is another matter") });
    stage.ended(3.0, "a.three", Ended::NotRun { reason: "needs a.one".into() });
    stage.at(
        3.0,
        Event::Version { what: "operator".into(), asked: Some("1.11.0".into()), found: Some("1.11.1".into()) },
    );
    insta::assert_snapshot!(stage.end(Exit::TimedOut, Some(&first)), @r"
    error: Node/worker-1: went away
    next: ask for quota
      event: no quota
    also failed: a.two: Node/worker-1: is another matter
    timed out: cluster set_scale in 3s (2 failed, 1 not run), exit code 5, capacity
    operator: asked for 1.11.0, found 1.11.1
    left on the cluster:
      ConfigMap/ns/left
      take it back: tbx cleanup /a/000__cluster__set_scale
    run directory: /a/000__cluster__set_scale
    ");
}

#[test]
fn gitlab_gets_sections() {
    let mut stage = Stage::new(Surface::GitLab);
    stage.planned(&[("a.one", Role::Change)]);
    stage.end(Exit::Done, None);
    let text = stage.sink.text();
    assert!(
        text.starts_with("\x1b[0Ksection_start:0:progress\r\x1b[0KProgress\n\x1b[0Ksection_end:0:progress\r\x1b[0K\n"),
        "{text:?}"
    );
}
