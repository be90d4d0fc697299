//! Signals, closed pipes and full disks: what a CI and a terminal do to a program.

use std::io::Read;
use std::process::Stdio;

use crate::common::{World, held, send};

#[test]
fn the_first_signal_runs_the_captures_and_leaves_a_true_summary() {
    for (signals, code, by) in
        [(&["INT"][..], 130, "SIGINT"), (&["TERM"], 143, "SIGTERM"), (&["INT", "TERM"], 130, "SIGINT")]
    {
        let world = World::new();
        let words = ["rehearse", "demo", "wait-forever", "--hold-at", "demo.never"];
        let (mut child, mut err) = held(&world, &words);
        for signal in signals {
            send(&child, signal);
        }
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest}");
        let run = world.file("000__demo__wait_forever");
        let summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
        assert_eq!((&summary["result"], &summary["exit_code"]), (&"interrupted".into(), &code.into()));
        assert!(run.join("logs/around.txt").exists());
        assert!(rest.contains(by), "{rest}");
        assert!(!rest.contains("error:"), "{rest}");
    }
}

#[test]
fn a_killed_run_can_be_looked_at_and_resumed() {
    let world = World::new();
    let words = ["rehearse", "demo", "put", "a", "--hold-at", "demo.wait"];
    let (mut child, _) = held(&world, &words);
    let run = world.file("000__demo__put").display().to_string();
    let running = world.run(&["cleanup", &run]);
    running.assert(2);
    assert!(running.err.contains("is still going on"), "{}", running.err);
    let both = world.run(&["rehearse", "demo", "put", "a", "--resume", &run]);
    both.assert(2);
    assert!(both.err.contains("error: flag/--resume: the run in "), "{}", both.err);
    send(&child, "KILL");
    child.wait().unwrap();
    let report = world.run(&["report", &run]);
    report.assert(0);
    assert!(report.out.contains("was killed: its last sign of life"), "{}", report.out);
    let wrong = world.run(&["rehearse", "demo", "fail-later", "--resume", &run]);
    wrong.assert(2);
    assert!(
        wrong.err.contains("error: flag/--resume: that run was `demo put`, this is `demo fail_later`"),
        "{}",
        wrong.err
    );
    let other = world.run(&["rehearse", "demo", "put", "b", "--resume", &run]);
    other.assert(2);
    assert!(other.err.contains("that run was asked for `demo put a`, this for `demo put b`"), "{}", other.err);
    let resumed = world.run(&["rehearse", "demo", "put", "a", "--resume", &run]);
    resumed.assert(0);
}

#[test]
fn a_credential_plugin_that_hangs_does_not_keep_a_signal_from_ending_the_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    // It waits for somebody who never comes, after a CI has sent its signal.
    let plugin = world.write("plugin.sh", "#!/bin/sh\nkill -TERM $PPID\nexec /bin/sleep 30\n");
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:9'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n\
         users: [{{name: c, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {plugin}}}}}}}]\n"
    );
    let kubeconfig = world.write("kubeconfig", &kubeconfig);
    world.run(&["demo", "put", "a", "--kubeconfig", &kubeconfig]).assert(143);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new();
    for words in [&["--help"][..], &["rehearse", "demo", "put", "a"], &["config"]] {
        let mut child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words:?}: {err}");
        assert!(!err.contains("roken pipe") && !err.contains("error"), "{err}");
    }
    let mut child =
        world.command(&["rehearse", "demo", "put", "a"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let world = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = world.command(&["rehearse", "demo", "put", "a"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.ends_with("error: the result cannot be written to stdout: no space left on device\n"), "{err}");
}

#[test]
fn colours_are_for_terminals_or_on_request() {
    let world = World::new();
    let words = ["rehearse", "demo", "fail-later"];
    assert!(!world.run(&words).err.contains('\x1b'));
    let always = [&words[..], &["--color", "always"]].concat();
    assert!(world.run(&always).err.contains("\x1b[31;1merror:"), "{}", world.run(&always).err);
    world.env("CLICOLOR_FORCE", "1");
    assert!(world.run(&words).err.contains('\x1b'));
    world.env("NO_COLOR", "1");
    assert!(!world.run(&words).err.contains('\x1b'));
}

#[test]
fn a_ci_gets_groups_and_its_annotation() {
    let world = World::new();
    let run = world.env("GITHUB_ACTIONS", "true").run(&["rehearse", "demo", "fail-later"]);
    let lines: Vec<&str> = run.err.lines().collect();
    let at = |text: &str| {
        lines.iter().position(|line| line.starts_with(text)).unwrap_or_else(|| panic!("{text}: {}", run.err))
    };
    assert!(at("::group::Progress") < at("::endgroup::") && at("::endgroup::") < at("error: "));
    assert!(
        lines.contains(&"::error title=tbx::Pod/default/driver: is not there%0Anext: put it there: demo put NAME"),
        "{}",
        run.err
    );
}

#[test]
fn a_terminal_that_goes_ends_the_run_as_a_signal_does() {
    let world = World::new();
    let (mut child, _) = held(&world, &["rehearse", "demo", "put", "a", "--hold-at", "demo.wait"]);
    send(&child, "HUP");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let summary = std::fs::read_to_string(world.file("000__demo__put/summary.json")).unwrap();
    assert!(summary.contains("\"result\": \"interrupted\""), "{summary}");
}
