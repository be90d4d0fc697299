//! The whole program, spawned: its help, its defaults, the main job.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `tbx` with nothing of the machine's environment.
fn tbx(home: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tbx"))
        .args(words)
        .current_dir(home)
        .env_clear()
        .envs([("HOME", home), ("TMPDIR", home), ("PATH", home)])
        .output()
        .expect("tbx can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("tbx writes UTF-8")
}

/// Help without the options that every verb has.
fn help(words: &[&str]) -> String {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = tbx(home.path(), &[words, &["-h"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let help = text(&output.stdout);
    help.split("\n\nGlobal options:").next().unwrap_or_default().to_owned()
}

#[test]
fn help_lists_what_there_is() {
    insta::assert_snapshot!(help(&[]), @r"
    Tools that test accelerator and scheduler stacks on Kubernetes and OpenShift

    Usage: tbx [OPTIONS] <COMMAND>

    Commands:
      cluster       The verbs of the cluster
      nfd           The verbs of Node Feature Discovery
      gpu-operator  The verbs of the GPU Operator
      prow          The jobs of the CI
      run           Run a CI job, in the words of the predecessor's entrypoint
      rehearse      Run a verb against a simulated cluster, in virtual time
      why           Say what holds an object up, on the live cluster
      report        Render a run's report again, or compare two runs
      cleanup       Take back exactly what a run made and changed, by uid
      config        Print every setting, its value and where it came from
      completions   Print completions for a shell
      man           Write the manual pages
      help          Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version
    ");
    insta::assert_snapshot!(help(&["cluster"]), @r"
    The verbs of the cluster

    Usage: tbx cluster [OPTIONS] <VERB>

    Verbs:
      scale                Have so many machines of an instance type
      capture-environment  Save the cluster's version, nodes and machines with the artifacts
      help                 Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help (see more with '--help')
    ");
    insta::assert_snapshot!(help(&["nfd"]), @r"
    The verbs of Node Feature Discovery

    Usage: tbx nfd [OPTIONS] <VERB>

    Verbs:
      has-labels      Ask whether NFD has labelled a node
      wait-labels     Wait until NFD has labelled a node
      has-gpu-nodes   Ask whether NFD sees an NVIDIA GPU on a node
      wait-gpu-nodes  Wait until NFD sees an NVIDIA GPU on a node
      deploy          Install the NFD Operator from a catalog and let it label the nodes
      undeploy        Remove the NFD Operator
      help            Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help (see more with '--help')
    ");
    insta::assert_snapshot!(help(&["gpu-operator"]), @r"
    The verbs of the GPU Operator

    Usage: tbx gpu-operator [OPTIONS] <VERB>

    Verbs:
      deploy-from-operatorhub    Install the GPU Operator from OperatorHub and create its ClusterPolicy
      undeploy-from-operatorhub  Remove the GPU Operator that OperatorHub installed
      wait-deployment            Wait until the driver and everything else works on every GPU node
      run-gpu-burn               Burn every GPU of every GPU node, and check its results
      capture-deployment-state   Save the state of the GPU stack: lists, YAML, logs and descriptions
      get-csv-version            Print the version of the installed GPU Operator
      help                       Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help (see more with '--help')
    ");
    insta::assert_snapshot!(help(&["prow"]), @r"
    The jobs of the CI

    Usage: tbx prow [OPTIONS] <VERB>

    Verbs:
      gpu-operator  Test the GPU Operator
      help          Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help (see more with '--help')
    ");
    insta::assert_snapshot!(help(&["rehearse"]), @r"
    Run a verb against a simulated cluster, in virtual time

    Usage: tbx rehearse [OPTIONS] [-- <COMMAND>...] [VERB]

    Verbs:
      cluster       The verbs of the cluster
      nfd           The verbs of Node Feature Discovery
      gpu-operator  The verbs of the GPU Operator
      prow          The jobs of the CI
      run           Run a CI job, in the words of the predecessor's entrypoint
      help          Print this message or the help of the given subcommand(s)

    Arguments:
      [COMMAND]...  With --serve: what to run against the cluster, with KUBECONFIG set

    Options:
          --scenario <FILE|NAME>  Scenario file, or the name of one that comes with the program
                                  [default: default]. Without a VERB, what the scenario itself names is
                                  run
          --fault <NAME>          Something that goes wrong; repeatable
          --seed <N>              The same seed gives the same run, byte for byte [default: the
                                  scenario's, or 0]
          --serve                 Serve the cluster over HTTPS on loopback instead, for kubectl and
                                  other programs; until Ctrl-C, or as long as the COMMAND after `--`
                                  runs
          --speed <N>             With --serve: how much faster than real time the cluster lives
                                  [default: 1]
          --port <PORT>           With --serve: the port; 0 is a free one [default: 0]
          --record <FILE>         Watch a real cluster instead, change nothing, and write a scenario
                                  that shows the same
          --namespace <NS>        With --record: a namespace whose objects are recorded; repeatable
                                  [default: all but the platform's]
          --for <DURATION>        With --record: how long; Ctrl-C ends it earlier [default: 10m]
          --list-faults           List the faults and what they do
          --list-scenarios        List the scenarios that come with the program
      -h, --help                  Print help (see more with '--help')
    ");
}

#[test]
fn the_defaults_fit_the_options() {
    let home = tempfile::tempdir().unwrap();
    let output = tbx(home.path(), &["config", "-o", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let config: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = config["settings"].as_array().unwrap();
    let grace = settings.iter().find(|setting| setting["key"] == "grace").unwrap();
    assert_eq!((&grace["value"], &grace["origin"]), (&"15s".into(), &"default".into()));
    assert!(settings.iter().any(|setting| setting["key"] == "nfd.deploy.channel"));
}

#[test]
fn upstreams_spellings_name_the_same_verbs() {
    for words in [
        ["cluster", "set_scale"],
        ["nfd_operator", "deploy_from_operatorhub"],
        ["nfd-operator", "undeploy-from-operatorhub"],
        ["nfd", "has_gpu_nodes"],
        ["gpu_operator", "deploy_from_operatorhub"],
        ["gpu_operator", "run_gpu_burn"],
        ["prow", "gpu_operator"],
    ] {
        assert!(help(&words).contains("Usage: tbx "), "{words:?}");
    }
}

#[test]
fn the_main_job_takes_as_long_as_its_causes_allow_and_repeats_byte_for_byte() {
    let home = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let words = ["rehearse", "--artifact-dir", name, "prow", "gpu-operator", "test_operatorhub"];
        let output = tbx(home.path(), &words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let read = |file: &str| std::fs::read(home.path().join(name).join(file)).unwrap();
        (read("events.jsonl"), serde_json::from_slice::<serde_json::Value>(&read("summary.json")).unwrap())
    };
    let (first, summary) = run("a");
    assert!(first == run("b").0, "the same seed gave other events");
    assert_eq!(summary["result"], "passed");
    let seconds = |key: &str| summary[key].as_f64().unwrap();
    assert!(seconds("makespan_s") <= 1.02 * seconds("floor_s"), "{} > {}", seconds("makespan_s"), seconds("floor_s"));
}

/// Every scenario that is shipped says what it is for, and a run of it proves that.
#[test]
fn every_shipped_scenario_holds_what_it_promises() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/scenarios");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let home = tempfile::tempdir().unwrap();
        let output = tbx(home.path(), &["rehearse", "--scenario", path.to_str().unwrap()]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name}: {err}");
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with("as expected by "), "{name} expects nothing: {err}");
        seen.push(name);
    }
    let home = tempfile::tempdir().unwrap();
    let listed = text(&tbx(home.path(), &["rehearse", "--list-scenarios"]).stdout);
    let mut listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    listed.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, listed, "files and names that the program knows");
}

#[test]
fn the_readmes_scenario_ends_as_it_says() {
    let readme = include_str!("../../../README.md");
    let scenario = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("readme.yaml");
    std::fs::write(&file, scenario).unwrap();
    let output = tbx(home.path(), &["rehearse", "--scenario", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("as expected by "), "{}", text(&output.stderr));
}
