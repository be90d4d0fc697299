//! The rules on a few lines of JSON each.

mod states;
mod what_is_there;

use serde_json::{Value, json};
use toolbox_engine::Cause;

use super::*;
use crate::Object;

fn gpu() -> PackageRef {
    PackageRef::new("gpu-operator-certified", "certified-operators")
}

fn head(csv: &str, version: &str, modes: &[&str], namespace: Option<&str>) -> Value {
    let modes: Vec<Value> = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .iter()
        .map(|mode| json!({"type": mode, "supported": modes.contains(mode)}))
        .collect();
    let mut annotations = json!({});
    if let Some(namespace) = namespace {
        annotations["operatorframework.io/suggested-namespace"] = json!(namespace);
    }
    json!({"currentCSV": csv, "currentCSVDesc": {"version": version, "installModes": modes, "annotations": annotations}})
}

fn channel(name: &str, head: Value, versions: &[&str]) -> Value {
    let mut channel = head;
    channel["name"] = json!(name);
    channel["entries"] = versions
        .iter()
        .map(|version| json!({"name": format!("gpu-operator-certified.v{version}"), "version": version}))
        .collect();
    channel
}

fn manifest_of(catalog: &str, default: &str, channels: Vec<Value>) -> Object {
    Object::new(json!({
        "apiVersion": "packages.operators.coreos.com/v1", "kind": "PackageManifest",
        "metadata": {"name": "gpu-operator-certified", "namespace": MARKETPLACE,
                     "labels": {"catalog": catalog, "catalog-namespace": MARKETPLACE}},
        "status": {"catalogSource": catalog, "catalogSourceNamespace": MARKETPLACE,
                   "defaultChannel": default, "channels": channels},
    }))
}

/// As the real package: 1.8 watches every namespace and suggests none, from 1.9 it is the other way round.
fn manifest() -> Object {
    let own = ["OwnNamespace", "SingleNamespace"];
    let suggests = Some("nvidia-gpu-operator");
    let csv = |version: &str| format!("gpu-operator-certified.v{version}");
    manifest_of(
        "certified-operators",
        "stable",
        vec![
            channel("v1.8", head(&csv("1.8.2"), "1.8.2", &["AllNamespaces"], None), &["1.8.2"]),
            channel("v1.9.0", head(&csv("1.9.1"), "1.9.1", &own, suggests), &["1.9.1", "1.9.0"]),
            channel("v1.10", head(&csv("1.10.1"), "1.10.1", &own, suggests), &["1.10.1", "1.10.0"]),
            channel("stable", head(&csv("1.11.0"), "1.11.0", &own, suggests), &["1.11.0", "1.10.1", "1.10.0", "1.9.1"]),
        ],
    )
}

fn package() -> Package {
    Package::find(&[manifest()], &gpu()).unwrap()
}

fn wish(channel: Option<&str>, version: Option<&str>) -> Wish {
    Wish { channel: channel.map(str::to_owned), version: version.map(str::to_owned) }
}

#[test]
fn the_package_is_the_chosen_catalogs_whatever_else_has_its_name() {
    let nightly = manifest_of("team-nightly", "v9", vec![]);
    for manifests in [[manifest(), nightly.clone()], [nightly, manifest()]] {
        let package = Package::find(&manifests, &gpu()).unwrap();
        assert_eq!(package.default_channel.as_deref(), Some("stable"));
        assert_eq!(Package::elsewhere(&manifests, &gpu()), ["team-nightly"]);
    }
    assert_eq!(Package::find(&[manifest()], &PackageRef::new("gpu-operator-certified", "other")), None);
    assert_eq!(gpu().selector(), "catalog=certified-operators,catalog-namespace=openshift-marketplace");
}

#[test]
fn without_a_wish_it_is_the_newest_of_the_default_channel() {
    let chosen = choose(&package(), &Wish::default()).unwrap();
    assert_eq!((chosen.channel.as_str(), chosen.published.csv.as_str()), ("stable", "gpu-operator-certified.v1.11.0"));
    assert_eq!(choose(&package(), &wish(None, Some("latest"))).unwrap(), chosen);
    assert_eq!(choose(&package(), &wish(Some("v1.10"), None)).unwrap().published.version, "1.10.1");
}

#[test]
fn a_version_is_found_in_whatever_channel_has_it() {
    let found = |version| choose(&package(), &wish(None, Some(version))).unwrap();
    assert_eq!(found("1.8.2").channel, "v1.8");
    assert_eq!(found("v1.10.1").channel, "stable");
    assert_eq!(found("1.9.0").channel, "v1.9.0");
}

#[test]
fn what_is_not_published_is_refused_with_what_is() {
    let refusal = choose(&package(), &wish(Some("v1.8"), Some("1.9.0"))).unwrap_err();
    assert_eq!(refusal.text(), "version 1.9.0 is not in channel `v1.8`");
    assert!(refusal.next().contains("v1.8 (1.8.2), v1.9.0 (1.9.1, 1.9.0)"), "{}", refusal.next());
    let refusal = choose(&package(), &wish(None, Some("2.0.0"))).unwrap_err();
    assert_eq!(refusal.text(), "version 2.0.0 is in none of its channels");
    let refusal = choose(&package(), &wish(Some("v7"), None)).unwrap_err();
    assert_eq!(refusal.text(), "has no channel `v7`");
    let none = manifest_of("certified-operators", "", vec![]);
    let none = Package::find(&[none], &gpu()).unwrap();
    assert_eq!(choose(&none, &Wish::default()).unwrap_err().text(), "the package names no default channel");
}

#[test]
fn where_versions_are_not_listed_olm_has_to_tell() {
    let head = head("gpu-operator-certified.v1.7.1", "1.7.1", &["AllNamespaces"], None);
    let mut old = head;
    old["name"] = json!("v1.7");
    let old = manifest_of("certified-operators", "v1.7", vec![old]);
    let package = Package::find(&[old], &gpu()).unwrap();
    let chosen = choose(&package, &wish(Some("v1.7"), Some("1.7.0"))).unwrap();
    assert_eq!(chosen.published.csv, "gpu-operator-certified.v1.7.0");
    assert!(chosen.because.contains("OLM will tell"));
}

#[test]
fn scope_and_namespace_come_from_the_version_and_not_from_the_newest() {
    let placed = |version| {
        let chosen = choose(&package(), &wish(None, Some(version))).unwrap();
        place(&chosen, None, "gpu").unwrap()
    };
    let old = placed("1.8.2");
    assert_eq!((old.namespace.as_str(), old.scope), ("openshift-operators", Scope::AllNamespaces));
    // 1.9.0 heads no channel; the nearest version that is described is 1.9.1.
    for version in ["1.9.0", "1.10.0", "1.11.0"] {
        let new = placed(version);
        assert_eq!((new.namespace.as_str(), new.scope), ("nvidia-gpu-operator", Scope::Own), "{version}");
    }
    let chosen = choose(&package(), &wish(None, Some("1.9.0"))).unwrap();
    assert!(chosen.because.contains("gpu-operator-certified.v1.9.1"), "{}", chosen.because);
}

#[test]
fn a_namespace_asked_for_is_taken_if_a_scope_fits_it() {
    let old = choose(&package(), &wish(None, Some("1.8.2"))).unwrap();
    let new = choose(&package(), &Wish::default()).unwrap();
    assert_eq!(place(&new, Some("mine"), "gpu").unwrap().scope, Scope::Own);
    assert_eq!(place(&old, Some("mine"), "gpu").unwrap().scope, Scope::AllNamespaces);
    let refusal = place(&new, Some(GLOBAL_NAMESPACE), "gpu").unwrap_err();
    assert!(refusal.text().contains("supports OwnNamespace and SingleNamespace"), "{}", refusal.text());
    let single = Chosen { modes: InstallModes { single_namespace: true, ..Default::default() }, ..new };
    assert_eq!(place(&single, None, "gpu").unwrap_err().code(), "no-fitting-scope");
}

#[test]
fn versions_are_ordered_by_number() {
    use super::resolve::compare_versions as compare;
    assert!(compare("1.10.0", "1.9.1").is_gt());
    assert!(compare("22.9.0", "1.11.1").is_gt());
    assert!(compare("1.9.0-beta", "1.9.0").is_lt());
    assert!(compare("4.11.0-202212070335", "4.11.0-202301010000").is_lt());
    assert!(compare("v1.9", "1.9").is_eq());
}
