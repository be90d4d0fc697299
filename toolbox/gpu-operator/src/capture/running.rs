//! Which version of the operator runs, from everything that says so, and whether it is the one that was asked for.

use std::fmt::Write as _;

use serde_json::Value;
use toolbox_core::cluster::Object;
use toolbox_core::engine::StepCx;

use super::collect::Collector;
use crate::locate::Operator;

/// Where images, CSVs and charts carry a version: as labels or annotations.
const VERSION_LABELS: [&str; 2] = ["org.opencontainers.image.version", "app.kubernetes.io/version"];

/// The operator's own pods and what they logged.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) pods: Vec<Object>,
    pub(super) log: String,
}

/// Something that tells a version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Telling {
    source: String,
    version: String,
}

/// Records what was asked for and everything that tells what is there. A difference is a warning, never silence.
pub(super) fn record(cx: &StepCx, collector: &Collector, operator: &Operator, running: &Running, asked: Option<&str>) {
    let subscribed = operator
        .subscription
        .as_ref()
        .and_then(|subscription| subscription.text("/spec/startingCSV"))
        .and_then(|csv| csv.split_once(".v"))
        .map(|(_, version)| version);
    let asked = asked.or(subscribed);
    let installed = installed(operator);
    cx.version("gpu-operator", asked, Some(installed));
    let mut text = format!("version: {installed}\n");
    if let Some(asked) = asked {
        let _ = writeln!(text, "asked: {asked}");
    }
    // Who asked for no version in particular asked for what the CSV says.
    let expected = asked.filter(|asked| numbers(asked).is_some()).unwrap_or(installed);
    let mut tellings = tellings(&running.pods, &running.log);
    for Telling { source, version } in &tellings {
        cx.version(&format!("gpu-operator, {source}"), Some(expected), Some(version));
        let _ = writeln!(text, "{source}: {version}");
    }
    let source = if operator.csv.is_some() { "CSV" } else { "installed" };
    tellings.insert(0, Telling { source: source.to_owned(), version: installed.to_owned() });
    if let Some(warning) = warning(expected, &tellings) {
        let _ = writeln!(text, "warning: {warning}");
        cx.warn("operator-version", warning);
    }
    let image = operator.csv.as_ref().and_then(|csv| {
        let path = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
        csv.text(path).or_else(|| csv.annotation("containerImage"))
    });
    for (what, found) in image.map(|image| ("image", image)).into_iter().chain(digests(&running.pods)) {
        cx.version(&format!("gpu-operator {what}"), None, Some(found));
        let _ = writeln!(text, "{what}: {found}");
    }
    let commit = installed.split_once("-git.").map(|(_, commit)| commit).or_else(|| commit_in(&running.log));
    if let Some(commit) = commit {
        cx.version("gpu-operator commit", None, Some(commit));
        let _ = writeln!(text, "commit: {commit}");
    }
    collector.write("gpu_operator.versions.txt", &text);
}

/// What is installed: the CSV's word, which a hint does not overrule.
fn installed(operator: &Operator) -> &str {
    let of_csv = operator.csv.as_ref().and_then(|csv| csv.text("/spec/version"));
    of_csv.unwrap_or_else(|| operator.version.as_str())
}

/// Who disagrees with what was asked for.
fn warning(expected: &str, tellings: &[Telling]) -> Option<String> {
    let others: Vec<String> = tellings
        .iter()
        .filter(|telling| differ(expected, &telling.version))
        .map(|telling| format!("{} ({})", telling.version, telling.source))
        .collect();
    (!others.is_empty()).then(|| format!("asked for {expected}, runs {}", others.join(", ")))
}

/// Everything that tells the version of what runs, each source once.
fn tellings(pods: &[Object], log: &str) -> Vec<Telling> {
    let mut found: Vec<Telling> = Vec::new();
    let mut tell = |source: String, version: &str| {
        let telling = Telling { source, version: version.trim_start_matches('v').to_owned() };
        if !found.contains(&telling) {
            found.push(telling);
        }
    };
    for pod in pods {
        for label in VERSION_LABELS {
            if let Some(version) = pod.label(label).or_else(|| pod.annotation(label)) {
                tell(format!("pod's {label}"), version);
            }
        }
        for container in pod.list("/spec/containers") {
            let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            if let Some(version) = text(container, "image").as_deref().and_then(tag) {
                tell("pod's image tag".to_owned(), version);
            }
            // OLM tells each operator the name of the CSV it runs for.
            let variables = container.get("env").and_then(Value::as_array).into_iter().flatten();
            for variable in variables.filter(|one| text(one, "name").as_deref() == Some("OPERATOR_CONDITION_NAME")) {
                let value = text(variable, "value").unwrap_or_default();
                if let Some((_, version)) = value.split_once(".v") {
                    tell("pod's CSV".to_owned(), version);
                }
            }
        }
    }
    for version in log.lines().filter_map(version_in) {
        tell("operator's log".to_owned(), version);
    }
    found
}

/// The tag of an image when it is a version; a digest is none.
fn tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    name.split_once(':').map(|(_, tag)| tag).filter(|tag| numbers(tag).is_some())
}

/// What the nodes really run, by digest.
fn digests(pods: &[Object]) -> impl Iterator<Item = (&'static str, &str)> {
    pods.iter()
        .flat_map(|pod| pod.list("/status/containerStatuses"))
        .filter_map(|status| status.get("imageID").and_then(Value::as_str))
        .filter(|id| !id.is_empty())
        .map(|id| ("imageID", id))
}

/// The version that the operator says of itself at its start: the message `version: 1.11.0`, or a field `"version"` of a
/// line that is about the operator. Versions of other things (Kubernetes, the driver) are also logged.
fn version_in(line: &str) -> Option<&str> {
    let message = line.match_indices("version: ").find(|(at, _)| {
        let before = &line[..*at];
        before.is_empty() || before.ends_with(['\t', '"']) || before.ends_with("perator ") || before.ends_with("setup ")
    });
    let field = || {
        let about_us = line.contains("gpu-operator") || line.contains("\"setup\"") || line.contains("setup\t");
        line.match_indices("\"version\"").next().filter(|_| about_us)
    };
    let (at, key) = message.or_else(field)?;
    let value = line[at + key.len()..].trim_start_matches([':', ' ', '"']);
    let value = &value[..value.find(|c: char| !is_of_version(c)).unwrap_or(value.len())];
    Some(value).filter(|value| numbers(value).is_some())
}

/// The commit beside it: `commit: 0fe1e8db`.
fn commit_in(log: &str) -> Option<&str> {
    let rest = log.split("commit: ").nth(1)?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|commit| commit.len() >= 7)
}

fn is_of_version(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')
}

/// Whether two versions are not the same release. Suffixes are those of builds, and texts that are no version (`master`)
/// prove nothing.
fn differ(one: &str, other: &str) -> bool {
    match (numbers(one), numbers(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// `[1, 11]` for `v1.11.0-git.1`: zeros at the end say nothing.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let bare = bare.split(['-', '+']).next()?;
    let mut numbers: Vec<u64> = bare.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    if numbers.len() < 2 {
        return None;
    }
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(image: &str) -> Object {
        Object::new(json!({
            "metadata": {"name": "gpu-operator-1", "namespace": "nvidia-gpu-operator"},
            "spec": {"containers": [{"name": "gpu-operator", "image": image,
                "env": [{"name": "OPERATOR_CONDITION_NAME", "value": "gpu-operator-certified.v1.11.0"}]}]},
            "status": {"containerStatuses": [{"imageID": "nvcr.io/nvidia/gpu-operator@sha256:ab"}]},
        }))
    }

    #[test]
    fn an_operator_that_is_not_the_one_that_was_asked_for_is_told_by_each_source() {
        let log = "[pod/gpu-operator-1/gpu-operator] 1.6e9\tINFO\tsetup\tversion: v1.11.1, commit: 0fe1e8db\n";
        let found = tellings(&[pod("nvcr.io/nvidia/gpu-operator:v1.11.1")], log);
        assert_eq!(
            warning("1.11.0", &found).as_deref(),
            Some("asked for 1.11.0, runs 1.11.1 (pod's image tag), 1.11.1 (operator's log)")
        );
        assert_eq!(warning("v1.11.1", &tellings(&[], log)), None);
        let found = tellings(&[pod("nvcr.io/nvidia/gpu-operator@sha256:ab")], "");
        assert_eq!(found, [Telling { source: "pod's CSV".to_owned(), version: "1.11.0".to_owned() }]);
        assert_eq!(warning("1.11", &found), None);
        assert_eq!(digests(&[pod("x")]).collect::<Vec<_>>(), [("imageID", "nvcr.io/nvidia/gpu-operator@sha256:ab")]);
    }

    #[test]
    fn the_log_tells_the_operators_version_and_not_that_of_something_else() {
        for (line, version) in [
            (r#"x {"level":"info","ts":1.6,"logger":"setup","msg":"version: 22.9.0, commit: 0fe1e8db"}"#, "22.9.0"),
            ("1.6e9\tINFO\tsetup\tversion: 1.11.0", "1.11.0"),
            (r#"1.6e9	INFO	setup	starting	{"version": "v23.3.1"}"#, "v23.3.1"),
            ("gpu-operator version: 1.10.1", "1.10.1"),
        ] {
            assert_eq!(version_in(line), Some(version), "{line}");
        }
        for line in [
            "INFO\tKubernetes version: v1.24.17",
            r#"INFO	controllers	Reconciling	{"version": "4.11.27"}"#,
            "driver version: 515.65.01",
            "1.6e9\tINFO\tsetup\tversion: master",
            "",
        ] {
            assert_eq!(version_in(line), None, "{line}");
        }
        assert_eq!(commit_in(r"version: 22.9.0\ncommit: 0fe1e8db"), Some("0fe1e8db"));
    }
}
