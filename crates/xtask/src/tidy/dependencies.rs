//! Who may depend on whom: the rules of `crates/README.md`, read from cargo's own metadata.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use crate::cargo;

/// Libraries that know the cluster's client or its types.
const CLIENTS: [&str; 2] = ["kube", "k8s-openapi"];

/// Libraries that read or write YAML and templates.
const FORMATS: [&str; 3] = ["yaml_serde", "serde-saphyr", "minijinja"];

pub(super) fn check() -> Result<Vec<Finding>> {
    let metadata = cargo::output("cargo", &["metadata", "--format-version", "1", "--no-deps"])?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = text(package, "name");
        let manifest = text(package, "manifest_path");
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        for dependency in dependencies.iter().filter(|dependency| dependency["kind"].is_null()) {
            if let Some(rule) = broken_rule(name, &place(manifest), text(dependency, "name")) {
                findings.push(Finding { place: name.to_owned(), text: rule });
            }
        }
    }
    Ok(findings)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The package's folder below the root: `crates/engine`, `toolbox/nfd`, `testing/prow`.
fn place(manifest: &str) -> String {
    let root = cargo::root();
    let folder = std::path::Path::new(manifest).parent().and_then(|folder| folder.strip_prefix(&root).ok());
    folder.map(|folder| folder.display().to_string()).unwrap_or_default()
}

/// The rule that a dependency breaks, if any.
fn broken_rule(package: &str, place: &str, dependency: &str) -> Option<String> {
    let tool = place.starts_with("toolbox/") && place != "toolbox/tbx";
    let ours = |name: &str| name.starts_with("toolbox-") || name.starts_with("tool-") || name.starts_with("testing-");
    let rule = if tool && ours(dependency) && dependency != "toolbox-core" {
        "a tool depends on toolbox-core only, never on another tool or on what core is made of"
    } else if (tool || place == "crates/core" || place == "testing/prow") && CLIENTS.contains(&dependency) {
        "only crates/cluster, the rehearsal and the test crates know the cluster's client"
    } else if tool && FORMATS.contains(&dependency) {
        "only core::config reads and writes YAML and templates"
    } else if place == "crates/engine" && (CLIENTS.contains(&dependency) || dependency == "clap") {
        "the engine knows neither the cluster's client nor the command line"
    } else if dependency == "toolbox-rehearsal"
        && !["toolbox-core", "toolbox-testkit", "testing-e2e", "xtask"].contains(&package)
    {
        "only core's command line, tests and the workspace's own commands depend on the rehearsal"
    } else if dependency == "toolbox-testkit" {
        "the testkit is a dev-dependency"
    } else {
        return None;
    };
    Some(format!("depends on `{dependency}`: {rule}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_catches_what_it_is_for() {
        for (package, place, dependency) in [
            ("tool-nfd", "toolbox/nfd", "tool-cluster"),
            ("tool-nfd", "toolbox/nfd", "toolbox-engine"),
            ("tool-nfd", "toolbox/nfd", "kube"),
            ("tool-nfd", "toolbox/nfd", "minijinja"),
            ("toolbox-core", "crates/core", "k8s-openapi"),
            ("toolbox-engine", "crates/engine", "clap"),
            ("testing-prow", "testing/prow", "kube"),
            ("testing-prow", "testing/prow", "toolbox-rehearsal"),
            ("tool-nfd", "toolbox/nfd", "toolbox-testkit"),
        ] {
            assert!(broken_rule(package, place, dependency).is_some(), "{package} → {dependency}");
        }
        for (package, place, dependency) in [
            ("tool-nfd", "toolbox/nfd", "toolbox-core"),
            ("tbx", "toolbox/tbx", "tool-nfd"),
            ("toolbox-core", "crates/core", "toolbox-rehearsal"),
            ("toolbox-cluster", "crates/cluster", "kube"),
            ("testing-prow", "testing/prow", "tool-nfd"),
        ] {
            assert_eq!(broken_rule(package, place, dependency), None, "{package} → {dependency}");
        }
    }
}
