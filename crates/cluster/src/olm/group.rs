//! OperatorGroups: use the one that is there if it fits, never make a second one.

use crate::Object;

use super::{Chosen, GLOBAL_NAMESPACE, OlmCause, Placement, Scope};

/// What is to be done about the namespace's OperatorGroup.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupRule {
    /// One is there and fits.
    Use(Object),
    /// None is there.
    Create(Scope),
    /// What is there does not fit.
    Refuse(Box<(Option<Object>, OlmCause)>),
}

/// The namespaces a group is for; empty means every one.
pub fn scope_of(group: &Object) -> Vec<String> {
    let read = |path: &str| -> Vec<String> {
        group
            .list(path)
            .iter()
            .filter_map(|name| name.as_str())
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    // A selector's result is in the status only.
    if group.at("/spec/selector").is_some() && group.list("/spec/targetNamespaces").is_empty() {
        return read("/status/namespaces");
    }
    read("/spec/targetNamespaces")
}

/// One and it fits: use it. One that does not fit, or several: refuse. None: create, except in `openshift-operators`,
/// where the cluster has its own.
pub fn group_rule(groups: &[Object], placement: &Placement, chosen: &Chosen) -> GroupRule {
    let groups: Vec<&Object> = groups.iter().filter(|group| !group.is_deleting()).collect();
    match groups.as_slice() {
        [] if placement.namespace == GLOBAL_NAMESPACE => GroupRule::Refuse(Box::new((
            None,
            OlmCause::NoFittingScope {
                csv: chosen.published.csv.clone(),
                modes: chosen.modes.to_string(),
                needed: format!("`{GLOBAL_NAMESPACE}` has no OperatorGroup of its own"),
            },
        ))),
        [] => GroupRule::Create(placement.scope),
        [group] => {
            let targets = scope_of(group);
            if chosen.modes.supports(&placement.namespace, &targets) {
                GroupRule::Use((*group).clone())
            } else {
                let targets = if targets.is_empty() { "every namespace".to_owned() } else { targets.join(", ") };
                GroupRule::Refuse(Box::new((
                    Some((*group).clone()),
                    OlmCause::GroupMismatch { targets, modes: chosen.modes.to_string() },
                )))
            }
        }
        several => {
            let mut names: Vec<String> = several.iter().map(|group| group.name().to_owned()).collect();
            names.sort();
            GroupRule::Refuse(Box::new((None, OlmCause::SeveralGroups { names })))
        }
    }
}
