//! Scenario files from outside: what is wrong with one is told in one message, and what one expects is looked at.

use crate::common::World;

/// One message with exit code 3, and nothing run.
#[track_caller]
fn refused(world: &World, text: &str, message: &str) {
    let file = world.write("s.yaml", text);
    let run = world.run(&["rehearse", "--scenario", &file, "demo", "put", "a"]);
    run.assert(3);
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.err);
    assert!(lines[0].starts_with(&format!("error: file/{file}: {message}")), "{}", run.err);
    assert!(lines[1].starts_with("next: "), "{}", run.err);
    assert_eq!((run.out.as_str(), world.files().len()), ("", 0));
}

#[test]
fn malformed_impossible_and_newer_files_exit_with_3_and_one_message() {
    let world = World::new();
    for (text, message) in [
        ("name: a\ntimings:\n  nodeBoots: 3\n", "line 3, `timings.nodeBoots`: unknown field `nodeBoots`"),
        ("name: [a\n", "line 1: unclosed bracket"),
        ("\u{0}", "line 1: "),
        ("timings: {nodeBoot: {min: 9000}}\n", "line 1, `timings.nodeBoot`: wants 0 <= min"),
        ("instanceTypes:\n  m5.xlarge: null\n", "line 2, `machineSets[0].instanceType`: `m5.xlarge` is not among"),
        ("catalogs:\n- name: a\n  packages:\n  - name: b\n", "line 4, `catalogs[0].packages[0].defaultChannel`: "),
        ("schema: 7\nfrom: the future\n", "it is written for version 7 of scenario files, and 1 is the newest"),
        (
            "objects:\n- {apiVersion: a/v1, kind: Nothing, metadata: {name: x}}\n",
            "cannot create `Nothing/x` of the scenario",
        ),
    ] {
        refused(&world, text, message);
    }
}

#[test]
fn a_run_is_held_against_what_its_scenario_expects() {
    let world = World::new();
    let run = |text: &str, words: &[&str]| {
        let file = world.write("s.yaml", text);
        world.run(&[&["rehearse", "--scenario", &file], words].concat())
    };
    let put = ["demo", "put", "a"];
    let met = run("expect: {result: passed, exitCode: 0, firstLine: nothing x1}\n", &put);
    assert!(
        met.assert(0).err.contains("as expected by ") && met.err.contains(": passed, exit code 0, "),
        "{}",
        met.err
    );
    // A failure that is expected is what was wanted.
    let failure = run("expect: {result: failed, exitCode: 5, makespan: {min: 1}}\n", &["demo", "wait-forever"]);
    assert!(failure.assert(0).err.contains(": failed, exit code 5, "), "{}", failure.err);
    let missed = run("expect: {exitCode: 5, verdict: product}\n", &put);
    let line = "not as expected: exit code: expected 5, got 0; verdict: expected product, got none";
    let last: Vec<&str> = missed.assert(1).err.lines().rev().take(2).collect();
    assert!(last[1].starts_with("error: scenario/") && last[1].ends_with(line), "{}", missed.err);
    assert!(last[0].starts_with("next: "), "{}", missed.err);
    assert_eq!(missed.out, "nothing x1\n");
}

#[test]
fn a_scenario_can_name_the_verb_it_is_about() {
    let world = World::new();
    let text = "expect: {command: demo put a --value mine, exitCode: 5}\n";
    let file = world.write("s.yaml", text);
    let named = world.run(&["rehearse", "--scenario", &file]);
    assert_eq!(named.assert(1).out, "mine x1\n");
    // Another verb is not what it is about.
    let other = world.run(&["rehearse", "--scenario", &file, "demo", "put", "b"]);
    assert_eq!(other.assert(0).out, "nothing x1\n");
    assert!(!other.err.contains("expected"), "{}", other.err);
    let without = world.write("t.yaml", "name: t\n");
    let none = world.run(&["rehearse", "--scenario", &without]);
    assert!(
        none.assert(2).err.starts_with("error: flag/VERB: a rehearsal needs a verb, and the scenario"),
        "{}",
        none.err
    );
    let wrong = world.write("u.yaml", "expect: {command: demo putt a}\n");
    assert!(world.run(&["rehearse", "--scenario", &wrong]).assert(2).err.contains("'putt'"));
}

#[test]
fn faults_strike_at_their_moment_or_when_something_happens() {
    let world = World::new();
    let run = |text: &str| {
        let file = world.write("s.yaml", text);
        world.run(&["rehearse", "--scenario", &file, "demo", "put", "a"]).assert(0).err.clone()
    };
    let never = run("faults: [{name: csv-failed, when: no such step}]\nseed: 3\n");
    assert!(never.contains("faults csv-failed when `no such step`, seed 3"), "{never}");
    assert!(never.contains("note: csv-failed when `no such step`: no step of that id started"), "{never}");
    let struck = run("faults: [{name: csv-failed, when: demo.apply}]\n");
    assert!(!struck.contains("no step of that id started"), "{struck}");
    let file = world.write("s.yaml", "name: x\nfaults: [{name: csv-failed, when: demo.apply}]\n");
    let served = world.run(&["rehearse", "--scenario", &file, "--serve", "--", "true"]);
    assert!(served.assert(3).err.contains("`faults[0].when`: a cluster that is served"), "{}", served.err);
}
