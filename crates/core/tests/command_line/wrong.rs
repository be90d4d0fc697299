//! Wrong words, files and variables: one clear message, the right exit code, nothing touched.

use crate::common::{Run, World};

#[track_caller]
fn refused(run: &Run, code: i32, first: &str) {
    run.assert(code);
    let errors = run.err.lines().filter(|line| line.starts_with("error:")).count();
    assert_eq!(errors, 1, "{}", run.err);
    let line = run.err.lines().find(|line| line.starts_with("error:")).unwrap();
    assert!(line.starts_with(first), "{line}");
    assert!(run.err.lines().any(|line| line.starts_with("next: ")), "{}", run.err);
    assert_eq!(run.out, "");
}

#[test]
fn wrong_words_exit_with_2() {
    let world = World::new();
    for (words, first) in [
        (&["demo", "put", "a", "--nope"][..], "error: unexpected argument '--nope' found"),
        (&["demo", "putt", "a"], "error: unrecognized subcommand 'putt'"),
        (&["demoo"], "error: unrecognized subcommand 'demoo'"),
        (&["demo", "put"], "error: the following required arguments were not provided:"),
        (&["demo", "put", "a", "--replica-count", "-1"], "error: invalid value '-1' for '--replica-count"),
        (&["demo", "put", "a", "--force=maybe"], "error: invalid value 'maybe' for '--force"),
        (
            &["demo", "put", "a", "--run-deadline", "soon"],
            "error: invalid value 'soon' for '--run-deadline <DURATION>'",
        ),
        (&["demo", "put", "a_b"], "error: flag/NAME: `a_b` is no name of a ConfigMap"),
        (&["demo", "put", "a", "--log-filter", "a=b=c"], "error: flag/--log-filter: "),
        (&["demo", "put", "a", "--run-deadline", "0"], "error: invalid value '0' for '--run-deadline <DURATION>'"),
        (&["demo", "put", "a", "--deadline", "=5m"], "error: invalid value '=5m' for '--deadline <NAME=DURATION>'"),
        (&["demo", "put", "a", "--as", ""], "error: a value is required for '--as <USER>'"),
        (&["demo", "put", "a", "--as-group", "g"], "error: flag/--as-group: a group needs a user"),
        (&["demo", "put", "a", "--kubeconfig="], "error: a value is required for '--kubeconfig <FILE>'"),
        (&["demo", "put", "a", "--config", ""], "error: a value is required for '--config <FILE>'"),
        (&["why", "x"], "error: flag/KIND/NAME: `x` names no object"),
        (&["why", "pod/x/y"], "error: flag/KIND/NAME: `pod/x/y` names more than one object"),
        (&["why", "foo/x"], "error: flag/KIND/NAME: `foo` is no kind that is known here"),
        (&["why", "pod/x", "-n", "A B"], "error: invalid value 'A B' for '--namespace <NAMESPACE>'"),
        (&["rehearse"], "error: flag/VERB: a rehearsal needs a verb"),
        (&["rehearse", "demo", "put", "a", "--deadline", "csvv=1m"], "error: flag/--deadline: `csvv` is neither"),
        (&["rehearse", "demo", "put", "a", "--hold-at", "nowhere"], "error: flag/--hold-at: `nowhere` is no step"),
    ] {
        refused(&world.run(words), 2, first);
    }
    let suggestion = world.run(&["demo", "putt", "a"]);
    assert!(suggestion.err.contains("'put'"), "{}", suggestion.err);
    assert!(suggestion.err.ends_with("next: see demo demo --help\n"), "{}", suggestion.err);
}

#[test]
fn both_spellings_are_accepted_everywhere() {
    let world = World::new();
    for words in [
        ["rehearse", "old_demo", "put", "a", "--replica_count=2", "--undo_on_failure"],
        ["rehearse", "old-demo", "put", "a", "--replica-count=2", "--undo-on-failure=no"],
    ] {
        let run = world.run(&words);
        run.assert(0);
        assert_eq!(run.out, "nothing x2\n");
    }
}

#[test]
fn a_wrong_scenario_or_fault_exits_with_3() {
    let world = World::new();
    let file = world.write("s.yaml", "kubernetes: [1]\n");
    for (words, first) in [
        (["--scenario", "nope"], "error: file/nope: no scenario is called `nope`; known are default"),
        (["--scenario", "/nope.yaml"], "error: file//nope.yaml: the scenario cannot be read"),
        (["--scenario", &file], &format!("error: file/{file}: ")),
        (["--fault", "nope"], "error: flag/--fault: no fault is called `nope`; known are"),
    ] {
        refused(&world.run(&["rehearse", words[0], words[1], "demo", "put", "a"]), 3, first);
    }
}

#[test]
fn an_unusable_artifact_directory_exits_with_3_before_anything_is_touched() {
    let world = World::new();
    let file = world.write("file", "");
    let run = world.run(&["rehearse", "demo", "put", "a", "--artifact-dir", &format!("{file}/below")]);
    refused(&run, 3, &format!("error: artifact-dir/{file}/below: cannot be created: not a directory"));
    let run = world.run(&["rehearse", "demo", "put", "a", "--artifact-dir="]);
    refused(&run, 2, "error: a value is required for '--artifact-dir <DIR>' but none was supplied");
    let run = Run::from(
        world
            .command(&["rehearse", "demo", "put", "a"])
            .env_remove("ARTIFACT_DIR")
            .env("OPENSHIFT_CI", "true")
            .output()
            .unwrap(),
    );
    refused(&run, 3, "error: artifact-dir/ARTIFACT_DIR: is not set, although this is a CI");
}

#[test]
fn a_wrong_configuration_names_file_line_field_and_what_is_allowed() {
    let world = World::new();
    let file = world.write("c.yaml", "grace: 20s\ndemo:\n  put:\n    valeu: x\n");
    let run = world.run(&["--config", &file, "rehearse", "demo", "put", "a"]);
    refused(
        &run,
        3,
        &format!(
            "error: file/{file}: line 4, `demo.put`: unknown setting `valeu`, allowed are api-token, force, replica-count, value"
        ),
    );
    let file = world.write("d.yaml", "demo:\n  put:\n    replica-count: 12\n");
    let run = world.run(&["--config", &file, "rehearse", "demo", "put", "a"]);
    refused(
        &run,
        3,
        &format!("error: file/{file}: line 3, `demo.put.replica-count`: `12` is not allowed: 12 is not in 0..=9"),
    );
    let file = world.write("e.yaml", "deadlines: {map: soon}\n");
    refused(
        &world.run(&["config", "--config", &file]),
        3,
        &format!("error: file/{file}: `deadlines.map`: `soon` is no duration"),
    );
    refused(
        &world.run(&["config", "--config", "/nowhere.yaml"]),
        3,
        "error: file//nowhere.yaml: the configuration file cannot be read",
    );
    let run = world.env("TBX_COLOR", "pink").run(&["config"]);
    refused(&run, 3, "error: variable/$TBX_COLOR: `pink` is not allowed, allowed are auto, always, never");
    world.run(&["--help"]).assert(0);
}

#[test]
fn settings_come_from_flag_then_environment_then_file_then_default() {
    let world = World::new();
    world.write("tbx.yaml", "demo:\n  put: {value: 4.10, replica_count: 3, force: true}\ndeadlines: {map: 5m}\n");
    assert_eq!(world.run(&["rehearse", "demo", "put", "a"]).assert(0).out, "4.10 x3!\n");
    world.env("DEMO_VALUE", "from-env");
    assert_eq!(world.run(&["rehearse", "demo", "put", "a"]).out, "from-env x3!\n");
    let run = world.run(&["rehearse", "demo", "put", "a", "--value=flag", "--force=false"]);
    assert_eq!(run.out, "flag x3\n");
    let run = world.run(&["config"]);
    let line = |key: &str| {
        let line = run.out.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("demo.put.value"), "demo.put.value from-env $DEMO_VALUE");
    assert_eq!(line("demo.put.replica-count"), "demo.put.replica-count 3 ./tbx.yaml");
    assert_eq!(line("deadlines.map"), "deadlines.map 5m ./tbx.yaml");
    assert_eq!(line("grace"), "grace 15s default");
    assert_eq!(line("context"), "context (unset)");
    world.env("TBX_GARCE", "1");
    assert!(world.run(&["config"]).err.contains("note: $TBX_GARCE is set, but there is no such setting"));
}

#[test]
fn a_cluster_that_cannot_be_used_is_said_with_where_it_was_looked_for() {
    let world = World::new();
    refused(&world.run(&["demo", "put", "a"]), 3, "error: kubeconfig/any: no kubeconfig is named");
    let run = world.env("KUBECONFIG", "/nowhere").run(&["demo", "put", "a"]);
    refused(&run, 3, "error: variable/KUBECONFIG: ");
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: planted-token-value}}]\n";
    let file = world.write("k", kubeconfig);
    let run = world.run(&["demo", "put", "a", "--kubeconfig", &file, "--context", "b"]);
    refused(&run, 3, "error: context/b: ");
    assert!(!run.err.contains("planted-token-value"), "{}", run.err);
    for written in world.files() {
        let content = std::fs::read(&written).unwrap();
        assert!(!String::from_utf8_lossy(&content).contains("planted-token-value"), "{}", written.display());
    }
}

#[test]
fn another_programs_name_runs_it_with_the_words_that_follow() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let script = world.write("demo-hello", "#!/bin/sh\necho \"hello $*\"\nexit 9\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = world.run(&["hello", "a b", "--c"]);
    run.assert(9);
    assert_eq!(run.out, "hello a b --c\n");
    refused(&world.run(&["../evil"]), 2, "error: unrecognized subcommand '../evil'");
}
