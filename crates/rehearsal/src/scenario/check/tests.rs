//! One scenario per thing that cannot be.

use super::Needs;
use crate::scenario::Scenario;

/// What is said of a scenario, after the file's name.
fn wrong(text: &str) -> String {
    let error = Scenario::from_yaml("mine.yaml", text).expect_err(text).to_string();
    error.strip_prefix("`mine.yaml`: ").unwrap_or(&error).to_owned()
}

fn scenario(text: &str) -> Scenario {
    Scenario::from_yaml("mine.yaml", text).expect(text)
}

/// A catalog of one package, some of whose lines are replaced.
fn package(from: &str, to: &str) -> String {
    let whole = "catalogs:
- name: mine
  packages:
  - name: nfd
    defaultChannel: stable
    channels:
      stable: [nfd.2]
    bundles:
    - {csv: nfd.2, version: '2', deployment: nfd, image: nfd, installModes: [OwnNamespace], replaces: nfd.1}
";
    assert!(whole.contains(from), "{from}");
    whole.replace(from, to)
}

/// A recording of one object with these changes.
fn recorded(changes: &str) -> String {
    format!(
        "recorded:\n  objects:\n  - object: {{apiVersion: v1, kind: Pod, metadata: {{name: a}}}}\n    changes: [{changes}]\n"
    )
}

#[test]
fn each_slip_is_told_with_its_line_and_field() {
    let set = "machineSets: [{name: a, zone: us-test-1a, instanceType: ";
    for (text, said) in [
        ("kubernetes: '24'\n".into(), "line 1: field `kubernetes`: `24` is no version of Kubernetes"),
        ("openshift: '4.11'\n".into(), "line 1: field `openshift`: `4.11` is no version of OpenShift"),
        ("timings: {nodeBoot: -1}\n".into(), "line 1: field `timings.nodeBoot`: -1 is no time between 0"),
        (
            "timings:\n  nodeBoot: {min: 3, mode: 2, max: 1}\n".into(),
            "line 2: field `timings.nodeBoot`: wants 0 <= min",
        ),
        ("images:\n  nfd: {pull: -2}\n".into(), "line 2: field `images.nfd.pull`: -2 is no time"),
        ("images:\n  mine: {pull: 2}\n".into(), "line 2: field `images.mine.reference`: the image has no reference"),
        ("instanceTypes:\n  x: {memoryMiB: 1}\n".into(), "line 2: field `instanceTypes.x.cpu`"),
        ("instanceTypes:\n  x: {cpu: 1}\n".into(), "line 2: field `instanceTypes.x.memoryMiB`"),
        ("instanceTypes:\n  x: {cpu: 1, memoryMiB: 1, gpus: 1}\n".into(), "line 2: field `instanceTypes.x.gpuProduct`"),
        (
            "instanceTypes:\n  x.y: {cpu: 1, memoryMiB: 1, gpus: 1, gpuProduct: T4, pciClass: '0200'}\n".into(),
            "line 2: field `instanceTypes[\"x.y\"].pciClass`: `0200` is no class of a GPU",
        ),
        (
            "nodes: [{name: A, role: worker, instanceType: m5.large}]\n".into(),
            "line 1: field `nodes[0].name`: `A` is no name",
        ),
        ("nodes: [{role: worker, instanceType: m5.large}]\n".into(), "line 1: field `nodes[0].name`: it has no name"),
        ("nodes: [{name: a, role: boss, instanceType: m5.large}]\n".into(), "line 1: field `nodes[0].role`: `boss`"),
        (format!("{set}x9.huge}}]\n"), "line 1: field `machineSets[0].instanceType`: `x9.huge` is not among"),
        (format!("{set}m5.large, taints: [gpu]}}]\n"), "line 1: field `machineSets[0].taints[0]`: `gpu` is no taint"),
        (format!("{set}m5.large, replicas: 4000}}]\n"), "line 1: field `machineSets[0].replicas`: more than 1000"),
        ("machineSets: [{name: a, instanceType: m5.large}]\n".into(), "line 1: field `machineSets[0].zone`"),
        (
            format!("{set}m5.large}}, {{name: a, zone: z, instanceType: m5.large}}]\n"),
            "line 1: field `machineSets[1].name`: `a` is there twice",
        ),
        (
            "a: &a {name: n, role: worker, instanceType: m5.large}\n".replace("a: &a ", "nodes:\n- &a ") + "- *a\n",
            "line 3: field `nodes[1].name`: `n` is there twice",
        ),
        (
            package("defaultChannel: stable", "defaultChannel: beta"),
            "line 5: field `catalogs[0].packages[0].defaultChannel`: `beta` is no channel of the package; there are stable",
        ),
        (
            package("    defaultChannel: stable\n", ""),
            "line 4: field `catalogs[0].packages[0].defaultChannel`: `` is no channel",
        ),
        (
            package("[nfd.2]", "[nfd.2, nfd.3]"),
            "line 7: field `catalogs[0].packages[0].channels.stable[1]`: `nfd.3` is not among the package's bundles",
        ),
        (
            package("[nfd.2]", "[]"),
            "line 7: field `catalogs[0].packages[0].channels.stable`: the channel has no version",
        ),
        (
            package("image: nfd", "image: nfb"),
            "line 9: field `catalogs[0].packages[0].bundles[0].image`: `nfb` is not among images",
        ),
        (
            package("OwnNamespace", "Everywhere"),
            "line 9: field `catalogs[0].packages[0].bundles[0].installModes[0]`: `Everywhere`",
        ),
        (
            package("[OwnNamespace]", "[]"),
            "line 9: field `catalogs[0].packages[0].bundles[0].installModes`: none is supported",
        ),
        (package(", deployment: nfd", ""), "line 9: field `catalogs[0].packages[0].bundles[0].deployment`"),
        (
            package("replaces: nfd.1", "replaces: nfd.2"),
            "line 9: field `catalogs[0].packages[0].bundles[0].replaces`: `nfd.2` replaces itself",
        ),
        (
            package("replaces: nfd.1", "owned: [{group: g, version: v1, plural: x}]"),
            "line 9: field `catalogs[0].packages[0].bundles[0].owned[0].kind`",
        ),
        (
            "quirks: {only: {csvFailure: [a]}}\n".into(),
            "line 1: field `quirks.only.csvFailure`: `csvFailure` is no quirk of nodes",
        ),
        ("faults: [{name: csv-failed, at: -1}]\n".into(), "line 1: field `faults[0].at`: -1 is no moment"),
        ("faults: [{name: csv-failed, at: 1, when: x}]\n".into(), "line 1: field `faults[0].when`: `at` and `when`"),
        ("faults: [{name: csv-failed, when: ''}]\n".into(), "line 1: field `faults[0].when`: an empty text"),
        (
            "faults: [{name: api-restart, on: x}]\n".into(),
            "line 1: field `faults[0].on`: `api-restart` is about no object",
        ),
        (
            "faults: [{name: csv-failed, on: nfb}]\n".into(),
            "line 1: field `faults[0].on`: `nfb` is not a package; there are nfd,",
        ),
        (
            "faults: [{name: zone-out-of-stock, on: us-test-9}]\n".into(),
            "line 1: field `faults[0].on`: `us-test-9` is not a zone",
        ),
        (
            "faults: [{name: gpu-faulty, on: nobody}]\n".into(),
            "line 1: field `faults[0].on`: `nobody` is not a node, a zone",
        ),
        ("objects:\n- kind: Pod\n".into(), "line 2: field `objects[0].apiVersion`: the manifest has no apiVersion"),
        (
            "objects:\n- {apiVersion: v1, kind: Pod}\n".into(),
            "line 2: field `objects[0].metadata`: the manifest has no metadata.name",
        ),
        (
            "recorded: {objects: [{object: {kind: Pod}}]}\n".into(),
            "line 1: field `recorded.objects[0].object.apiVersion`",
        ),
        (
            recorded("{at: 1, gone: true}, {at: 2, set: {}}"),
            "line 4: field `recorded.objects[0].changes[0]`: an object that is gone",
        ),
        (
            recorded("{at: 5, set: {}}, {at: 2, set: {}}"),
            "line 4: field `recorded.objects[0].changes[1].at`: 2 is before",
        ),
        (recorded("{at: 5}"), "line 4: field `recorded.objects[0].changes[0]`: a change says"),
        ("expect: {result: running}\n".into(), "line 1: field `expect.result`"),
        ("expect: {exitCode: 42}\n".into(), "line 1: field `expect.exitCode`: 42 is no exit code"),
        ("expect: {result: passed, exitCode: 5}\n".into(), "line 1: field `expect.exitCode`: 5 does not go with"),
        ("expect: {result: passed, verdict: product}\n".into(), "line 1: field `expect.verdict`: a run that passes"),
        ("expect: {makespan: {min: 2, max: 1}}\n".into(), "line 1: field `expect.makespan`: wants 0 <= min <= max"),
    ] {
        let found = wrong(&text);
        assert!(found.starts_with(said), "{text}\nsays   {found}\nwanted {said}");
    }
}

#[test]
fn a_cluster_in_which_nothing_can_happen_is_refused() {
    let none = wrong("platform: none\n");
    assert!(none.starts_with("line 1: field `machineSets`: platform `none` has no Machine API"), "{none}");
    let nowhere = wrong("name: x\nmachineSets: []\n");
    assert!(nowhere.starts_with("line 2: field `nodes`: there is no worker"), "{nowhere}");
    let quota = wrong("instanceTypes:\n  m5.xlarge: {quota: 2}\n");
    assert!(quota.starts_with("line 2: field `machineSets[2].replicas`: 3 machines of m5.xlarge"), "{quota}");
    let elsewhere = "machineSets: [{name: a, zone: us-test-9, instanceType: m5.xlarge, replicas: 1}]\n";
    let stock = wrong(elsewhere);
    assert!(
        stock.starts_with("line 1: field `machineSets[0].zone`: zone `us-test-9` has no instance of any"),
        "{stock}"
    );
    scenario(&format!("{elsewhere}expect: {{result: failed}}\n"));
}

#[test]
fn a_verb_that_could_never_pass_is_told_before_it_runs() {
    let no_gpu = "instanceTypes: {g4dn.xlarge: null, g4dn.12xlarge: null, p2.xlarge: null}\n";
    let no_nfd = "catalogs: []\n";
    let labels = Needs { gpu_labels: true, ..Needs::default() };
    let makes = |kind: &str| Needs { instance_type: Some(kind.to_owned()), ..Needs::default() };
    let installs = Needs { packages: vec!["nfd".to_owned()], ..Needs::default() };
    let none_left = "instanceTypes: {p2.xlarge: {zones: {us-test-1b: 0}}}\n";
    for (text, needs, field, part) in [
        (no_gpu, &labels, "instanceTypes", "no instance type has `gpus`"),
        (no_nfd, &labels, "catalogs", "no catalog has the package `nfd`"),
        (
            no_gpu,
            &makes("g4dn.xlarge"),
            "instanceTypes",
            "`g4dn.xlarge`, which the verb makes machines of, is not sold",
        ),
        (
            none_left,
            &makes("p2.xlarge"),
            "instanceTypes",
            "`p2.xlarge`, which the verb makes machines of, is in stock in no zone",
        ),
        (no_nfd, &installs, "catalogs", "`nfd`, which the verb installs; there are none"),
    ] {
        let (found, said) = scenario(text).denies(needs).expect(text);
        assert!(found == field && said.contains(part), "{text}: {found}: {said}");
        // A scenario that says how it ends, or what goes wrong, means it.
        assert_eq!(scenario(&format!("{text}expect: {{exitCode: 5}}\n")).denies(needs), None);
        assert_eq!(scenario(&format!("{text}faults: [throttled]\n")).denies(needs), None);
        assert_eq!(scenario("").denies(needs), None);
    }
    let labelled = "objects:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: g, labels: {feature.node.kubernetes.io/pci-10de.present: 'true'}}\n";
    assert_eq!(scenario(&format!("{no_nfd}{labelled}")).denies(&labels), None);
}
