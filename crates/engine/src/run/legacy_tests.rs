use super::tests::{at, failed_run, json_file, name, planned, started, step_ended, step_started};
use super::*;
use crate::event::{Ended, Event, Reporter, Role};
use crate::journal::Records;
use crate::why::{Exit, FailureVerdict, ObjectRef, Why};

#[test]
fn the_files_of_older_readers_are_there() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    for event in failed_run() {
        dir.event(&event);
    }
    let log = json_file(&dir.path().join("_ansible.log.json"));
    let last = log.as_array().unwrap().last().unwrap();
    insta::assert_json_snapshot!(last, @r#"
    {
      "log_level": "info",
      "scope": "playbook",
      "stats": {
        "localhost": {
          "changed": 2,
          "failures": 2,
          "ignored": 0,
          "ok": 4,
          "rescued": 0,
          "skipped": 1,
          "unreachable": 0
        }
      },
      "status": "finished"
    }
    "#);
    let failed = &log[4];
    assert_eq!(
        (&failed["status"], &failed["log_level"], &failed["ignore_errors"]),
        (&"FAILED".into(), &"error".into(), &false.into())
    );
    let text = std::fs::read_to_string(dir.path().join("_ansible.log")).unwrap();
    assert!(text.contains("2026-01-01T00:03:20.000Z nodes: changed: 2 nodes\n"), "{text}");
    for command in ["_ansible.cmd", "command.txt"] {
        let command = std::fs::read_to_string(dir.path().join(command)).unwrap();
        assert_eq!(command, "tbx gpu-operator deploy --channel 'v1.11 beta'\n");
    }
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "_ansible.cmd",
            "_ansible.log",
            "_ansible.log.json",
            "command.txt",
            "events.jsonl",
            "journal.jsonl",
            "junit_gpu-operator-deploy-from-operatorhub.xml",
            "report.html",
            "summary.json"
        ]
    );
}

#[test]
fn each_verb_of_a_flow_has_its_own_directory_and_counts_its_own_steps() {
    let root = tempfile::tempdir().unwrap();
    let flow = VerbName::new("gpu-operator", "test_operatorhub");
    let options =
        RunDirOptions { report: Some("test_operatorhub-summary.html".to_owned()), ..RunDirOptions::default() };
    let dir = RunDir::unnumbered(root.path(), &flow, options).unwrap();
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let nfd = dir.part(&VerbName::new("nfd-operator", "deploy"), &["nfd."], &words(&["tbx", "nfd", "deploy"])).unwrap();
    let wait =
        dir.part(&VerbName::new("nfd", "wait_labels"), &["nfd.wait"], &words(&["tbx", "nfd", "wait labels"])).unwrap();
    let flake =
        Why { verdict: FailureVerdict::KnownFlake, ..Why::waiting(ObjectRef::thing("Pod", "p"), "x", "is a flake") };
    for event in [
        at(0.0, started(&["tbx", "prow"])),
        at(
            0.0,
            Event::Planned {
                steps: vec![
                    planned("nfd.sub", &[], Role::Change),
                    planned("nfd.wait-csv", &[], Role::Wait),
                    planned("other", &[], Role::Ask),
                ],
            },
        ),
        at(0.0, step_started("nfd.sub")),
        at(0.0, step_started("nfd.wait-csv")),
        at(1.0, step_ended("nfd.sub", Ended::AlreadySo { what: String::new() })),
        at(2.0, step_ended("nfd.wait-csv", Ended::Failed { why: flake.clone() })),
        at(2.0, step_ended("other", Ended::NotRun { reason: "x".into() })),
        at(2.0, Event::RunEnded { exit: Exit::Failed, why: Some(flake) }),
    ] {
        dir.event(&event);
    }
    wait.mark_flake("seen before");
    wait.mark_flake("seen before");
    nfd.mark_expected_fail("are there labels?");
    dir.mark_failure("Pod/p: is a flake");
    dir.step_file("nfd.wait-csv", "objects/csv.json", b"{}");
    dir.step_file("nfd.sub", "FLAKE", b"the catalog was late\n");
    dir.step_file("other", "x.txt", b"x");
    assert!(wait.path().join("objects/csv.json").exists() && nfd.path().join("FLAKE").exists());
    assert!(root.path().join("x.txt").exists() && !root.path().join("FLAKE").exists());
    let stats = |path: &std::path::Path| {
        json_file(&path.join("_ansible.log.json")).as_array().unwrap().last().unwrap()["stats"]["localhost"].clone()
    };
    assert_eq!((stats(nfd.path())["ok"].clone(), stats(nfd.path())["failures"].clone()), (1.into(), 0.into()));
    assert_eq!((stats(wait.path())["ok"].clone(), stats(wait.path())["failures"].clone()), (0.into(), 1.into()));
    let text = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
    assert_eq!(text(wait.path().join("FLAKE")), "Pod/p: is a flake\nseen before\n");
    assert_eq!(text(wait.path().join("_ansible.cmd")), "tbx nfd 'wait labels'\n");
    assert_eq!(text(nfd.path().join("EXPECTED_FAIL")), "are there labels?\n");
    assert_eq!(text(root.path().join("FAILURE")), "Pod/p: is a flake\n");
    assert!(nfd.path().ends_with("000__nfd_operator__deploy") && wait.path().ends_with("001__nfd__wait_labels"));
    assert!(root.path().join("test_operatorhub-summary.html").exists());
    assert!(root.path().join("junit_gpu-operator-test-operatorhub.xml").exists());
    assert!(!root.path().join("_ansible.log.json").exists());
}

#[test]
fn a_run_that_could_not_begin_counts_as_failed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = RunDir::create(parent.path(), &name(), RunDirOptions::default()).unwrap();
    dir.event(&at(0.0, started(&["tbx"])));
    dir.event(&at(0.0, Event::RunEnded { exit: Exit::Access, why: Some(super::tests::broken()) }));
    let log = json_file(&dir.path().join("_ansible.log.json"));
    assert_eq!(log[0]["stats"]["localhost"]["failures"], 1);
}
