//! The command line as a user meets it: a spawned program, its exit codes, its first lines, its files.

use crate::common::{Run, World};

#[test]
fn a_verb_in_the_rehearsal_says_what_it_did_and_where_its_files_are() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "put", "hello", "--value", "4.10"]);
    run.assert(0);
    assert_eq!(run.out, "4.10 x1\n");
    insta::assert_snapshot!(run.shown(&world), @r"
    REHEARSAL: scenario default, no faults, seed 0; nothing here is real
    cluster: https://rehearsal.invalid:6443 (OpenShift 4.11.27, Kubernetes v1.24.17), from the rehearsal
    run directory: [DIR]/000__demo__put
         0s  changed  demo.apply: created ConfigMap default/hello
         0s  ok       demo.wait: it is there
    passed: demo put in 0s (1 changed, 1 already so)
    run directory: [DIR]/000__demo__put
    report: [DIR]/000__demo__put/report.html
    this was a rehearsal (scenario default, no faults, seed 0); no real cluster was touched
    ");
    for file in ["summary.json", "events.jsonl", "journal.jsonl", "report.html", "junit_demo-put.xml", "command.txt"] {
        assert!(world.file(&format!("000__demo__put/{file}")).exists(), "{file}");
    }
}

#[test]
fn the_result_is_all_that_is_on_stdout() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "put", "hello", "-o", "json"]);
    run.assert(0);
    assert_eq!(run.json(), serde_json::json!({"value": "nothing x1"}));
    let run = world.run(&["rehearse", "demo", "put", "hello", "--output=yaml"]);
    assert_eq!(run.out, "value: nothing x1\n");
}

#[test]
fn a_failure_says_first_what_and_next_and_why() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "fail-later", "-o", "json"]);
    run.assert(1);
    let json = run.json();
    assert_eq!((&json["exit_code"], &json["error"]["code"]), (&1.into(), &"not-there".into()));
    let shown = run.shown(&world);
    let ending = shown.split_once("error: ").unwrap().1;
    insta::assert_snapshot!(ending, @r"
    Pod/default/driver: is not there
    next: put it there: demo put NAME
      log:
      | first line
      | second line
    failed: demo fail_later in 0s (1 changed, 1 already so, 1 failed), exit code 1, the product under test
    left on the cluster:
      ConfigMap/default/half-done
    run directory: [DIR]/000__demo__fail_later
    report: [DIR]/000__demo__fail_later/report.html
    this was a rehearsal (scenario default, no faults, seed 0); no real cluster was touched
    ");
}

#[test]
fn an_undo_takes_back_what_the_failed_run_made() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "fail-later", "--undo-on-failure"]);
    run.assert(1);
    assert!(run.err.contains("undo: took back 1"), "{}", run.err);
    assert!(!run.err.contains("left on the cluster"), "{}", run.err);
}

#[test]
fn a_probe_answers_no_with_1_and_is_no_failure() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "has-map", "x"]);
    run.assert(1);
    assert!(run.err.contains("\nno: ConfigMap/default/x: is not there\n"), "{}", run.err);
    assert!(run.err.contains("  no       demo.look: ConfigMap/default/x: is not there\n"), "{}", run.err);
    assert!(!run.err.contains("error:") && !run.err.contains("FAILED"), "{}", run.err);
}

#[test]
fn a_wait_that_reaches_its_deadline_quotes_its_reason() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "wait-forever", "--deadline", "never=90s"]);
    run.assert(5);
    assert!(run.err.contains("error: Pod/default/godot: has not come (gave up after 1m30s)\n"), "{}", run.err);
    assert!(run.err.contains("next: see what holds it up: tbx why Pod/godot -n default\n"), "{}", run.err);
}

#[test]
fn a_runs_own_deadline_says_what_it_was_waiting_for() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "wait-forever", "--run-deadline", "5m"]);
    run.assert(5);
    assert!(
        run.err.contains("error: Pod/default/godot: has not come (gave up after 5m)\nnext: give the run more time"),
        "{}",
        run.err
    );
    assert!(run.err.contains("ok       demo.capture: looked around"), "{}", run.err);
}

#[test]
fn a_bug_of_ours_is_said_shortly_and_exits_with_70() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "bug"]);
    run.assert(70);
    assert!(run.err.contains("error: tbx: a bug of this program: invariant: broken on purpose"), "{}", run.err);
    assert!(!run.err.contains("RUST_BACKTRACE"), "{}", run.err);
}

#[test]
fn the_same_seed_gives_the_same_bytes_wherever_the_files_go() {
    let (one, two) = (World::new(), World::new());
    let words = ["rehearse", "--seed", "7", "demo", "fail-later"];
    one.run(&words).assert(1);
    two.run(&words).assert(1);
    let read = |world: &World| std::fs::read(world.file("000__demo__fail_later/events.jsonl")).unwrap();
    assert_eq!(read(&one), read(&two));
    let text = String::from_utf8(read(&one)).unwrap();
    assert!(!text.contains(&*one.root()), "{text}");
}

#[test]
fn a_second_run_beside_the_first_has_the_next_number() {
    let world = World::new();
    world.run(&["rehearse", "demo", "put", "a"]).assert(0);
    world.run(&["rehearse", "demo", "put", "b"]).assert(0);
    assert!(world.file("001__demo__put/summary.json").exists());
}

#[test]
fn a_secret_option_is_in_no_file_and_no_output() {
    let world = World::new();
    let run =
        world.run(&["rehearse", "demo", "put", "a", "--api-token", "hush-hush-token", "--value", "hush-hush-token"]);
    run.assert(0);
    assert!(!run.err.contains("hush-hush-token"), "{}", run.err);
    assert_eq!(run.out, "*** x1\n");
    let run = world.run(&[
        "rehearse",
        "demo",
        "put",
        "a",
        "--api-token",
        "hush-hush-token",
        "--value",
        "hush-hush-token",
        "-o",
        "json",
    ]);
    assert_eq!(run.json(), serde_json::json!({"value": "*** x1"}));
    for file in world.files() {
        let content = std::fs::read(&file).unwrap();
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains("hush-hush-token"), "{}", file.display());
    }
    let run = world.env("TBX_DEMO_PUT_API_TOKEN", "hush-hush-token").run(&["config"]);
    assert!(run.out.contains("demo.put.api-token") && run.out.contains("***"), "{}", run.out);
    assert!(!run.out.contains("hush-hush-token"), "{}", run.out);
}

#[test]
fn a_plan_changes_nothing_and_leaves_no_files() {
    let world = World::new();
    let run = world.run(&["rehearse", "demo", "put", "a", "--plan"]);
    run.assert(0);
    insta::assert_snapshot!(run.out, @r"
    demo put would make 1 change, as far as can be told now
      1. demo.apply: Apply the ConfigMap
         would create ConfigMap default/a
      2. demo.wait: The ConfigMap is seen
         waits
         after demo.apply; at most 1m (--deadline map=…)
    ");
    assert_eq!(world.files(), Vec::<std::path::PathBuf>::new());
    let run = world.run(&["rehearse", "demo", "put", "a", "--plan", "-o", "json"]);
    assert_eq!(run.json()["steps"][0]["would"][0], "create ConfigMap default/a");
}

#[test]
fn a_run_is_rendered_again_and_compared() {
    let world = World::new();
    world.run(&["rehearse", "demo", "put", "a"]).assert(0);
    world.run(&["rehearse", "demo", "fail-later"]).assert(1);
    let (a, b) = (world.file("000__demo__put"), world.file("001__demo__fail_later"));
    std::fs::remove_file(a.join("report.html")).unwrap();
    let run = world.run(&["report", &a.display().to_string()]);
    run.assert(0);
    assert!(run.out.contains("demo.apply  changed: created ConfigMap default/a"), "{}", run.out);
    assert!(a.join("report.html").exists());
    let run = world.run(&["report", &a.display().to_string(), &b.display().to_string()]);
    run.assert(0);
    assert!(run.out.contains("demo.fail"), "{}", run.out);
    assert!(run.out.contains("absent / failed"), "{}", run.out);
    let run = world.run(&["report", "/nowhere"]);
    run.assert(3);
    assert!(run.err.starts_with("error: file//nowhere: is no run directory"), "{}", run.err);
}

#[test]
fn completions_and_manual_pages_are_made() {
    let world = World::new();
    let run: Run = world.run(&["completions", "bash"]);
    run.assert(0);
    assert!(run.out.contains("_demo()"), "{}", run.out);
    let dir = world.file("man");
    world.run(&["man", &dir.display().to_string()]).assert(0);
    assert!(dir.join("demo-demo-put.1").exists());
}
