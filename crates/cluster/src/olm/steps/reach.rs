//! The namespaces whose objects an installed operator serves.

use std::collections::BTreeSet;

use crate::Object;

/// The namespaces whose objects an installed operator serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    installed: bool,
    everywhere: bool,
    namespaces: BTreeSet<String>,
}

impl Reach {
    /// That of an operator that is not installed.
    pub(super) fn nowhere() -> Self {
        Self { installed: false, everywhere: false, namespaces: BTreeSet::new() }
    }

    /// That of an operator in a namespace with these groups. Its own namespace is always within reach; without a group,
    /// what OLM wrote down in the CSV counts.
    pub(super) fn of(namespace: &str, groups: &[Object], csvs: &[&Object]) -> Self {
        let mut targets: Vec<String> = groups.iter().flat_map(targets).collect();
        if groups.is_empty() {
            let noted = csvs.iter().filter_map(|csv| csv.annotation("olm.targetNamespaces"));
            targets = noted.flat_map(|text| text.split(',')).map(|name| name.trim().to_owned()).collect();
        }
        let everywhere = targets.iter().any(String::is_empty);
        let namespaces = targets.into_iter().chain([namespace.to_owned()]).filter(|name| !name.is_empty()).collect();
        Self { installed: true, everywhere, namespaces }
    }

    /// Whether the operator is not installed.
    pub(super) fn is_nowhere(&self) -> bool {
        !self.installed
    }

    /// Whether it serves objects of this namespace, or those without one.
    pub(super) fn covers(&self, namespace: Option<&str>) -> bool {
        match namespace {
            None => self.installed,
            Some(namespace) => self.everywhere || self.namespaces.contains(namespace),
        }
    }
}

/// A group's namespaces; the empty name stands for all of them.
fn targets(group: &Object) -> Vec<String> {
    let read =
        |path| -> Vec<String> { group.list(path).iter().filter_map(|name| name.as_str()).map(str::to_owned).collect() };
    let asked = read("/spec/targetNamespaces");
    if !asked.is_empty() {
        asked
    } else if group.at("/spec/selector").is_some() {
        // A selector's result is in the status only, and what it does not name is not for us to delete.
        read("/status/namespaces")
    } else {
        vec![String::new()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn group(spec: &Value, status: &Value) -> Object {
        Object::new(json!({"kind": "OperatorGroup", "metadata": {"name": "g", "namespace": "own"},
            "spec": spec, "status": {"namespaces": status}}))
    }

    #[test]
    fn an_operator_reaches_as_far_as_its_group_says() {
        let covers = |spec: Value, status: Value| {
            let reach = Reach::of("own", &[group(&spec, &status)], &[]);
            ["own", "other", "third"].map(|name| reach.covers(Some(name)))
        };
        assert_eq!(covers(json!({}), json!([""])), [true, true, true]);
        assert_eq!(covers(json!({"targetNamespaces": ["own"]}), json!(["own"])), [true, false, false]);
        assert_eq!(covers(json!({"targetNamespaces": ["other"]}), json!([])), [true, true, false]);
        let selector = json!({"selector": {"matchLabels": {"a": "b"}}});
        assert_eq!(covers(selector.clone(), json!(["third"])), [true, false, true]);
        assert_eq!(covers(selector, json!([])), [true, false, false]);
    }

    #[test]
    fn without_a_group_the_csv_tells_and_without_an_operator_nothing_is_reached() {
        let csv = |targets: &str| {
            Object::new(json!({"kind": "ClusterServiceVersion", "metadata": {"name": "c",
                "annotations": {"olm.targetNamespaces": targets}}}))
        };
        assert!(Reach::of("own", &[], &[&csv("")]).covers(Some("other")));
        assert!(!Reach::of("own", &[], &[&csv("own")]).covers(Some("other")));
        assert!(!Reach::of("own", &[], &[]).covers(Some("other")));
        assert!(!Reach::nowhere().covers(None));
        assert!(!Reach::nowhere().covers(Some("own")));
    }
}
