//! A cluster that outlives the program: the simulated one, served over HTTPS to several runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::common::{World, held, send};

/// A served cluster; it ends with the test.
struct Served {
    child: Child,
}

impl Served {
    /// Starts one, and points the world's runs at it.
    fn start(world: &World) -> Self {
        Self::seeded(world, "0")
    }

    /// One that is not the same as those of other seeds.
    fn seeded(world: &World, seed: &str) -> Self {
        let words = ["rehearse", "--serve", "--speed", "50", "--seed", seed];
        let mut child = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap();
        world.env("KUBECONFIG", kubeconfig);
        Self { child }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_second_run_changes_nothing_and_says_so_and_a_cleanup_takes_the_first_back() {
    let world = World::new();
    let _served = Served::start(&world);
    let first = world.run(&["demo", "put", "a"]);
    first.assert(0);
    assert!(first.err.contains("changed  demo.apply: created ConfigMap default/a"), "{}", first.err);
    assert!(first.err.contains("cluster: https://127.0.0.1:"), "{}", first.err);
    let second = world.run(&["demo", "put", "a"]);
    second.assert(0);
    assert!(second.err.contains("ok       demo.apply: "), "{}", second.err);
    assert!(second.err.contains("(2 already so)"), "{}", second.err);
    let run = world.file("000__demo__put").display().to_string();
    let taken = world.run(&["cleanup", &run]);
    taken.assert(0);
    assert!(taken.err.contains("cleanup.take-back: took back 1"), "{}", taken.err);
    world.run(&["demo", "has-map", "a"]).assert(1);
    let again = world.run(&["cleanup", &run]);
    again.assert(0);
    assert!(again.err.contains("all 1 were gone already"), "{}", again.err);
}

#[test]
fn a_run_that_meets_another_one_names_it_and_touches_nothing() {
    let world = World::new();
    let _served = Served::start(&world);
    let (mut first, mut err) = held(&world, &["demo", "put", "a", "--hold-at", "demo.wait"]);
    let second = world.run(&["demo", "put", "b"]);
    second.assert(4);
    let refusal = "error: Lease/default/tbx: another run works on this cluster: demo put on host ";
    assert!(second.err.contains(refusal), "{}", second.err);
    assert!(second.err.contains(&format!(", pid {}, run ", first.id())), "{}", second.err);
    // Reading is nobody's loss.
    world.run(&["demo", "has-map", "b"]).assert(1);
    world.run(&["demo", "put", "b", "--force-lock"]).assert(0);
    send(&first, "INT");
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("left on the cluster:\n  ConfigMap/default/a\n  take it back: tbx cleanup "), "{rest}");
    world.run(&["demo", "put", "c"]).assert(0);
}

#[test]
fn a_run_that_was_killed_is_resumed_and_proves_again_what_it_had_done() {
    let world = World::new();
    let _served = Served::start(&world);
    let (mut killed, _) = held(&world, &["demo", "put", "a", "--hold-at", "demo.wait"]);
    send(&killed, "KILL");
    killed.wait().unwrap();
    let run = world.file("000__demo__put").display().to_string();
    let resumed = world.run(&["demo", "put", "a", "--resume", &run, "--force-lock"]);
    resumed.assert(0);
    assert!(resumed.err.contains("ok       demo.apply: "), "{}", resumed.err);
    let journal =
        |number: &str| std::fs::read_to_string(world.file(&format!("{number}__demo__put/journal.jsonl"))).unwrap();
    let id = |text: &str| text.lines().find(|line| line.contains("run.id")).unwrap().to_owned();
    assert_eq!(id(&journal("000")), id(&journal("001")));
    let summary = std::fs::read_to_string(world.file("001__demo__put/summary.json")).unwrap();
    assert!(summary.contains(&format!("\"resumes\": \"{run}\"")), "{summary}");
    let taken = world.run(&["cleanup", &world.file("001__demo__put").display().to_string()]);
    taken.assert(0);
    assert!(taken.err.contains("took back 1"), "{}", taken.err);
}

#[test]
fn a_resumed_run_that_fails_lists_what_its_first_part_left_as_far_as_it_is_there() {
    let world = World::new();
    let _served = Served::start(&world);
    let (mut killed, _) = held(&world, &["demo", "fail-later", "--hold-at", "demo.fail"]);
    send(&killed, "KILL");
    killed.wait().unwrap();
    let run = |number: &str| world.file(&format!("{number}__demo__fail_later")).display().to_string();
    let left = |number: &str| -> Vec<String> {
        let summary = std::fs::read(world.file(&format!("{number}__demo__fail_later/summary.json"))).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        let all = summary["leftovers"].as_array().unwrap().iter();
        all.map(|one| format!("{}/{}", one["name"].as_str().unwrap(), one["uid"].as_str().unwrap())).collect()
    };
    let resume = |from: &str| world.run(&["demo", "fail-later", "--resume", &run(from), "--force-lock"]);
    let first = resume("000");
    first.assert(1);
    assert!(first.err.contains("left on the cluster:\n  ConfigMap/default/half-done\n"), "{}", first.err);
    assert_eq!(left("001"), left("000"));
    // Killed after the create and before its answer was written down: it is found by the run's id.
    let journal = world.file("000__demo__fail_later/journal.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    let torn: Vec<&str> = whole.lines().filter(|line| !line.contains("\"made\"")).collect();
    assert!(torn.len() + 1 == whole.lines().count(), "{whole}");
    std::fs::write(&journal, format!("{}\n", torn.join("\n"))).unwrap();
    resume("000").assert(1);
    assert_eq!(left("002"), left("001"));
    // What is gone is not left, and another object of the name is not the same.
    world.run(&["cleanup", &run("002")]).assert(0);
    resume("002").assert(1);
    assert_eq!(left("004").len(), 1);
    assert_ne!(left("004"), left("002"));
}

#[test]
fn a_run_is_neither_resumed_nor_taken_back_on_another_cluster() {
    let world = World::new();
    let served = Served::start(&world);
    world.run(&["demo", "put", "a"]).assert(0);
    let run = world.file("000__demo__put").display().to_string();
    drop(served);
    let _other = Served::seeded(&world, "7");
    for words in [&["cleanup", &run][..], &["demo", "put", "a", "--resume", &run]] {
        let refused = world.run(words);
        refused.assert(2);
        assert!(refused.err.contains(": that run was on another cluster than this one\n"), "{}", refused.err);
    }
    world.run(&["demo", "has-map", "a"]).assert(1);
}

#[test]
fn an_object_of_the_live_cluster_is_explained() {
    let world = World::new();
    let _served = Served::start(&world);
    let run = world.run(&["why", "machineset/demo-x7k2p-worker-a", "-n", "openshift-machine-api"]);
    run.assert(0);
    assert_eq!(
        run.out,
        "MachineSet/openshift-machine-api/demo-x7k2p-worker-a: has its 1 machines\nwhy: nothing holds it up\n"
    );
    let run = world.run(&["why", "pod/nobody"]);
    run.assert(1);
    assert!(run.err.contains("error: Pod/default/nobody: does not exist\n"), "{}", run.err);
}

#[test]
fn a_command_runs_against_a_cluster_that_lives_as_long_as_it() {
    let world = World::new();
    let program = crate::common::program().display().to_string();
    let run = world.run(&["rehearse", "--serve", "--", &program, "demo", "put", "a"]);
    run.assert(0);
    assert_eq!(run.out, "nothing x1\n");
    assert!(run.err.starts_with("REHEARSAL: scenario default, no faults, seed 0, at 1 times real time"), "{}", run.err);
    world.run(&["rehearse", "--serve", "--", "/bin/sh", "-c", "test -f $KUBECONFIG && exit 9"]).assert(9);
    assert_eq!(
        std::fs::read_dir(world.root())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "kubeconfig"))
            .count(),
        0
    );
    world.run(&["rehearse", "--serve", "demo", "put", "a"]).assert(2);
}

#[test]
fn a_signal_to_a_served_cluster_ends_its_command_too() {
    let world = World::new();
    let words = ["rehearse", "--serve", "--", "/bin/sh", "-c", "echo up; exec /bin/cat"];
    let mut command = world.command(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // It would read from us for ever.
    let _open = child.stdin.take();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    send(&child, "TERM");
    out.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_damaged_journal_is_taken_back_as_far_as_it_can_be_read_and_is_no_success() {
    let world = World::new();
    let _served = Served::start(&world);
    world.run(&["demo", "put", "a"]).assert(0);
    let file = world.file("000__demo__put/journal.jsonl");
    let journal = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{{\"entry\": \"made\", \"ob\n{journal}")).unwrap();
    let run = world.file("000__demo__put").display().to_string();
    let resumed = world.run(&["demo", "put", "a", "--resume", &run]);
    resumed.assert(3);
    assert!(resumed.err.contains("journal.jsonl: line 1 cannot be read"), "{}", resumed.err);
    let taken = world.run(&["cleanup", &run]);
    taken.assert(6);
    assert!(taken.err.contains("error: file/journal.jsonl: line 1 cannot be read"), "{}", taken.err);
    world.run(&["demo", "has-map", "a"]).assert(1);
}

#[test]
fn a_signal_reaches_the_command_and_its_exit_code_comes_back() {
    let world = World::new();
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let words = ["rehearse", "--serve", "--", "/bin/sh", "-c", script];
    let mut child = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    send(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(7));
    world.run(&["rehearse", "--serve", "--", "/bin/sh", "-c", "kill -KILL $$"]).assert(137);
}

#[test]
fn time_does_not_jump_for_clients_outside() {
    let run = World::new().run(&["rehearse", "--serve", "--speed", "max"]);
    run.assert(2);
    assert!(run.err.contains("write a number between 0.01 and 10000"), "{}", run.err);
}

#[test]
fn a_cluster_is_recorded_and_shown_again() {
    let world = World::new();
    let _served = Served::start(&world);
    let file = world.write("recorded.yaml", "");
    let run = world.run(&["rehearse", "--record", &file, "--for", "2s"]);
    run.assert(0);
    assert!(run.out.starts_with(&format!("{file}: ")) && run.out.contains(" objects, "), "{}", run.out);
    assert!(run.err.contains("cluster: https://127.0.0.1:") && !run.err.contains("note: "), "{}", run.err);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("name: demo-x7k2p-worker-a") && text.contains("platform: aws"), "{text}");
    // The same machines, and a run on top of them.
    world.env("KUBECONFIG", "/nowhere");
    let shown = world.run(&["rehearse", "--scenario", &file, "demo", "put", "a"]);
    assert_eq!(shown.assert(0).out, "nothing x1\n");
    assert!(shown.err.contains(&format!("REHEARSAL: scenario {file}, no faults")), "{}", shown.err);
    let verb = world.run(&["rehearse", "--record", &file, "demo", "put", "a"]);
    assert!(verb.assert(2).err.starts_with("error: flag/--record: a recording runs no verb"), "{}", verb.err);
    let nowhere = world.run(&["rehearse", "--record", "/nowhere/x.yaml", "--kubeconfig", "/nowhere/k"]);
    assert_ne!(nowhere.code, 0);
}
