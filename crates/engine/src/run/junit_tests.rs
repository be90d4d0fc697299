use quick_junit::{NonSuccessKind, Report, TestCaseStatus};

use super::tests::{at, broken, failed_run, fold, planned, started, step_ended, step_started};
use super::*;
use crate::event::{Ended, Event, PlannedStep, Role};
use crate::why::{Exit, ObjectRef, Why};

fn read(record: &Record) -> Report {
    Report::deserialize_from_str(&record.junit("gpu_operator deploy")).unwrap()
}

#[test]
fn one_case_per_step_as_readers_see_it() {
    let record = fold(&failed_run());
    let report = read(&record);
    let suite = &report.test_suites[0];
    assert_eq!((suite.tests, suite.failures, suite.errors, suite.skipped), (7, 2, 0, 1));
    insta::assert_snapshot!(record.junit("gpu_operator deploy"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="gpu_operator deploy" tests="7" skipped="1" failures="2" errors="0" time="235.000">
        <testsuite name="gpu_operator deploy" tests="7" skipped="1" errors="0" failures="2" time="235.000" timestamp="2026-01-01T00:00:00.000+00:00">
            <properties>
                <property name="command" value="tbx gpu-operator deploy --channel &apos;v1.11 beta&apos;"/>
                <property name="tbx version" value="0.1.0"/>
                <property name="cluster version" value="v1.24.17"/>
                <property name="csv asked for" value="1.11"/>
                <property name="csv found" value="1.11.1"/>
            </properties>
            <testcase name="nfd: nfd is there" classname="gpu_operator deploy" time="2.000">
                <system-out>      0 ms  started: nfd is there
        500 ms  made Namespace/nfd
         2.0 s  changed: created Subscription nfd
    </system-out>
            </testcase>
            <testcase name="nodes: nodes is there" classname="gpu_operator deploy" time="200.000">
                <system-out>      0 ms  started: nodes is there
         3.0 s  waits: Node/node-1: is not ready
    3 min 20 s  changed: 2 nodes
    </system-out>
            </testcase>
            <testcase name="label: label is there" classname="gpu_operator deploy" time="3.250">
                <system-out>3 min 20 s  started: label is there
    3 min 23 s  already so: 2 nodes are labelled
    </system-out>
            </testcase>
            <testcase name="burn: burn is there" classname="gpu_operator deploy" time="26.750">
                <failure message="Pod/nvidia/driver-x7k2p: image nvcr.io/x cannot be pulled: not found" type="image-pull-failure">Pod/nvidia/driver-x7k2p: image nvcr.io/x cannot be pulled: not found
    next: check the version

    event:
    Back-off pulling image
    </failure>
                <system-out>3 min 23 s  started: burn is there
    3 min 30 s  warning: slow gpu: GPU 0 is slow
    3 min 50 s  failed: Pod/nvidia/driver-x7k2p: image nvcr.io/x cannot be pulled: not found
    </system-out>
            </testcase>
            <testcase name="burn[1]: burn is there" classname="gpu_operator deploy" time="26.750">
                <properties>
                    <property name="step" value="burn[node-1]"/>
                </properties>
                <failure message="Pod/nvidia/driver-x7k2p: image nvcr.io/x cannot be pulled: not found" type="image-pull-failure">Pod/nvidia/driver-x7k2p: image nvcr.io/x cannot be pulled: not found
    next: check the version

    event:
    Back-off pulling image
    </failure>
                <system-out>3 min 23 s  started: burn is there (node-1)
    3 min 50 s  failed: Pod/nvidia/driver-x7k2p: image nvcr.io/x cannot be pulled: not found
    </system-out>
            </testcase>
            <testcase name="report: report is there" classname="gpu_operator deploy" time="0.000">
                <skipped message="needs burn, which did not succeed"/>
                <system-out>3 min 50 s  not run: needs burn, which did not succeed
    </system-out>
            </testcase>
            <testcase name="capture: capture is there" classname="gpu_operator deploy" time="5.000">
                <system-out>3 min 50 s  started: capture is there
    3 min 55 s  already so: 31 objects
    </system-out>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn names_are_the_same_from_run_to_run() {
    let child = |key: &str| Event::Added {
        step: PlannedStep {
            title: format!("burns ({key})"),
            parent: Some("burn".to_owned()),
            ..planned(&format!("burn[{key}]"), &[], Role::Wait)
        },
    };
    let names = |nodes: [&str; 2], count: &str| -> Vec<String> {
        let mut step = planned("burn", &[], Role::Wait);
        step.title = format!("{count} GPUs of driver v1.11.{count} burn for 30s, all of them");
        let record =
            fold(&[at(0.0, Event::Planned { steps: vec![step] }), at(0.0, child(nodes[0])), at(0.0, child(nodes[1]))]);
        read(&record).test_suites[0].test_cases.iter().map(|case| case.name.as_str().to_owned()).collect()
    };
    let first = names(["ip-10-0-1-2", "ip-10-0-9-7"], "2");
    assert_eq!(first, ["burn: GPUs of driver burn for all of them", "burn[1]: burns", "burn[2]: burns", "run"]);
    assert_eq!(first, names(["ip-10-0-3-3", "ip-10-0-4-4"], "8"));
}

#[test]
fn a_run_that_did_not_pass_always_has_a_case_that_says_so() {
    let events = failed_run();
    let bad = |record: &Record| {
        let report = read(record);
        report.failures + report.errors
    };
    for length in 0..events.len() {
        assert!(bad(&fold(&events[..length])) > 0, "killed after {length} events");
    }
    let passed = [at(0.0, started(&["tbx"])), at(1.0, Event::RunEnded { exit: Exit::Done, why: None })];
    assert_eq!(bad(&fold(&passed)), 0);
    let refused = [at(0.0, started(&["tbx"])), at(1.0, Event::RunEnded { exit: Exit::Access, why: Some(broken()) })];
    assert_eq!(bad(&fold(&refused)), 1);
}

#[test]
fn a_signal_stops_some_and_skips_others() {
    let record = fold(&[
        at(
            0.0,
            Event::Planned {
                steps: vec![
                    planned("a", &[], Role::Wait),
                    planned("b", &["a"], Role::Wait),
                    planned("c", &[], Role::Finalizer),
                ],
            },
        ),
        at(0.0, step_started("a")),
        at(1.0, Event::Pending { step: "a".into(), why: broken() }),
        at(2.0, step_ended("a", Ended::Stopped)),
        at(2.0, step_ended("b", Ended::NotRun { reason: "the run was stopped".into() })),
        at(2.0, Event::Interrupted { by: "SIGTERM".into() }),
        at(3.0, step_ended("c", Ended::Stopped)),
        at(3.0, Event::RunEnded { exit: Exit::Terminated, why: None }),
    ]);
    let report = read(&record);
    let cases = &report.test_suites[0].test_cases;
    let TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, description: Some(text), .. } = &cases[0].status
    else {
        panic!("{:?}", cases[0]);
    };
    assert!(text.as_str().contains("it waited for: Pod/nvidia/driver-x7k2p"));
    assert!(matches!(cases[1].status, TestCaseStatus::Skipped { .. }));
    assert!(matches!(cases[2].status, TestCaseStatus::Skipped { .. }));
}

/// A run whose every text is this one.
fn full_of(text: &str) -> Record {
    let why = Why::waiting(ObjectRef::thing("Pod", text), "x", text).with(text, text);
    let mut step = planned("a", &[], Role::Wait);
    text.clone_into(&mut step.title);
    fold(&[
        at(0.0, started(&["tbx", text])),
        at(0.0, Event::Planned { steps: vec![step] }),
        at(0.0, step_started("a")),
        at(0.0, Event::Note { step: Some("a".into()), text: text.to_owned() }),
        at(1.0, step_ended("a", Ended::Failed { why: why.clone() })),
        at(1.0, Event::RunEnded { exit: Exit::Failed, why: Some(why) }),
    ])
}

#[test]
fn any_text_gives_a_file_that_every_parser_reads() {
    let nasty = "\u{1b}[31mred\u{1b}[0m \u{0}\u{b}\u{fffe}\u{ffff}\u{7f}\u{85} ]]> <![CDATA[ \"q\" 'a' & \r50%\r\nnext";
    let from_log = String::from_utf8_lossy(b"ok\n\x16\x03\x01\xff\n").into_owned();
    let mut files = Vec::new();
    for text in [nasty, &from_log, &"ü😀]]>\u{1b}".repeat(20_000), ""] {
        let record = full_of(text);
        let report = read(&record);
        assert_eq!(report.failures, 1);
        let xml = record.junit("x");
        assert!(xml.len() < 400_000, "{}", xml.len());
        files.push(xml);
    }
    let TestCaseStatus::NonSuccess { description: Some(text), .. } =
        &read(&full_of(nasty)).test_suites[0].test_cases[0].status.clone()
    else {
        panic!("no failure");
    };
    assert!(text.as_str().contains("red \u{fffd}\u{fffd}"), "{text:?}");
    assert!(text.as_str().contains("]]> <![CDATA[ \"q\" 'a' & \n50%\nnext"), "{text:?}");
    strict_parser_agrees(&files);
}

/// Python's expat refuses what XML does not allow. Where there is no Python the reader above has to do.
fn strict_parser_agrees(files: &[String]) {
    let dir = tempfile::tempdir().unwrap();
    for (at, file) in files.iter().enumerate() {
        std::fs::write(dir.path().join(format!("junit_{at}.xml")), file).unwrap();
    }
    let script = "import glob, sys, xml.etree.ElementTree as tree\nfor name in glob.glob(sys.argv[1] + '/*.xml'):\n    cases = tree.parse(name).getroot().findall('.//testcase')\n    assert len(cases) == 1 and cases[0].get('time') == '1.000', name\n";
    let python = std::process::Command::new("python3").args(["-c", script]).arg(dir.path()).output();
    if let Ok(output) = python {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn random_bytes_give_a_readable_file(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let xml = full_of(&text).junit(&text);
        proptest::prop_assert!(Report::deserialize_from_str(&xml).is_ok(), "{xml}");
        let forbidden = |c: char| (c.is_control() && !"\n\t".contains(c)) || "\u{fffe}\u{ffff}".contains(c);
        proptest::prop_assert!(!xml.contains(forbidden));
    }
}
