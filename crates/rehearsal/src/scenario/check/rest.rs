//! Versions, times, faults, further objects and expectations.

use serde_json::Value;
use toolbox_engine::Exit;
use toolbox_engine::run::RunResult;

use super::{Checked, Objection, field, known};
use crate::api::KubeVersion;
use crate::scenario::model::NODE_QUIRKS;
use crate::scenario::yaml::Path;
use crate::scenario::{Fault, PlannedFault, Scenario, Target};

pub(super) fn versions(scenario: &Scenario) -> Checked {
    let path = field("kubernetes");
    match scenario.kubernetes.parse::<KubeVersion>() {
        Ok(version) if version.major == 1 && version.minor > 0 => {}
        _ => {
            let text = format!("`{}` is no version of Kubernetes, such as 1.24.17", scenario.kubernetes);
            return Err(Objection::new(path, text));
        }
    }
    let numbers: Vec<&str> = scenario.openshift.splitn(3, '.').collect();
    let number = |text: &str| text.chars().all(|letter| letter.is_ascii_digit()) && !text.is_empty();
    let version = numbers.len() == 3
        && numbers[..2].iter().all(|part| number(part))
        && numbers[2].starts_with(|letter: char| letter.is_ascii_digit());
    if !scenario.openshift.is_empty() && !version {
        let text = format!(
            "`{}` is no version of OpenShift, such as 4.11.27; an empty one means plain Kubernetes",
            scenario.openshift
        );
        return Err(Objection::new(field("openshift"), text));
    }
    Ok(())
}

pub(super) fn timings(scenario: &Scenario) -> Checked {
    for (name, dist) in scenario.timings.named() {
        if let Some(text) = dist.objection() {
            return Err(Objection::new(field("timings").key(name), text));
        }
    }
    Ok(())
}

pub(super) fn quirks(scenario: &Scenario) -> Checked {
    for name in scenario.quirks.only.keys() {
        if !NODE_QUIRKS.contains(&name.as_str()) {
            let text = format!("`{name}` is no quirk of nodes; {}", known(NODE_QUIRKS));
            return Err(Objection::new(field("quirks").key("only").key(name.as_str()), text));
        }
    }
    Ok(())
}

pub(super) fn faults(scenario: &Scenario) -> Checked {
    for (n, fault) in scenario.faults.iter().enumerate() {
        let path = field("faults").place(n);
        if let Some(at) = fault.at.filter(|at| !(0.0..=31_536_000.0).contains(at)) {
            return Err(Objection::new(path.key("at"), format!("{at} is no moment after the start, in seconds")));
        }
        if fault.at.is_some() && fault.when.is_some() {
            return Err(Objection::new(path.key("when"), "`at` and `when` both say when: leave one out"));
        }
        if fault.when.as_ref().is_some_and(|when| when.trim().is_empty()) {
            return Err(Objection::new(
                path.key("when"),
                "an empty text is part of every reason: say a step or a reason",
            ));
        }
        // A clock is wrong from the start: it cannot jump in the middle of what is measured with it.
        if !fault.is_from_start() && matches!(fault.name, Fault::ClockSkew | Fault::ClockWrong) {
            let key = if fault.at.is_some() { "at" } else { "when" };
            return Err(Objection::new(
                path.key(key),
                format!("`{}` is there from the start or not at all", fault.name),
            ));
        }
        object(scenario, &path.key("on"), fault)?;
    }
    for (n, fault) in scenario.api_faults.iter().enumerate() {
        if let Some((key, text)) = fault.nonsense() {
            return Err(Objection::new(field("apiFaults").place(n).key(key), text));
        }
    }
    Ok(())
}

/// Whether what a fault is about exists.
fn object(scenario: &Scenario, path: &Path, fault: &PlannedFault) -> Checked {
    let Some(on) = fault.on.as_deref() else { return Ok(()) };
    let types: Vec<&str> = scenario.instance_types.keys().map(String::as_str).collect();
    let zones = || {
        let mut zones: Vec<&str> =
            scenario.instance_types.values().flat_map(|kind| kind.zones.keys()).map(String::as_str).collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    };
    let packages = scenario.catalogs.iter().flat_map(|catalog| &catalog.packages).map(|package| package.name.as_str());
    let target = fault.name.target();
    let names: Vec<&str> = match target {
        Target::Nothing => {
            return Err(Objection::new(path.clone(), format!("`{}` is about no object: leave `on` out", fault.name)));
        }
        Target::Namespace => return Ok(()),
        Target::InstanceType => types,
        Target::Zone => zones(),
        Target::Image => scenario.images.keys().map(String::as_str).collect(),
        Target::Catalog => scenario.catalogs.iter().map(|catalog| catalog.name.as_str()).collect(),
        Target::Package => packages.collect(),
        // Machines get their names on the way, beginning as their cloud names them.
        Target::Node if on.starts_with("ip-") || on.starts_with(&scenario.infra) => return Ok(()),
        Target::Node => {
            let nodes = scenario.nodes.iter().map(|node| node.name.as_str());
            types.into_iter().chain(zones()).chain(nodes).collect()
        }
    };
    if names.contains(&on) {
        return Ok(());
    }
    let text = format!("`{on}` is not {}; {}", target.describe(), known(names));
    Err(Objection::new(path.clone(), text))
}

pub(super) fn objects(scenario: &Scenario) -> Checked {
    for (n, object) in scenario.objects.iter().enumerate() {
        manifest(&field("objects").place(n), object)?;
    }
    let Some(recording) = &scenario.recorded else { return Ok(()) };
    let list = field("recorded").key("objects");
    for (n, recorded) in recording.objects.iter().enumerate() {
        let path = list.place(n);
        manifest(&path.key("object"), &recorded.object)?;
        let mut before = recorded.at;
        if !(0.0..=31_536_000.0).contains(&before) {
            return Err(Objection::new(path.key("at"), format!("{before} is no moment after the start, in seconds")));
        }
        for (m, change) in recorded.changes.iter().enumerate() {
            let path = path.key("changes").place(m);
            if !(before..=31_536_000.0).contains(&change.at) {
                let text = format!("{} is before what is recorded above it, at {before}", change.at);
                return Err(Objection::new(path.key("at"), text));
            }
            before = change.at;
            if change.gone == change.set.is_object() {
                return Err(Objection::new(path, "a change says what it sets, or `gone: true`"));
            }
            if change.gone && m + 1 < recorded.changes.len() {
                return Err(Objection::new(path, "an object that is gone changes no more"));
            }
        }
    }
    Ok(())
}

fn manifest(path: &Path, object: &Value) -> Checked {
    for (pointer, key) in [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata")] {
        if object.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
            let what = pointer.trim_start_matches('/').replace('/', ".");
            return Err(Objection::new(path.key(key), format!("the manifest has no {what}")));
        }
    }
    Ok(())
}

pub(super) fn expect(scenario: &Scenario) -> Checked {
    let Some(expect) = &scenario.expect else { return Ok(()) };
    let path = field("expect");
    let passes = matches!(expect.result, Some(RunResult::Passed | RunResult::Skipped));
    if expect.result == Some(RunResult::Running) {
        return Err(Objection::new(path.key("result"), "a run that has ended is not running"));
    }
    if let Some(code) = expect.exit_code {
        if !Exit::ALL.iter().any(|exit| exit.code() == code) {
            let codes = Exit::ALL.map(|exit| exit.code().to_string()).join(", ");
            return Err(Objection::new(path.key("exitCode"), format!("{code} is no exit code; there are {codes}")));
        }
        let contradicted = expect.result.is_some() && passes != (code == 0);
        // A probe that answers no has passed.
        if contradicted && code != 1 {
            return Err(Objection::new(path.key("exitCode"), format!("{code} does not go with the result")));
        }
    }
    if expect.verdict.is_some() && (passes || expect.exit_code == Some(0)) {
        return Err(Objection::new(path.key("verdict"), "a run that passes has no verdict"));
    }
    if let Some(bounds) = expect.makespan {
        let (min, max) = (bounds.min.unwrap_or(0.0), bounds.max.unwrap_or(f64::MAX));
        if min < 0.0 || min > max {
            return Err(Objection::new(
                path.key("makespan"),
                format!("wants 0 <= min <= max, and has {min} and {max}"),
            ));
        }
    }
    Ok(())
}
